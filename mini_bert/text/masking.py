"""Masking for masked language modelling.

Of each sequence, 15 % of the ordinary tokens are chosen: round(0.15 n) of n (a half goes to the even
number), at least one, never a special token. Of those, 80 % become [MASK], 10 % a random token and 10 % stay
as they are: the model cannot tell which tokens it will be asked about, so it has to represent them all.

`Masking` is what training uses. Its choice for a sequence is keyed by (seed, epoch, sequence), so it is new
in every epoch and the same on any number of workers. What is chosen can be single tokens, whole words or
spans of tokens.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..randomness import generator
from .vocabulary import Vocabulary

MASKED, RANDOM = 0.8, 0.1             # shares of the chosen tokens; the rest stays
MEAN_SPAN, LONGEST_SPAN = 3, 10       # tokens, for masking="span"

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Schedule = Callable[[int], float]     # step -> the share of tokens to choose


def mask_tokens(input_ids: npt.ArrayLike, vocab_size: int, mask_token_id: int = 4, mask_prob: float = 0.15,
                rng: np.random.Generator | int | None = None, *,
                special_ids: Collection[int] | None = None) -> tuple[IntArray, IntArray, BoolArray]:
    """Choose and hide tokens of a batch.

    input_ids (B, T) -> masked ids (B, T), target ids (B, T), which are the ids as they were, and the chosen
    positions (B, T) as booleans. A seed as `rng` gives the same choice each time; None follows NumPy's global
    generator, which np.random.seed sets. Special tokens are never chosen; unless they are named, they are 0 for
    [PAD] and [UNK] [CLS] [SEP] [MASK] in a row: 1 to 4 here, 100 to 103 in BERT's own vocabulary.
    """
    try:
        ids = np.asarray(input_ids)
    except ValueError:
        raise InputError("input_ids has rows of different lengths; pad them to one length.") from None
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise InputError(f"input_ids must be whole numbers of shape (batch, tokens), not {ids.dtype} {ids.shape}.")
    if ids.size and not 0 <= ids.min() <= ids.max() < vocab_size:
        raise InputError(f"input_ids has values from {ids.min()} to {ids.max()}; "
                         f"the vocabulary has 0 to {vocab_size - 1}.")
    if not 0 <= mask_prob <= 1:
        raise InputError(f"mask_prob must be between 0 and 1, not {mask_prob}.")
    if not 0 <= mask_token_id < vocab_size:
        raise InputError(f"mask_token_id={mask_token_id} is not in a vocabulary of {vocab_size}.")
    if rng is None:
        rng = int(np.random.randint(2**31))  # noqa: NPY002
    rng = np.random.default_rng(rng)
    ids = ids.astype(np.int64)
    if special_ids is None:
        special_ids = {0, *range(max(mask_token_id - 3, 0), mask_token_id + 1)}
    ordinary = _ordinary(vocab_size, special_ids)
    masked, chosen = ids.copy(), np.zeros(ids.shape, bool)
    choices = np.flatnonzero(ordinary)
    for row in range(len(ids)):
        candidates = np.flatnonzero(ordinary[ids[row]])
        picked = rng.permutation(candidates)[: _how_many(len(candidates), mask_prob)]
        chosen[row, picked] = True
        masked[row, picked] = _replaced(ids[row, picked], mask_token_id, choices, rng)
    return masked, ids, chosen


def _how_many(n: int, share: float) -> int:
    return min(n, max(round(share * n), 1)) if share > 0 else 0


def _ordinary(vocab_size: int, special_ids: Collection[int]) -> BoolArray:
    """By id, whether it is a word of the language."""
    ordinary = np.ones(vocab_size, bool)
    ordinary[[i for i in special_ids if i < vocab_size]] = False
    return ordinary


def _replaced(ids: IntArray, mask_id: int, choices: npt.NDArray[np.int64], rng: np.random.Generator) -> IntArray:
    """80 % [MASK], 10 % a random one of the choices, 10 % as they were."""
    lot = rng.random(len(ids))
    others = choices[rng.integers(len(choices), size=len(ids))] if len(choices) else ids
    return np.where(lot < MASKED, mask_id, np.where(lot < MASKED + RANDOM, others, ids))


@dataclass(frozen=True)
class Masking:
    """How training masks: the share of tokens, and what is chosen together.

    `rate` may be a schedule, a function of the step.
    """

    rate: float | Schedule = 0.15
    unit: str = "token"               # token, word or span

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise InputError(f"masking unit {self.unit!r} is not a choice; choose one of {', '.join(_UNITS)}.")
        if not callable(self.rate) and not 0 < self.rate < 1:
            raise InputError(f"The masking rate must be between 0 and 1, not {self.rate}.")

    def __call__(self, ids: IntArray, vocabulary: Vocabulary, *, seed: int, epoch: int,
                 sequences: npt.NDArray[np.int64], step: int = 0) -> tuple[IntArray, BoolArray]:
        """ids (B, T) and the number of each sequence -> masked ids and chosen positions (B, T)."""
        rate = self._rate(step)
        choose = _UNITS[self.unit]
        masked, chosen = ids.copy(), np.zeros(ids.shape, bool)
        for row, number in enumerate(sequences.tolist()):
            rng = generator(seed, "mask", epoch, number)
            candidates = np.flatnonzero(vocabulary.ordinary[ids[row]])
            picked = choose(candidates, vocabulary.continues[ids[row]], _how_many(len(candidates), rate), rng)
            chosen[row, picked] = True
            masked[row, picked] = _replaced(ids[row, picked], vocabulary.mask, vocabulary.ordinary_ids, rng)
        return masked, chosen

    def _rate(self, step: int) -> float:
        if not callable(self.rate):
            return self.rate
        rate = self.rate(step)
        if not 0 <= rate <= 1:
            raise InputError(f"The masking schedule gives {rate} at step {step}; it must be between 0 and 1.")
        return rate


def _tokens(candidates: IntArray, continues: BoolArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Single tokens."""
    return rng.permutation(candidates)[:wanted]


def _words(candidates: IntArray, continues: BoolArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Whole words: a piece is chosen with all others of its word; the last word may be cut to the number."""
    starts = ~continues[candidates]
    starts[:1] = True
    word = np.cumsum(starts) - 1
    order = rng.permutation(int(word[-1]) + 1) if len(word) else word
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return candidates[np.argsort(rank[word], kind="stable")][:wanted]


def _spans(candidates: IntArray, continues: BoolArray, wanted: int, rng: np.random.Generator) -> IntArray:
    """Runs of tokens, geometric lengths with mean 3, until there are enough."""
    taken = np.zeros(len(candidates), bool)
    while (left := wanted - int(taken.sum())) > 0:
        length = min(int(rng.geometric(1 / MEAN_SPAN)), LONGEST_SPAN, left)
        start = int(rng.integers(1 - length, len(candidates)))    # from before the beginning: all places are alike
        taken[max(start, 0) : start + length] = True
    return candidates[taken]


_UNITS = {"token": _tokens, "word": _words, "span": _spans}
