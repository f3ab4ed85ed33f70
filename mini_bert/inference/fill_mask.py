"""Filling masks: the most probable words for each [MASK]."""

from typing import NamedTuple

import numpy as np

from ..core.model import MiniBERT
from ..core.ops.softmax import softmax_forward
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .inputs import require_vocabulary


class Candidate(NamedTuple):
    """A candidate word for a mask."""

    token: str
    id: int
    probability: float
    text: str                 # the sentence with this word; other masks stay


def fill_mask(model: MiniBERT, tokenizer: Tokenizer, text: str, top: int = 5) -> list[list[Candidate]]:
    """For each [MASK] of the text, in order, its `top` most probable words; special tokens are not words.

    Several masks are filled independently: each distribution is conditioned on all of them being masked. A model that
    predicts in any order is asked for the masks last, so that nothing reads them.
    """
    require_vocabulary(model, tokenizer)
    model.require_words()
    if model.modules.causal:
        raise InputError("This model reads only what comes before, so it fills no masks; generate continues a text.")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}.")
    ids = tokenizer.encode(tokenizer.with_mask(text))
    if len(ids) > model.config.max_seq_length:
        raise InputError(f"The text has {len(ids)} tokens; the model takes at most {model.config.max_seq_length}.")
    array = np.array([ids])
    positions = array == tokenizer.vocabulary.mask
    if not positions.any():
        raise InputError("The text has no [MASK] to fill; an example is: The capital of France is [MASK].")
    last = positions.astype(np.int64) if model.modules.stack.orders else None
    logits, _ = model.forward(array, positions=positions, order=last)     # (masks, V)
    words = tokenizer.vocabulary.ordinary_ids
    probabilities, _ = softmax_forward(logits[:, words])
    found = []
    for place, row in zip(positions[0].nonzero()[0].tolist(), probabilities, strict=True):
        best = np.argsort(-row, kind="stable")[:top].tolist()
        found.append([_candidate(tokenizer, ids, place, int(words[i]), float(row[i])) for i in best])
    return found


def _candidate(tokenizer: Tokenizer, ids: list[int], place: int, word: int,
               probability: float) -> Candidate:
    inside = slice(len(tokenizer.template.before), len(ids) - len(tokenizer.template.after))
    text = tokenizer.decode([*ids[:place], word, *ids[place + 1 :]][inside]).strip()
    return Candidate(tokenizer.vocabulary[word], word, probability, text)
