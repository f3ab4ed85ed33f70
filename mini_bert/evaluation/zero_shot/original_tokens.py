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
from ...inference.windows import text_parts
from ...text.tokenizer import Tokenizer
from .pseudo_likelihood import FloatArray, Likelihoods, ProgressCallback, computed_by_length

_TOKENS = 2048                # per batch


def original_log_odds(model: MiniBERT, tokenizer: Tokenizer, texts: Sequence[str], *, threads: int = 0,
                      progress: ProgressCallback | None = None) -> Likelihoods:
    """The summed log-odds of each text; of one that is too long, each token's are those of its window."""
    require_vocabulary(model, tokenizer)
    pieces = [tokenizer.ids(text) for text in texts]
    read = [text_parts(ids, tokenizer, model.config.max_seq_length).parts for ids in pieces]
    rows = [part.ids for parts in read for part in parts]
    odds = iter(token_log_odds(model, rows, threads=threads, progress=progress))
    before, unknown = len(tokenizer.template.before), tokenizer.vocabulary.roles.get("unk", -1)
    totals = np.array([sum(float(next(odds)[before + part.window.begin - part.window.first :
                                            before + part.window.end - part.window.first].sum()) for part in parts)
                       for parts in read])
    lengths = np.array([len(ids) for ids in pieces], np.int64)
    return Likelihoods({"token": totals}, lengths, sum(len(parts) > 1 for parts in read),
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
