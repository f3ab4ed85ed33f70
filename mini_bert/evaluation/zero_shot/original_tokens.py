"""How original a text looks to a model that finds replaced tokens (ELECTRA's discriminator).

    score(text) = sum over its pieces t of log P(t is original) / P(t was replaced) = sum of -logit_t

It is no likelihood: the model has no distribution over words. But of two sentences that differ in a word it says which
one looks more as if nobody had changed it.
"""

from collections.abc import Sequence

import numpy as np

from ...core.arrays import IntArray
from ...core.model import MiniBERT
from ...inference.inputs import require_vocabulary
from ...text.tokenizer import Tokenizer
from .pseudo_likelihood import FloatArray, Likelihoods, ProgressCallback, computed_by_length

_TOKENS = 2048                # per batch


def original_log_odds(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, threads: int = 0,
                      progress: ProgressCallback | None = None) -> Likelihoods:
    """The summed log-odds of each text; of one that is too long, those of its first part."""
    require_vocabulary(model, tokenizer)
    room = model.config.max_seq_length - tokenizer.template.added()
    pieces = [tokenizer.ids(text) for text in texts]
    rows = [tokenizer.with_special(ids[:room]) for ids in pieces]
    odds = token_log_odds(model, rows, threads=threads, progress=progress)
    first, unknown = len(tokenizer.template.before), tokenizer.vocabulary.roles.get("unk", -1)
    totals = np.array([float(odds[i][first : first + len(ids[:room])].sum()) for i, ids in enumerate(pieces)])
    lengths = np.array([len(ids) for ids in pieces], np.int64)
    return Likelihoods({"token": totals}, lengths, int((lengths > room).sum()),
                       sum(unknown in ids for ids in pieces), len(rows))


def token_log_odds(model: MiniBERT, rows: Sequence[Sequence[int]], *, threads: int = 0,
                   progress: ProgressCallback | None = None) -> list[FloatArray]:
    """The log-odds that each token of each row of ids is original."""
    found: list[FloatArray] = [np.zeros(0)] * len(rows)

    def one(some: IntArray) -> FloatArray:
        logits = model.forward(np.array([rows[i] for i in some.tolist()], np.int64), forward_only=True)[0]
        return -logits.astype(np.float64)                                        # (b, T)

    for some, odds in computed_by_length(rows, one, _TOKENS, threads, progress):
        for i, values in zip(some.tolist(), odds, strict=True):
            found[i] = values
    return found
