"""Which layer of the student learns from which of the teacher's: the option `layers` of distil.

    last         the last from the last, as DistilBERT
    even         layer i of L from layer (i + 1) L_t / L - 1 of L_t, rounded: TinyBERT's uniform map
    '1:3 2:7'    the student's layer before the colon from the teacher's behind it, counted from 0
"""

from typing import Any, NamedTuple

from ...errors import ConfigError


class Pair(NamedTuple):
    """A layer of the student and the layer of the teacher that it learns from."""

    student: int
    teacher: int


def layer_pairs(layers: Any, student: int, teacher: int) -> list[Pair]:
    """The pairs that the option names, for these numbers of layers."""
    text = str(layers)
    if text == "last":
        return [Pair(student - 1, teacher - 1)]
    if text == "even":
        return [Pair(i, max(0, round((i + 1) * teacher / student) - 1)) for i in range(student)]
    pairs = []
    for part in text.split():
        ours, colon, theirs = part.partition(":")
        if not colon or not ours.isdecimal() or not theirs.isdecimal():
            raise ConfigError(f"distil: layers must be last, even, or pairs such as '1:3 2:7', not {text[:100]!r}.")
        pair = Pair(int(ours), int(theirs))
        for layer, count, whose in ((pair.student, student, "student"), (pair.teacher, teacher, "teacher")):
            if layer >= count:
                raise ConfigError(f"distil: layers names layer {layer} of the {whose}, which has 0 to {count - 1}.")
        pairs.append(pair)
    if not pairs or len({pair.student for pair in pairs}) < len(pairs):
        raise ConfigError(f"distil: layers must name each layer of the student once at most, and one at least, not "
                          f"{text[:100]!r}.")
    return pairs
