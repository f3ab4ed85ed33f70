"""Many texts through a model, forward only, and no padding anywhere.

The texts are sorted by length and cut into passes of equal numbers of tokens, which two or more threads take, each with
BLAS at one thread. In a pass the texts of one length are a group: all tokens of all groups go through linear layers,
norms and activations together, as rows, and attention reads one group after the other (MiniBERT.encode_groups). What a
caller gets is a rectangle (B, T) without a mask.

Work for one pass alone, such as one short text, takes the direct way: no threads, and BLAS with its own.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..core.arrays import Array, BoolArray, IntArray
from ..core.cache import Cache
from ..core.inputs import Group
from ..core.model import MiniBERT
from ..errors import InputError
from ..workers import Workers, workers

# Tokens of a pass. With half as many, BLAS spends a tenth more time on arranging the matrices; with twice as many, a
# layer does not stay in the processor's cache, and a small batch does not fill the threads.
_MOST, _LEAST = 512, 128
MOST_TEXTS = 256

Use = Callable[[IntArray, Array, Cache], None]
Select = Callable[[IntArray, IntArray], BoolArray]


def read(model: MiniBERT, rows: Sequence[Sequence[int]], use: Use, *, types: Sequence[Sequence[int]] | None = None,
         select: Select | None = None, team: Workers | None = None, threads: int = 0,
         batch_size: int = MOST_TEXTS) -> None:
    """Run the model over rows of ids, and call `use(numbers, hidden, cache)` for each group of rows of one length.

    `numbers` (B,) are the indices of the rows, hidden (B, T, H) their last hidden states, and the cache has the outputs
    of all layers by name. With `select(numbers, ids)`, a mask (B, T), hidden is (M, H), the rows of the selected
    tokens, as of `encode`. `use` is called from several threads, those of the team or `threads` (0 for all cores).
    `batch_size` is the most texts that are in one pass.
    """
    def one(groups: list[IntArray]) -> None:
        made = []
        for numbers in groups:
            ids = np.array([rows[i] for i in numbers.tolist()])
            made.append(Group(ids, None if types is None else np.array([types[i] for i in numbers.tolist()]),
                              None if select is None else select(numbers, ids)))
        for numbers, (hidden, cache) in zip(groups, model.encode_groups(made), strict=True):
            use(numbers, hidden, cache)

    work = passes([len(row) for row in rows], batch_size)
    if team is not None:
        team.map(one, work)
    elif len(work) < 2:
        for groups in work:
            one(groups)
    else:
        with workers(threads) as made:
            made.map(one, work)


def passes(lengths: Sequence[int], batch_size: int = MOST_TEXTS) -> list[list[IntArray]]:
    """An even number of passes of about the same number of tokens, the longest texts first; each is the indices of its
    texts, group by group.

    The number of threads is no matter, so it changes no bit. What else is in a pass does change last digits, as BLAS
    chooses its way to multiply by the number of rows.
    """
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, not {batch_size}.")
    sizes = np.asarray(lengths, np.int64)
    order = np.argsort(-sizes, kind="stable")
    ends = np.cumsum(sizes[order])
    total = int(ends[-1]) if len(ends) else 0
    count = 1 if total < 2 * _LEAST else min(2 * -(-total // (2 * _MOST)), len(order))
    borders = np.searchsorted(ends, np.arange(1, count) * (total / max(count, 1)))
    found: list[list[IntArray]] = []
    for share in np.split(order, borders):
        for part in (share[start : start + batch_size] for start in range(0, len(share), batch_size)):
            found.append(list(np.split(part, np.flatnonzero(np.diff(sizes[part])) + 1)))
    return found
