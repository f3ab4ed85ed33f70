"""Verbs and their subjects, as Linzen, Dupoux & Goldberg (2016) have them, in two files of the same number of lines.

NAME.text has a sentence a line, its words separated by spaces (`<eos>` at the end is not a word), and NAME.gold the
index of the verb, its true form, its other form and the number of attractors, separated by tabs.
"""

from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ...errors import DataError
from .lines import numbered_lines, wrong

_END = "<eos>"


class AgreementItem(NamedTuple):
    """A sentence around a verb, the verb's form in it and the one it could have had, and the attractors between."""

    before: str
    after: str
    right: str
    other: str
    attractors: int

    @property
    def singular(self) -> bool | None:
        """Is the true form singular? The singular ends in s, and is the longer one if both do; None if neither does."""
        ends = self.right.endswith("s"), self.other.endswith("s")
        if not any(ends):
            return None
        return len(self.right) > len(self.other) if all(ends) else ends[0]


def agreement_files(path: str | PathLike[str]) -> tuple[Path, Path]:
    """NAME.text and NAME.gold, of which either, or NAME, may be named."""
    stem = Path(path).with_suffix("") if Path(path).suffix in (".text", ".gold") else Path(path)
    return stem.with_name(f"{stem.name}.text"), stem.with_name(f"{stem.name}.gold")


def read_agreement(path: str | PathLike[str]) -> list[AgreementItem]:
    """The items of the two files."""
    text, gold = agreement_files(path)
    sentences, answers = list(numbered_lines(text)), list(numbered_lines(gold))
    if len(sentences) != len(answers):
        raise DataError(f"{text} has {len(sentences)} lines and {gold} has {len(answers)}; they must be as many.")
    if not sentences:
        raise DataError(f"{text} has no sentences.")
    return [_item(sentence.split(), answer.split("\t"), gold, line)
            for (_, sentence), (line, answer) in zip(sentences, answers, strict=True)]


def _item(words: list[str], answer: list[str], gold: Path, line: int) -> AgreementItem:
    if len(answer) != 4:
        raise wrong(gold, line, f"it has {len(answer)} columns separated by tabs, not 4: index, true form, other form, "
                                "attractors")
    index, right, other, attractors = (column.strip() for column in answer)
    for name, value in (("index", index), ("number of attractors", attractors)):
        if not (value.isascii() and value.isdigit()):
            raise wrong(gold, line, f"the {name} is {value!r}, not a whole number")
    place = int(index)
    if place < len(words) and words[place] == right.lower():      # the sentences are lower case, some answers not
        right, other = right.lower(), other.lower()
    if place >= len(words) or words[place] != right:
        there = repr(words[place]) if place < len(words) else "no word"
        raise wrong(gold, line, f"the sentence has {there} at {place}, not {right!r}")
    if not other:
        raise wrong(gold, line, f"there is no other form of {right!r}")
    if words[-1] == _END and place < len(words) - 1:
        words = words[:-1]
    return AgreementItem(" ".join(words[:place]), " ".join(words[place + 1 :]), right, other, int(attractors))
