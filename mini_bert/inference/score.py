"""Pseudo-log-likelihood: the probability that a model assigns to a text, token by token.

    PLL(text) = sum over its tokens t of log p(t | the text with t masked)

Of a text longer than the model reads at once, each token is masked in its window: see windows.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.model import MiniBERT
from ..core.ops.cross_entropy import target_losses
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .inputs import Progress, pad_sequences, require_vocabulary
from .windows import text_parts


class Score(NamedTuple):
    """The pseudo-log-likelihood of a text, and the log-probability of each token."""

    total: float
    tokens: list[str]
    log_probabilities: list[float]

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-probability per token."""
        return float(np.exp(-self.total / len(self.tokens))) if self.tokens else float("nan")


def score(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, batch_size: int = 32,
          progress: Progress | None = None) -> list[Score]:
    """The score of each text; a text of n tokens takes n forward passes of its window, `batch_size` at a time."""
    if isinstance(texts, str):
        raise InputError("score takes a list of texts; put a single text into a list.")
    require_vocabulary(model, tokenizer)
    scores = []
    for number, text in enumerate(texts):
        ids, logs = tokenizer.ids(text), list[float]()
        before = len(tokenizer.template.before)
        for part in text_parts(ids, tokenizer, model.config.max_seq_length).parts if ids else ():
            shown = part.window
            places = range(before + shown.begin - shown.first, before + shown.end - shown.first)      # no added tokens
            logs += [value for start in range(0, len(places), batch_size)
                     for value in _masked_one_by_one(model, tokenizer, part.ids, places[start : start + batch_size])]
        scores.append(Score(float(sum(logs)), [tokenizer.vocabulary[i] for i in ids], logs))
        if progress is not None:
            progress(number + 1)
    return scores


def _masked_one_by_one(model: MiniBERT, tokenizer: Tokenizer, ids: list[int], places: range) -> list[float]:
    model.require_words()
    rows, mask = pad_sequences([ids] * len(places), tokenizer.vocabulary.pad)
    positions = np.zeros(rows.shape, bool)
    positions[np.arange(len(places)), list(places)] = True
    targets = rows[positions]
    rows[positions] = tokenizer.vocabulary.mask
    logits, _ = model.forward(rows, mask, positions=positions, forward_only=True)         # (places, V)
    found: list[float] = (-target_losses(logits, targets)).tolist()
    return found
