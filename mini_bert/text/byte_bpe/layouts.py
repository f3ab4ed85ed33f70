"""The special tokens of models with byte-level BPE, and where they stand around a text."""

from collections.abc import Mapping
from typing import NamedTuple

from ...errors import VocabularyError
from ..vocabulary import SPECIAL_TOKENS, Special


class Layout(NamedTuple):
    """The special tokens, in the order of their ids in a new vocabulary, and the templates of one text and of two."""

    special: Special
    order: tuple[str, ...]
    single: str
    pair: str
    classes: tuple[str, ...]              # of transformers, whose vocab.json has these tokens
    trim_offsets: bool


LAYOUTS = {
    "bert": Layout(Special(*SPECIAL_TOKENS), SPECIAL_TOKENS, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1",
                   ("DebertaTokenizer",), False),
    "roberta": Layout(Special("<pad>", "<unk>", "<s>", "</s>", "<mask>"), ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
                      "<s> $A </s>", "<s> $A </s> </s> $B </s>",
                      ("RobertaTokenizer", "BartTokenizer", "LongformerTokenizer", "LEDTokenizer"), True),
    "gpt2": Layout(Special(unk="<|endoftext|>"), ("<|endoftext|>",), "$A", "$A $B:1", ("GPT2Tokenizer",), False),
}


def layout_named(word: str) -> Layout:
    """The layout of this name."""
    if word not in LAYOUTS:
        raise VocabularyError(f"There is no layout of special tokens {word[:60]!r}; choose {', '.join(LAYOUTS)}.")
    return LAYOUTS[word]


def layout_of(tokenizer_class: object, ids: Mapping[str, int], source: str) -> Layout:
    """The layout of a vocab.json: that of the class that its files name, or else one whose tokens are all there."""
    name = str(tokenizer_class).removesuffix("Fast")
    possible = [layout for layout in LAYOUTS.values() if all(token in ids for token in layout.order)]
    if not possible:
        known = ", or ".join(" ".join(layout.order) for layout in LAYOUTS.values())
        raise VocabularyError(f"{source} lacks special tokens, and no tokenizer.json names them: it must have {known}.")
    return next((layout for layout in possible if name in layout.classes), possible[0])
