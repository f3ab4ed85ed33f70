"""Subject-verb agreement in the format of Linzen, Dupoux & Goldberg (2016): two files with one line per sentence.

NAME.text has the sentence, its words separated by spaces (`<eos>` at the end is not a word). NAME.gold has the
index of the verb, its true form, its other form and the number of attractors, separated by tabs.
"""

from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from .lines import line_error, numbered_lines

_END = "<eos>"


class AgreementItem(NamedTuple):
    """The text before and after a verb, the true form of the verb, its other form, and the number of attractors."""

    before: str
    after: str
    right: str
    other: str
    attractors: int

    @property
    def singular(self) -> bool | None:
        """Whether the true form is singular: it ends in s, and is the longer one if both do; None if neither does."""
        ends = self.right.endswith("s"), self.other.endswith("s")
        if not any(ends):
            return None
        return len(self.right) > len(self.other) if all(ends) else ends[0]


def agreement_files(path: str | PathLike[str]) -> tuple[Path, Path]:
    """NAME.text and NAME.gold, given either of them or NAME."""
    stem = Path(path).with_suffix("") if Path(path).suffix in (".text", ".gold") else Path(path)
    return stem.with_name(f"{stem.name}.text"), stem.with_name(f"{stem.name}.gold")


def read_agreement(path: str | PathLike[str]) -> list[AgreementItem]:
    """Read both files."""
    text, gold = agreement_files(path)
    sentences, answers = list(numbered_lines(text)), list(numbered_lines(gold))
    if len(sentences) != len(answers):
        raise DataError(f"{text} has {len(sentences)} lines and {gold} has {len(answers)}; they must match.")
    if not sentences:
        raise DataError(f"{text} has no sentences.")
    return [_item(sentence.split(), answer.split("\t"), gold, line)
            for (_, sentence), (line, answer) in zip(sentences, answers, strict=True)]


def _item(words: list[str], answer: list[str], gold: Path, line: int) -> AgreementItem:
    if len(answer) != 4:
        raise line_error(gold, line, f"it has {len(answer)} columns separated by tabs, not 4: index, true form, other "
                                     "form, attractors")
    index, right, other, attractors = (column.strip() for column in answer)
    for name, value in (("index", index), ("number of attractors", attractors)):
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise line_error(gold, line, f"the {name} is {value!r}, not an integer")
    place = int(index)
    if place < len(words) and words[place] == right.lower():      # sentences are in lower case, some answers not
        right, other = right.lower(), other.lower()
    if place >= len(words) or words[place] != right:
        there = repr(words[place]) if place < len(words) else "no word"
        raise line_error(gold, line, f"the sentence has {there} at index {place}, not {right!r}")
    if not other:
        raise line_error(gold, line, f"the other form of {right!r} is missing")
    if words[-1] == _END and place < len(words) - 1:
        words = words[:-1]
    return AgreementItem(" ".join(words[:place]), " ".join(words[place + 1 :]), right, other, int(attractors))
