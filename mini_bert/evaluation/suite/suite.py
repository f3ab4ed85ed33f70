"""A comprehensive evaluation: predictions, representations, understanding, probes, fine-tuning, zero-shot, forgetting.

Each part reports its baselines and is cached separately: a second run computes nothing, and an interrupted run
continues. Parts that cannot be measured, because data or an MLM head is missing, are listed with the reason. Malformed
files stop the evaluation before anything is computed.
"""

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ...core.model import MiniBERT
from ...errors import DataError, InputError, NumericalError
from ...text.corpora.sources import FileReading
from ...text.tokenizer import Tokenizer
from ...training.runs.process_memory import peak_resident_bytes
from ..formats.agreement import read_agreement
from ..formats.lama import read_facts
from ..formats.minimal_pairs import read_minimal_pairs
from ..formats.reading import load_questions
from ..formats.tables import Labelled, read_table
from ..formats.words import read_words
from ..tasks.folder import TaskFolder, find_tasks
from .context import FULL, EvaluationContext, SampleSizes
from .parts import predictions, probing, representations, tuning, zero_shot
from .result_cache import cached_result
from .rows import PartResult

LEVELS = {"predictions": "Masked prediction", "representations": "Representations", "understanding": "Understanding",
          "probes": "Probes", "fine-tuning": "Fine-tuning", "zero-shot": "Zero-shot", "forgetting": "Forgetting"}

MENTIONS = "Entity mentions, named or not"


class EvaluationPart(NamedTuple):
    """One part of the evaluation: title, section of the report, function, and the task data that it needs."""

    title: str
    level: str
    run: Callable[[EvaluationContext], PartResult]
    needs: str | None = None
    head: bool = False            # it needs predictions of words, so the model must have an MLM head


PARTS = {
    "masked": EvaluationPart("Masked tokens", "predictions", predictions.masked, head=True),
    "guesses": EvaluationPart("Guesses, calibration and gradients", "predictions", predictions.guesses, head=True),
    "representations": EvaluationPart("Diversity, layers and attention", "representations",
                                      representations.representations),
    "geometry": EvaluationPart("Geometry", "understanding", representations.geometry),
    "stability": EvaluationPart("Stability", "understanding", representations.stability),
    "composition": EvaluationPart("Composition", "understanding", representations.composition),
    "pos": EvaluationPart("Parts of speech", "probes", partial(probing.labels, task="pos"), "treebank"),
    "deplabel": EvaluationPart("Dependency relations", "probes", partial(probing.labels, task="deplabel"), "treebank"),
    "dep": EvaluationPart("Dependency trees", "probes", probing.trees, "treebank"),
    "ner": EvaluationPart("Named entities", "probes", partial(probing.labels, task="ner"), "entities"),
    "classification": EvaluationPart("Texts", "fine-tuning", tuning.texts, "texts"),
    "tagging": EvaluationPart("Named entities", "fine-tuning", tuning.entities, "entities"),
    "qa": EvaluationPart("Questions", "fine-tuning", tuning.questions, "questions"),
    "blimp": EvaluationPart("Grammar by minimal pairs", "zero-shot", zero_shot.grammar, "pairs", head=True),
    "agreement": EvaluationPart("Agreement of verbs", "zero-shot", zero_shot.verbs, "agreement", head=True),
    "facts": EvaluationPart("Facts", "zero-shot", zero_shot.facts, "facts", head=True),
    "similarity": EvaluationPart("Meaning of words", "zero-shot", zero_shot.words, "words"),
    "forgetting": EvaluationPart("What fine-tuning forgets", "forgetting", tuning.forgetting, "texts", head=True)}


@dataclass(frozen=True)
class EvaluationReport:
    """The results of all parts as plain data, and the parts that were not measured, with the reason."""

    parts: list[dict[str, Any]]
    not_measured: list[dict[str, str]]
    seconds: float                # of this run; cached parts take none
    peak_mb: float                # peak memory of the process

    def summary(self) -> list[dict[str, Any]]:
        """The rows of all parts, each with the name of its part."""
        return [{"part": part["name"], "title": part["title"], "level": part["level"], **row}
                for part in self.parts for row in part["rows"]]

    def to_dict(self) -> dict[str, Any]:
        return {"summary": self.summary(), "parts": self.parts, "not_measured": self.not_measured,
                "seconds": self.seconds, "peak_mb": self.peak_mb}


class EvaluationListener:
    """Receives the progress of an evaluation; this one ignores it."""

    def begins(self, title: str, number: int, total: int) -> None:
        """A part begins."""

    def progress(self, what: str, done: int, total: int) -> None:
        """`done` of `total` steps inside the part are done."""

    def ends(self, part: dict[str, Any]) -> None:
        """A part is finished."""

    def left_out(self, part: dict[str, str]) -> None:
        """A part cannot be measured."""


def chosen_parts(only: Sequence[str] | None) -> list[str]:
    """The named parts in the order of the evaluation; all for None."""
    for name in only or ():
        if name not in PARTS:
            raise InputError(f"The evaluation has no part {name!r}; choose some of {', '.join(PARTS)}.")
    return [name for name in PARTS if not only or name in only]


def comprehensive_evaluation(model: MiniBERT, tokenizer: Tokenizer, *, text: Sequence[str] = ("pydocs",),
                             tasks: str | PathLike[str] | None = None, train: str | PathLike[str] | None = None,
                             sizes: SampleSizes = FULL, only: Sequence[str] | None = None, length: int | None = None,
                             seed: int = 0, threads: int = 0, fresh: bool = False,
                             listener: EvaluationListener | None = None,
                             reading: FileReading | None = None) -> EvaluationReport:
    """Evaluate a model on text files and a folder of tasks.

    The n-gram baselines count `train`, the prepared training corpus, or by default the text itself.
    """
    names, listener, began = chosen_parts(only), listener or EvaluationListener(), perf_counter()
    folder = TaskFolder() if tasks is None else find_tasks(tasks)
    length = min(64, model.config.max_seq_length) if length is None else length
    parts: list[dict[str, Any]] = []
    left_out: list[dict[str, str]] = []
    with EvaluationContext(model, tokenizer, text, folder, sizes, train=train, length=length, seed=seed,
                           threads=threads, report=listener.progress, reading=reading) as context:
        if train is not None:
            assert context.training_corpus is not None  # a missing corpus, or another vocabulary, is refused here
        text_files = context.text_files()
        options = {"model": _fingerprint(model, tokenizer), "sizes": asdict(sizes), "length": length, "seed": seed,
                   "text": list(text), "reading": asdict(reading or FileReading()), "train": train is not None,
                   "versions": [platform.python_version(), np.__version__]}
        _check(context, {PARTS[name].needs for name in names if _why_not(context, PARTS[name]) is None})
        for number, name in enumerate(names):
            part = PARTS[name]
            about = {"name": name, "title": _title(part, folder), "level": part.level}
            listener.begins(about["title"], number, len(names))

            def compute(part: EvaluationPart = part) -> dict[str, Any]:
                start = perf_counter()
                measured = part.run(context)
                if not measured.rows:
                    raise DataError("The data contains nothing to measure.")
                return {**measured.to_dict(), "seconds": round(perf_counter() - start, 2)}

            reason = _why_not(context, part)
            if reason is None:
                files = text_files + ([] if part.needs is None else folder.files_of(part.needs))
                files += folder.files_of("entities") if name == "forgetting" and folder.entities else []
                named = [f"{file.parent.name}/{file.name}" for file in files]     # results contain these names
                try:
                    found = cached_result(f"evaluate-{name}", {**options, "files": named}, files, compute, fresh=fresh)
                except (DataError, InputError, NumericalError) as error:
                    reason = str(error)
                else:
                    parts.append(about | found)
                    listener.ends(parts[-1])
            if reason is not None:
                left_out.append(about | {"reason": reason})
                listener.left_out(left_out[-1])
    return EvaluationReport(parts, left_out, round(perf_counter() - began, 2), round(peak_resident_bytes() / 1e6, 1))


def _why_not(context: EvaluationContext, part: EvaluationPart) -> str | None:
    if part.head and not context.has_mlm_head:
        return "The model has no MLM head."
    return None if part.needs is None else context.tasks.missing(part.needs)


def _title(part: EvaluationPart, folder: TaskFolder) -> str:
    """Entity= in a treebank marks every mention, including pronouns; CoNLL columns mark only names."""
    mentions = part.needs == "entities" and folder.entities is not None and folder.entities.train.suffix == ".conllu"
    return MENTIONS if mentions else part.title


def _fingerprint(model: MiniBERT, tokenizer: Tokenizer) -> str:
    """A digest of the model: weights, config and tokenizer."""
    digest = blake2b(digest_size=16)
    for piece in model.params.pieces():
        digest.update(np.ascontiguousarray(piece).view(np.uint8).data)
    about = [model.config.to_dict(), list(tokenizer.vocabulary), tokenizer.lowercase, tokenizer.strip_accents]
    digest.update(json.dumps(about, default=str).encode())
    return digest.hexdigest()


def _check(context: EvaluationContext, needed: set[str | None]) -> None:
    """Read every file that will be used, so that a malformed one is reported at once and not hours later.

    A well-formed but unsuitable file, such as one with labels on a scale, is reported by the part that uses it.
    """
    readers: dict[str, Callable[[Path], Any]] = {
        "treebank": context.sentences, "entities": context.sentences, "texts": _any_texts,
        "questions": load_questions, "pairs": read_minimal_pairs, "facts": read_facts, "words": read_words}
    for needs in sorted(filter(None, needed)):
        files = context.tasks.files_of(needs)

        def read(needs: str = needs, files: Sequence[Path] = files) -> dict[str, Any]:
            if needs == "agreement":
                return {"read": [len(read_agreement(path)) for path in context.tasks.agreement]}
            return {"read": [len(readers[needs](path)) for path in files]}

        cached_result("evaluate-data", {"kind": needs, "files": [str(file) for file in files]}, files, read)


def _any_texts(path: Path) -> list[Labelled]:
    return read_table(path, labelled=False)
