"""Facts in LAMA's JSON lines, one relation per file: prompts with one [MASK], their negations, and the answer.

    {"sub_label": ..., "obj_label": ..., "masked_sentences": [...], "masked_negations": [...]}

Other fields are ignored.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import DataError
from ...text.vocabulary import SPECIAL_TOKENS
from .lines import json_lines, line_error, text_field

_MASK = SPECIAL_TOKENS[4]


class Fact(NamedTuple):
    """A prompt with one [MASK], its negation if there is one, and the object that fills the mask."""

    relation: str
    subject: str
    object: str
    prompt: str
    negation: str | None


def read_facts(path: str | PathLike[str]) -> list[Fact]:
    """Read a LAMA file; its name is the name of the relation. An entry with several prompts gives several facts."""
    facts = []
    for line, content in json_lines(path):
        subject, answer = (text_field(content, key, path, line) for key in ("sub_label", "obj_label"))
        if not answer.strip():
            raise line_error(path, line, "the field 'obj_label' is empty")
        prompts = _prompts(content, "masked_sentences", path, line)
        negations: Sequence[str | None] = [None] * len(prompts)
        if content.get("masked_negations"):
            negations = _prompts(content, "masked_negations", path, line)
        if len(negations) != len(prompts):
            raise line_error(path, line, f"it has {len(prompts)} prompts but {len(negations)} negations")
        facts += [Fact(Path(path).stem, subject, answer, *both) for both in zip(prompts, negations, strict=True)]
    if not facts:
        raise DataError(f"{path} has no facts.")
    return facts


def _prompts(content: dict[str, Any], key: str, path: str | PathLike[str], line: int) -> list[str]:
    value = content.get(key)
    if not isinstance(value, list) or not value or not all(isinstance(prompt, str) for prompt in value):
        raise line_error(path, line, f"the field {key!r} is missing or is not a list of texts")
    for prompt in value:
        if prompt.count(_MASK) != 1:
            raise line_error(path, line, f"a text of {key!r} contains {_MASK} {prompt.count(_MASK)} times, not once")
    return value
