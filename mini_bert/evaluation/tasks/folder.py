"""A folder of unpacked task data: which of its files an evaluation can use.

    *-ud-train.conllu with *-ud-test.conllu or *-ud-dev.conllu      a treebank; with entities, if it has Entity=
    */train.conll with */test.conll or */dev.conll                  named entities in columns
    */train.tsv with */dev.tsv, or .csv, .jsonl, .json, .parquet    texts, or pairs of texts, with labels or numbers
    squad/*.json                                                    questions; see `question_files`
    blimp/*.jsonl                                                   minimal pairs
    agreement/NAME.text with NAME.gold                              verbs and their subjects
    lama/**/*.jsonl                                                 facts, one relation per file
    wordsim/*.txt                                                   similarity of words, and analogies

Files may be in subfolders at any depth; the last five kinds are recognised by the name of their folder.
"""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from ...text.tables import is_table
from ..formats.agreement import agreement_files
from ..formats.conllu import has_entities, missing_header

EXPECTED_FILES = {
    "treebank": "NAME-ud-train.conllu with NAME-ud-test.conllu or NAME-ud-dev.conllu",
    "entities": "a treebank with Entity= in its last column and # global.Entity above, or train.conll with test.conll "
                "or dev.conll",
    "texts": "a folder with train.tsv and dev.tsv, or another kind of table",
    "questions": "squad/*.json", "pairs": "blimp/*.jsonl",
    "agreement": "agreement/NAME.text with NAME.gold", "facts": "lama/**/*.jsonl", "words": "wordsim/*.txt"}


class Splits(NamedTuple):
    """The files of a task. Without a test set, `test` is the development set and `dev` is None."""

    name: str
    train: Path
    dev: Path | None
    test: Path

    def files(self) -> list[Path]:
        return [self.train, *([] if self.dev is None else [self.dev]), self.test]


class TextFiles(NamedTuple):
    """The files of a text classification task."""

    name: str
    train: Path
    dev: Path


@dataclass(frozen=True)
class TaskFolder:
    """The task data found in a folder; None or empty for a kind that is missing."""

    folder: Path | None = None
    treebank: Splits | None = None
    entities: Splits | None = None
    texts: list[TextFiles] = field(default_factory=list)
    questions: list[Path] = field(default_factory=list)
    pairs: list[Path] = field(default_factory=list)
    agreement: list[Path] = field(default_factory=list)       # the .text files
    facts: list[Path] = field(default_factory=list)
    words: list[Path] = field(default_factory=list)
    no_header: Path | None = None             # a treebank with entities but without the header that names their fields

    def files_of(self, what: str) -> list[Path]:
        """The files of this kind of data; none if it is missing."""
        found = getattr(self, what) or []
        if isinstance(found, Splits):
            return found.files()
        if what == "texts":
            return [path for pair in found for path in (pair.train, pair.dev)]
        return [file for path in found for file in agreement_files(path)] if what == "agreement" else list(found)

    def missing(self, what: str) -> str | None:
        """Why there is no data of this kind, as part of a sentence; None if there is."""
        if getattr(self, what):
            return None
        if what == "entities" and self.no_header is not None:
            return missing_header(self.no_header)
        return "it needs task data; name a folder with --tasks" if self.folder is None else \
            f"{self.folder} has no {EXPECTED_FILES[what]}"


def find_tasks(folder: str | PathLike[str]) -> TaskFolder:
    """Search a folder; of several treebanks, the first by name and the first with entities are used."""
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"There is no task folder {root}.")
    banks = [found for train in _inside(root, "**/*-ud-train.conllu")
             if (found := _splits(train, train.name.removesuffix("-ud-train.conllu"), "-ud-{}.conllu")) is not None]
    columns = [found for train in _inside(root, "**/train.conll")
               if (found := _splits(train, "", "{}.conll")) is not None]
    tables = [TextFiles(train.parent.name, train, dev) for train in _inside(root, "**/train.*") if is_table(train)
              and train.parent.name != "squad" and (dev := train.with_name(f"dev{train.suffix}")).is_file()]
    agreement = [text for text in _inside(root, "**/agreement/*.text") if text.with_suffix(".gold").is_file()]
    return TaskFolder(root, banks[0] if banks else None,
                      next((bank for bank in banks if has_entities(bank.train)), columns[0] if columns else None),
                      tables, _inside(root, "**/squad/*.json"), _inside(root, "**/blimp/*.jsonl"), agreement,
                      _inside(root, "**/lama/**/*.jsonl"), _inside(root, "**/wordsim/*.txt"),
                      next((bank.train for bank in banks if has_entities(bank.train, without_header=True)), None))


def question_files(paths: list[Path]) -> tuple[Path, Path | None]:
    """The file to train on and the file to measure on.

    Files with train and dev in their names; otherwise the largest to train on and the smallest to measure on. The
    second is None if there is only one file, which is then split by contexts.
    """
    said = {word: [path for path in paths if word in path.stem.lower()] for word in ("train", "dev")}
    if said["train"]:
        others = [path for path in said["dev"] or paths if path not in said["train"]]
        return said["train"][0], others[0] if others else None
    by_size = sorted(paths, key=lambda path: (-path.stat().st_size, path))
    return by_size[0], by_size[-1] if len(by_size) > 1 else None


def _inside(root: Path, pattern: str) -> list[Path]:
    return sorted({path for path in root.glob(pattern) if path.is_file()})


def _splits(train: Path, name: str, form: str) -> Splits | None:
    dev, test = (train.with_name(name + form.format(split)) for split in ("dev", "test"))
    known = name or train.parent.name
    if test.is_file():
        return Splits(known, train, dev if dev.is_file() else None, test)
    return Splits(known, train, None, dev) if dev.is_file() else None
