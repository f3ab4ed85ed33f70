"""How each kind of tokenizer is learned from text: its words are counted, then pieces are made from them.

A kind that can be learned has a file `learn.py` with a `LEARNER`; its options are the keywords of its two functions.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..errors import VocabularyError
from .opening import tokenizer_kind
from .tokenizer import Tokenizer


class Learner(NamedTuple):
    """count_words(texts, **options) -> words; learn(words, vocab_size, progress=..., **options) -> the tokenizer."""

    count_words: Callable[..., Counter[str]]
    learn: Callable[..., Tokenizer]


class LearnerOf:
    """The learner of a kind, with these options; those that are None are left out."""

    def __init__(self, kind: str, options: Mapping[str, Any]):
        folder = tokenizer_kind(kind).__module__.rpartition(".")[0]
        if not folder or find_spec(f"{folder}.learn") is None:
            raise VocabularyError(f"A tokenizer of the kind {kind} can be opened, but not learned here.")
        self.learner: Learner = import_module(f"{folder}.learn").LEARNER
        self.options = {name: value for name, value in options.items() if value is not None}
        taken = {name for function in self.learner for name in inspect.signature(function).parameters}
        for name in self.options:
            if name not in taken:
                raise VocabularyError(f"The option {name} is not one of a tokenizer of the kind {kind}.")

    def count(self, texts: Any) -> Counter[str]:
        """How often each word occurs."""
        return self.learner.count_words(texts, **self._of(self.learner.count_words))

    def learn(self, words: Counter[str], vocab_size: int, progress: Callable[[int], None] | None = None) -> Tokenizer:
        """A tokenizer of at most `vocab_size` pieces."""
        return self.learner.learn(words, vocab_size, progress=progress, **self._of(self.learner.learn))

    def _of(self, function: Callable[..., Any]) -> dict[str, Any]:
        return {name: self.options[name] for name in inspect.signature(function).parameters if name in self.options}
