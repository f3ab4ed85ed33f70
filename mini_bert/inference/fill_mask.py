"""Filling masks: the most probable words for each [MASK]."""

from typing import NamedTuple

import numpy as np

from ..core.model import MiniBERT
from ..core.ops.softmax import softmax_forward
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .inputs import require_vocabulary
from .windows import text_parts


class Candidate(NamedTuple):
    """A candidate word for a mask."""

    token: str
    id: int
    probability: float
    text: str                 # the sentence with this word; other masks stay


def fill_mask(model: MiniBERT, tokenizer: Tokenizer, text: str, top: int = 5) -> list[list[Candidate]]:
    """For each [MASK] of the text, in order, its `top` most probable words; special tokens are not words.

    Several masks are filled independently: each distribution is conditioned on all of them being masked. A model that
    predicts in any order is asked for the masks last, so that nothing reads them. In a text longer than the model reads
    at once, it is conditioned on the mask's window: see windows.py.
    """
    require_vocabulary(model, tokenizer)
    model.require_words()
    if model.modules.causal:
        raise InputError("This model reads only what comes before, so it fills no masks; generate continues a text.")
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}.")
    ids, mask = tokenizer.ids(tokenizer.with_mask(text)), tokenizer.vocabulary.mask
    if mask not in ids:
        raise InputError("The text has no [MASK] to fill; an example is: The capital of France is [MASK].")
    words, before = tokenizer.vocabulary.ordinary_ids, len(tokenizer.template.before)
    found = []
    for part in text_parts(ids, tokenizer, model.config.max_seq_length).parts:
        shown = part.window
        asked = [place for place in range(shown.begin, shown.end) if ids[place] == mask]
        if not asked:
            continue
        positions = np.zeros((1, len(part.ids)), bool)
        positions[0, [before + place - shown.first for place in asked]] = True
        last = positions.astype(np.int64) if model.modules.stack.orders else None
        logits, _ = model.forward(np.array([part.ids]), positions=positions, order=last,
                                  forward_only=True)                                          # (masks, V)
        for place, row in zip(asked, softmax_forward(logits[:, words])[0], strict=True):
            best = np.argsort(-row, kind="stable")[:top].tolist()
            found.append([_candidate(tokenizer, ids, place, int(words[i]), float(row[i])) for i in best])
    return found


def _candidate(tokenizer: Tokenizer, ids: list[int], place: int, word: int,
               probability: float) -> Candidate:
    text = tokenizer.decode([*ids[:place], word, *ids[place + 1 :]]).strip()
    return Candidate(tokenizer.vocabulary[word], word, probability, text)
