"""Filling masks: the most probable words for each [MASK]."""

from typing import NamedTuple

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.model import MiniBERT
from ..core.ops.softmax import softmax_forward
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .inputs import require_vocabulary


class Masks(NamedTuple):
    """The tokens of a text, and what a model expects at each [MASK]."""

    ids: list[int]
    places: list[int]                     # of the masks among the tokens
    words: IntArray                       # (n,) the ids that are words: special tokens are not
    probabilities: Array                  # (masks, n)


class Candidate(NamedTuple):
    """A candidate word for a mask."""

    token: str
    id: int
    probability: float
    text: str                 # the sentence with this word; other masks stay


def fill_mask(model: MiniBERT, tokenizer: Tokenizer, text: str, top: int = 5) -> list[list[Candidate]]:
    """For each [MASK] of the text, in order, its `top` most probable words; special tokens are not words.

    Several masks are filled independently: each distribution is conditioned on all of them being masked.
    """
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}.")
    masks = read_masks(model, tokenizer, text)
    found = []
    for place, row in zip(masks.places, masks.probabilities, strict=True):
        best = np.argsort(-row, kind="stable")[:top].tolist()
        found.append([_candidate(tokenizer, masks.ids, place, int(masks.words[i]), float(row[i])) for i in best])
    return found


def read_masks(model: MiniBERT, tokenizer: Tokenizer, text: str) -> Masks:
    """The probability of every word at each [MASK] of the text."""
    require_vocabulary(model, tokenizer)
    model.require_words()
    ids = tokenizer.encode(tokenizer.with_mask(text))
    if len(ids) > model.config.max_seq_length:
        raise InputError(f"The text has {len(ids)} tokens; the model takes at most {model.config.max_seq_length}.")
    array = np.array([ids])
    positions = array == tokenizer.vocabulary.mask
    if not positions.any():
        raise InputError("The text has no [MASK] to fill; an example is: The capital of France is [MASK].")
    logits, _ = model.forward(array, positions=positions)                 # (masks, V)
    words = tokenizer.vocabulary.ordinary_ids
    probabilities, _ = softmax_forward(logits[:, words])
    return Masks(ids, positions[0].nonzero()[0].tolist(), words, probabilities)


def _candidate(tokenizer: Tokenizer, ids: list[int], place: int, word: int,
               probability: float) -> Candidate:
    inside = slice(len(tokenizer.template.before), len(ids) - len(tokenizer.template.after))
    text = tokenizer.decode([*ids[:place], word, *ids[place + 1 :]][inside]).strip()
    return Candidate(tokenizer.vocabulary[word], word, probability, text)
