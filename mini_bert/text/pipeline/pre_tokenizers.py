"""The pre-tokenizers of a tokenizer.json: each splits a text into parts, which the model segments one by one.

Metaspace writes spaces as ▁ and keeps them at the beginning of a word, so that no space is lost:

    a new world -> ▁a ▁new ▁world
"""

import re
from collections.abc import Callable, Iterator
from re import Pattern
from typing import Any

from ...errors import VocabularyError
from ..wordpiece.unicode_tables import PUNCTUATION
from .aligned import AlignedText
from .patterns import SPACE
from .unicode_tables import WORD

PreTokenizer = Callable[[AlignedText], Iterator[AlignedText]]
_RUNS = re.compile(f"[^{SPACE}]+")
_WORDS = re.compile(f"[{WORD.pattern()}]+|[^{WORD.pattern()}{SPACE}]+")
_MARKS = re.compile(f"[{PUNCTUATION.pattern()}]")
_RUNS_OF_MARKS = re.compile(f"[{PUNCTUATION.pattern()}]+")
_NO_MARKS = re.compile(f"[^{PUNCTUATION.pattern()}]+")


def matches(text: AlignedText, pattern: Pattern[str]) -> Iterator[AlignedText]:
    """The parts that match; what is between them is dropped."""
    return (text.slice(*match.span()) for match in pattern.finditer(text.text))


class Metaspace:
    """Spaces become `replacement`; one is put before the text if `prepend` is "always", or is "first" and it is the
    first part of the original; with `split`, a part ends before each."""

    def __init__(self, replacement: str = "▁", prepend: str = "always", split: bool = True):
        self.replacement, self.prepend, self.split = replacement, prepend, split

    def __call__(self, text: AlignedText) -> Iterator[AlignedText]:
        mark = self.replacement
        text = AlignedText(text.text.replace(" ", mark), text.spans, text.start)
        wanted = self.prepend == "always" or (self.prepend == "first" and text.start == 0)
        if wanted and not text.text.startswith(mark):
            text = text.prepend(mark)
        places = [i for i, letter in enumerate(text.text) if letter == mark and i] if self.split else []
        return text.cut([*places, len(text.text)])


class Punctuation:
    """Splits at punctuation marks: "Isolated" makes each a part, "Contiguous" each run; "Removed" drops them."""

    def __init__(self, behaviour: str = "Isolated"):
        self.behaviour = behaviour

    def __call__(self, text: AlignedText) -> Iterator[AlignedText]:
        if self.behaviour == "Removed":
            return matches(text, _NO_MARKS)
        marks = _MARKS if self.behaviour == "Isolated" else _RUNS_OF_MARKS
        places = [place for match in marks.finditer(text.text) for place in match.span()]
        return text.cut([*places, len(text.text)])


# -------------------------------------------------------------------- reading

def read_pre_tokenizer(content: Any, source: str) -> list[PreTokenizer]:
    """The functions, in order, that the `pre_tokenizer` of a tokenizer.json describes."""
    if content is None:
        return []
    kind = content.get("type") if isinstance(content, dict) else None
    if kind == "Sequence" and isinstance(content.get("pretokenizers"), list):
        return [function for part in content["pretokenizers"] for function in read_pre_tokenizer(part, source)]
    if kind not in _READERS:
        raise VocabularyError(f"{source}: the pre-tokenizer {str(kind)[:60]!r} is not supported; "
                              f"{', '.join(_READERS)} and Sequence are.")
    return [_READERS[kind](content, f"{source}: the pre-tokenizer {kind}")]


def read_metaspace(content: dict[str, Any], where: str) -> Metaspace:
    """A Metaspace, as a pre-tokenizer or a decoder; older files say add_prefix_space for prepend_scheme."""
    mark, split = content.get("replacement"), content.get("split")
    prefix, scheme = content.get("add_prefix_space"), content.get("prepend_scheme")
    if not isinstance(mark, str) or len(mark) != 1:
        raise VocabularyError(f"{where} must have a replacement of one character.")
    if scheme not in (None, "always", "first", "never") or prefix not in (None, True, False) \
            or split not in (None, True, False):
        raise VocabularyError(f"{where} must have the prepend_scheme always, first or never, and true or false for "
                              "split.")
    if prefix is False and scheme not in (None, "never"):
        raise VocabularyError(f"{where}: add_prefix_space is false, but prepend_scheme is {scheme!r}.")
    return Metaspace(mark, "never" if prefix is False else scheme or "always", split is not False)


def _punctuation(content: dict[str, Any], where: str) -> PreTokenizer:
    behaviour = content.get("behavior", "Isolated")
    if behaviour not in ("Isolated", "Contiguous", "Removed"):
        raise VocabularyError(f"{where} has the behavior {str(behaviour)[:60]!r}; Isolated, Contiguous and Removed are "
                              "supported.")
    return Punctuation(behaviour)


def split_at_spaces(text: AlignedText) -> Iterator[AlignedText]:
    """WhitespaceSplit: the parts between white space."""
    return matches(text, _RUNS)


def split_words(text: AlignedText) -> Iterator[AlignedText]:
    """Whitespace: runs of letters and digits, and runs of what is neither these nor white space."""
    return matches(text, _WORDS)


_READERS: dict[str, Callable[[dict[str, Any], str], PreTokenizer]] = {
    "Metaspace": read_metaspace, "WhitespaceSplit": lambda content, where: split_at_spaces,
    "Whitespace": lambda content, where: split_words, "Punctuation": _punctuation,
}
