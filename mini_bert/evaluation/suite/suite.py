"""A comprehensive evaluation: predictions, representations, understanding, probes, fine-tuning, zero-shot, forgetting.

Each part keeps its baselines beside it, and is remembered by itself: a second run computes nothing, and one that was
interrupted goes on. What cannot be measured, for want of data or of an MLM head, is listed with the reason. Files that
are malformed stop the evaluation before anything is computed.
"""

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ...core.model import MiniBERT
from ...errors import DataError, InputError, NumericalError
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ...training.process_memory import peak_resident_bytes
from ..formats.agreement import agreement_files, read_agreement
from ..formats.lama import read_facts
from ..formats.minimal_pairs import read_minimal_pairs
from ..formats.reading import asked_questions
from ..formats.tables import Labelled, read_table
from ..formats.words import read_words
from ..tasks.folder import TaskFolder, find_tasks
from .context import FULL, Context, Sizes
from .parts import predictions, probing, representations, tuning, zero_shot
from .result_cache import remembered
from .rows import Measured

LEVELS = {"predictions": "Masked prediction", "representations": "Representations", "understanding": "Understanding",
          "probes": "Probes", "fine-tuning": "Fine-tuning", "zero-shot": "Zero-shot", "forgetting": "Forgetting"}

MENTIONS = "Entity mentions, named or not"


class Part(NamedTuple):
    """One part: what it is called, the level it belongs to, and what it needs of a folder of tasks."""

    title: str
    level: str
    run: Callable[[Context], Measured]
    needs: str | None = None
    head: bool = False            # it asks for words, so the model must have an MLM head


PARTS = {
    "masked": Part("Masked tokens", "predictions", predictions.masked, head=True),
    "guesses": Part("Guesses, calibration and gradients", "predictions", predictions.guesses, head=True),
    "representations": Part("Diversity, layers and attention", "representations", representations.representations),
    "geometry": Part("Geometry", "understanding", representations.geometry),
    "stability": Part("Stability", "understanding", representations.stability),
    "composition": Part("Composition", "understanding", representations.composition),
    "pos": Part("Parts of speech", "probes", probing.parts_of_speech, "treebank"),
    "deplabel": Part("Dependency relations", "probes", probing.relations, "treebank"),
    "dep": Part("Dependency trees", "probes", probing.trees, "treebank"),
    "ner": Part("Named entities", "probes", probing.entities, "entities"),
    "classification": Part("Texts", "fine-tuning", tuning.texts, "texts"),
    "tagging": Part("Named entities", "fine-tuning", tuning.entities, "entities"),
    "qa": Part("Questions", "fine-tuning", tuning.questions, "questions"),
    "blimp": Part("Grammar by minimal pairs", "zero-shot", zero_shot.grammar, "pairs", head=True),
    "agreement": Part("Agreement of verbs", "zero-shot", zero_shot.verbs, "agreement", head=True),
    "facts": Part("Facts", "zero-shot", zero_shot.facts, "facts", head=True),
    "similarity": Part("Meaning of words", "zero-shot", zero_shot.words, "words"),
    "forgetting": Part("What fine-tuning forgets", "forgetting", tuning.forgetting, "texts", head=True)}


@dataclass(frozen=True)
class Evaluation:
    """All parts in their order, as what JSON can hold; and those that were not measured, with the reason."""

    parts: list[dict[str, Any]]
    not_measured: list[dict[str, str]]
    seconds: float                # of this run; what was remembered took none
    peak_mb: float                # the most memory that the process held

    def summary(self) -> list[dict[str, Any]]:
        """The rows of all parts, each with the part it is of."""
        return [{"part": part["name"], "title": part["title"], "level": part["level"], **row}
                for part in self.parts for row in part["rows"]]

    def to_dict(self) -> dict[str, Any]:
        return {"summary": self.summary(), "parts": self.parts, "not_measured": self.not_measured,
                "seconds": self.seconds, "peak_mb": self.peak_mb}


class Listener:
    """Who hears of the progress; this one does nothing of it."""

    def begins(self, title: str, number: int, total: int) -> None:
        """A part begins."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Something inside of it is done."""

    def ends(self, part: dict[str, Any]) -> None:
        """A part has its result."""

    def left_out(self, part: dict[str, str]) -> None:
        """A part cannot be measured."""


def chosen_parts(only: Sequence[str] | None) -> list[str]:
    """The parts in their order; all of them for None."""
    for name in only or ():
        if name not in PARTS:
            raise InputError(f"There is no part {name!r} of the evaluation; choose some of {', '.join(PARTS)}.")
    return [name for name in PARTS if not only or name in only]


def comprehensive_evaluation(model: MiniBERT, tokenizer: WordPieceTokenizer, *, text: Sequence[str] = ("pydocs",),
                             tasks: str | PathLike[str] | None = None, train: str | PathLike[str] | None = None,
                             sizes: Sizes = FULL, only: Sequence[str] | None = None, length: int | None = None,
                             seed: int = 0, threads: int = 0, fresh: bool = False,
                             listener: Listener | None = None) -> Evaluation:
    """Evaluate a model on text files and a folder of tasks.

    `train` is the prepared corpus of the training, for the baselines to count; else they count the text itself.
    """
    names, hears, began = chosen_parts(only), listener or Listener(), perf_counter()
    folder = TaskFolder() if tasks is None else find_tasks(tasks)
    length = min(64, model.config.max_seq_length) if length is None else length
    parts: list[dict[str, Any]] = []
    left_out: list[dict[str, str]] = []
    with Context(model, tokenizer, text, folder, sizes, train=train, length=length, seed=seed, threads=threads,
                 report=hears.progress) as context:
        if train is not None:
            assert context.known is not None
            context.known.release()       # one that is not there, or of another vocabulary, is told at once
        text_files = context.text_files()
        options = {"model": _fingerprint(model, tokenizer), "sizes": asdict(sizes), "length": length, "seed": seed,
                   "text": list(text), "train": train is not None,
                   "versions": [platform.python_version(), np.__version__]}
        _check(context, {PARTS[name].needs for name in names if _why_not(context, PARTS[name]) is None})
        for number, name in enumerate(names):
            part = PARTS[name]
            about = {"name": name, "title": _title(part, folder), "level": part.level}
            hears.begins(about["title"], number, len(names))

            def compute(part: Part = part) -> dict[str, Any]:
                start = perf_counter()
                measured = part.run(context)
                if not measured.rows:
                    raise DataError("The data have nothing that could be measured.")
                return {**measured.to_dict(), "seconds": round(perf_counter() - start, 2)}

            reason = _why_not(context, part)
            if reason is None:
                files = text_files + ([] if part.needs is None else _files(folder, part.needs))
                files += _files(folder, "entities") if name == "forgetting" and folder.entities else []
                named = [f"{file.parent.name}/{file.name}" for file in files]     # a result tells these names
                try:
                    found = remembered(f"evaluate-{name}", {**options, "files": named}, files, compute, fresh=fresh)
                except (DataError, InputError, NumericalError) as error:
                    reason = str(error)
                else:
                    parts.append(about | found)
                    hears.ends(parts[-1])
            if reason is not None:
                left_out.append(about | {"reason": reason})
                hears.left_out(left_out[-1])
    return Evaluation(parts, left_out, round(perf_counter() - began, 2), round(peak_resident_bytes() / 1e6, 1))


def _why_not(context: Context, part: Part) -> str | None:
    if part.head and not context.has_mlm_head:
        return "The model has no MLM head."
    return None if part.needs is None else context.tasks.missing(part.needs)


def _title(part: Part, folder: TaskFolder) -> str:
    """Entity= of a treebank marks every mention, pronouns too; only columns have names alone."""
    mentions = part.needs == "entities" and folder.entities is not None and folder.entities.train.suffix == ".conllu"
    return MENTIONS if mentions else part.title


def _fingerprint(model: MiniBERT, tokenizer: WordPieceTokenizer) -> str:
    """What a result depends on of the model: its weights, its config, and how text becomes ids."""
    digest = blake2b(np.ascontiguousarray(model.params.flat).view(np.uint8).data, digest_size=16)
    about = [model.config.to_dict(), list(tokenizer.vocabulary), tokenizer.lowercase, tokenizer.strip_accents]
    digest.update(json.dumps(about, default=str).encode())
    return digest.hexdigest()


# -------------------------------------------------------------------- the files of tasks


def _files(folder: TaskFolder, needs: str) -> list[Path]:
    found = getattr(folder, needs)
    if needs in ("treebank", "entities"):
        return list(found.files())
    if needs == "texts":
        return [path for pair in found for path in (pair.train, pair.dev)]
    return [file for path in found for file in agreement_files(path)] if needs == "agreement" else list(found)


def _check(context: Context, needed: set[str | None]) -> None:
    """Read every file that will be used, so that a malformed one is told at once and not hours later.

    One that is well formed and does not suit, as labels on a scale do not, is left to the part that meets it.
    """
    readers: dict[str, Callable[[Path], Any]] = {
        "treebank": context.sentences, "entities": context.sentences, "texts": _any_texts,
        "questions": asked_questions, "pairs": read_minimal_pairs, "facts": read_facts, "words": read_words}
    for needs in sorted(filter(None, needed)):
        files = _files(context.tasks, needs)

        def read(needs: str = needs, files: Sequence[Path] = files) -> dict[str, Any]:
            if needs == "agreement":
                return {"read": [len(read_agreement(path)) for path in context.tasks.agreement]}
            return {"read": [len(readers[needs](path)) for path in files]}

        remembered("evaluate-data", {"kind": needs, "files": [str(file) for file in files]}, files, read)


def _any_texts(path: Path) -> list[Labelled]:
    return read_table(path, labelled=False)
