"""Words for masks: what a masked language model was trained for."""

from typing import NamedTuple

import numpy as np

from ..core.model import MiniBERT
from ..core.ops.softmax import softmax_forward
from ..errors import InputError
from ..text.tokenizer import WordPieceTokenizer
from .inputs import require_vocabulary


class Candidate(NamedTuple):
    """A word for a mask."""

    token: str
    id: int
    probability: float
    text: str                 # the sentence with it, where there is one mask


def fill_mask(model: MiniBERT, tokenizer: WordPieceTokenizer, text: str, top: int = 5) -> list[list[Candidate]]:
    """For each [MASK] of the text, in order, the `top` words that the model finds likeliest there.

    Several masks are filled each by itself, given all of them masked. Special tokens are no words.
    """
    require_vocabulary(model, tokenizer)
    if top < 1:
        raise InputError(f"top must be at least 1, not {top}.")
    ids = tokenizer.encode(text)
    if len(ids) > model.config.max_seq_length:
        raise InputError(f"The text has {len(ids)} tokens; the model takes {model.config.max_seq_length}.")
    array = np.array([ids])
    positions = array == tokenizer.vocabulary.mask
    if not positions.any():
        raise InputError("The text has no [MASK] to fill; write for instance: The capital of France is [MASK].")
    logits, _ = model.forward(array, positions=positions)                 # (masks, V)
    words = tokenizer.vocabulary.ordinary_ids
    probabilities, _ = softmax_forward(logits[:, words])
    single = len(probabilities) == 1
    found = []
    for row in probabilities:
        best = np.argsort(-row, kind="stable")[:top].tolist()
        found.append([_candidate(tokenizer, ids if single else None, int(words[i]), float(row[i])) for i in best])
    return found


def _candidate(tokenizer: WordPieceTokenizer, ids: list[int] | None, word: int, probability: float) -> Candidate:
    mask = tokenizer.vocabulary.mask
    text = "" if ids is None else tokenizer.decode([word if i == mask else i for i in ids[1:-1]])
    return Candidate(tokenizer.vocabulary[word], word, probability, text)
