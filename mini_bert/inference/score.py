"""Pseudo-log-likelihood: the probability that a model assigns to a text, token by token.

    PLL(text) = sum over its tokens t of log p(t | the text with t masked)

Of a text longer than the model reads at once, each token is masked in its window: see windows.py.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.cache import Cache
from ..core.model import MiniBERT
from ..core.ops.cross_entropy import target_losses
from ..errors import InputError
from ..text.tokenizer import Tokenizer
from .inputs import Progress, require_vocabulary
from .ragged import MOST_TEXTS, read
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


def score(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, batch_size: int = MOST_TEXTS,
          threads: int = 0, progress: Progress | None = None) -> list[Score]:
    """The score of each text; of n tokens it takes n sequences of its window, at most `batch_size` in a pass."""
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
            logs += _masked_one_by_one(model, tokenizer, part.ids, places, batch_size, threads)
        scores.append(Score(float(sum(logs)), [tokenizer.vocabulary[i] for i in ids], logs))
        if progress is not None:
            progress(number + 1)
    return scores


def _masked_one_by_one(model: MiniBERT, tokenizer: Tokenizer, ids: list[int], places: range, batch_size: int,
                       threads: int) -> list[float]:
    model.require_words()
    rows = [[*ids[:place], tokenizer.vocabulary.mask, *ids[place + 1 :]] for place in places]
    logs = np.empty(len(rows))

    def use(numbers: IntArray, hidden: Array, _: Cache) -> None:
        logs[numbers] = -target_losses(model.logits_of(hidden), np.array(ids)[places.start + numbers])

    read(model, rows, use, batch_size=batch_size, threads=threads,
         select=lambda numbers, read: np.arange(read.shape[1]) == (places.start + numbers)[:, None])
    found: list[float] = logs.tolist()
    return found
