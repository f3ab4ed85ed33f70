"""Masking for masked language modelling.

In each sequence, 15 % of the tokens are chosen: round(0.15 n) of n (halves round to even), at least one, never a
special token. Of these, 80 % become [MASK], 10 % a random token, and 10 % stay unchanged. The model cannot tell which
tokens it must predict, so it has to represent all of them.

Training uses `Masking`, which can have other shares, and a rate that follows a schedule. Its choice is keyed by
(seed, epoch, sequence), so it changes with the epoch and does not depend on the number of workers. It chooses single
tokens, whole words or spans of tokens.

Some tokens may be chosen more often than others: with weights w, the tokens with the smallest

    key_i = -ln(1 - u_i) / w_i              u_i uniform in [0, 1): the keys are exponentially distributed with rates w_i

are chosen, so each next one is drawn in proportion to the weights of those that are left, without replacement. A word
has the mean weight of its pieces, and a span begins where the mean weight of its tokens draws it. How many tokens are
chosen does not depend on the weights.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..core.registry import check_options, make, parse_word, register
from ..errors import InputError
from ..randomness import keyed_bits
from .vocabulary import Vocabulary

HIDDEN, RANDOM = 0.8, 0.1             # shares of the chosen tokens; the rest is unchanged
MEAN_SPAN, LONGEST_SPAN = 3, 10       # tokens

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
RateSchedule = Callable[[int], float]     # step -> share of tokens to choose, such as a Schedule


class MaskingWeights(Protocol):
    """How likely each token of the vocabulary is to be chosen, relative to the others; it may learn from the model.

    Weights that have learned from steps 1 .. s are in force after step s at the earliest, so that the batches of a few
    steps can be made ahead of time. What it has learned is its state.
    """

    def at(self, step: int) -> Floats | None:
        """The weights (V,) for the batch of a step; None if all are alike."""

    def learn(self, step: int, counts: IntArray, rate: float) -> None:
        """Hear of a step that was taken, the first is 1: how often each token was asked for and how often it was found,
        counts (2, V), and the masking rate."""

    def noted(self) -> dict[str, float]:
        """A few numbers for the log."""

    def state(self) -> dict[str, Any]:
        """Arrays, and values that JSON can hold."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave; without it, begin anew."""


def mask_tokens(input_ids: npt.ArrayLike, vocab_size: int, mask_token_id: int = 4, mask_prob: float = 0.15,
                rng: np.random.Generator | int | None = None, *,
                special_ids: Collection[int] | None = None) -> tuple[IntArray, IntArray, BoolArray]:
    """Mask a batch of ids.

    input_ids (B, T) -> masked ids (B, T), target ids (B, T), which are the original ids, and the chosen positions
    (B, T) as booleans. `rng` is a generator or a seed; None uses NumPy's global generator, which np.random.seed sets.
    Special tokens are never chosen. By default these are 0 for [PAD] and the four ids up to `mask_token_id` for [UNK],
    [CLS], [SEP] and [MASK]: 1 to 4 here, 100 to 103 in BERT's own vocabulary.
    """
    try:
        ids = np.asarray(input_ids)
    except ValueError:
        raise InputError("The rows of input_ids have different lengths; pad them to one length.") from None
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        raise InputError(f"input_ids must be integers of shape (batch, tokens), not {ids.dtype} {ids.shape}.")
    if ids.size and not 0 <= ids.min() <= ids.max() < vocab_size:
        raise InputError(f"input_ids has values from {ids.min()} to {ids.max()}, but the vocabulary only has "
                         f"0 to {vocab_size - 1}.")
    if not 0 <= mask_prob <= 1:
        raise InputError(f"mask_prob must be between 0 and 1, not {mask_prob}.")
    if not 0 <= mask_token_id < vocab_size:
        raise InputError(f"mask_token_id must be from 0 to {vocab_size - 1}, not {mask_token_id}.")
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
        picked = rng.permutation(candidates)[: _mask_count(len(candidates), mask_prob)]
        chosen[row, picked] = True
        draw = rng.random(len(picked))
        others = choices[rng.integers(len(choices), size=len(picked))] if len(choices) else ids[row, picked]
        masked[row, picked] = _replaced(ids[row, picked], draw, mask_token_id, others)
    return masked, ids, chosen


def _mask_count(n: int, share: float) -> int:
    return min(n, max(round(share * n), 1)) if share > 0 else 0


def _ordinary(vocab_size: int, special_ids: Collection[int]) -> BoolArray:
    """By id: not a special token."""
    ordinary = np.ones(vocab_size, bool)
    ordinary[[i for i in special_ids if i < vocab_size]] = False
    return ordinary


def _replaced(ids: IntArray, draw: npt.NDArray[np.float64], mask_id: int, others: IntArray, hidden: float = HIDDEN,
              random: float = RANDOM) -> IntArray:
    """A share of `hidden` [MASK], of `random` the other tokens, the rest unchanged; `draw` is uniform in [0, 1)."""
    return np.where(draw < hidden, mask_id, np.where(draw < hidden + random, others, ids))


@dataclass(frozen=True)
class Masking:
    """How training masks: the share of tokens, or a schedule of it; the unit that is chosen as a whole; and what
    becomes of the chosen tokens. Those that are neither hidden nor random are kept."""

    rate: float | RateSchedule = 0.15
    unit: str = "token"               # token, word or span, or one of your own: the slot masking_unit
    hidden: float = HIDDEN            # share of the chosen tokens that become [MASK]
    random: float = RANDOM            # share that becomes a random token
    weights: MaskingWeights | None = None

    def __post_init__(self) -> None:
        if not (self.hidden >= 0 and self.random >= 0 and self.hidden + self.random <= 1 + 1e-9):
            raise InputError(f"Of the chosen tokens {self.hidden} cannot be hidden and {self.random} random; "
                             "shares are at least 0, and together at most 1.")
        check_options("masking_unit", parse_word(self.unit, "masking_unit"), given=5)
        if not callable(self.rate) and not 0 < self.rate < 1:
            raise InputError(f"The masking rate must be between 0 and 1, not {self.rate}.")

    def __call__(self, ids: IntArray, vocabulary: Vocabulary, *, seed: int, epoch: int,
                 sequences: npt.NDArray[np.int64], step: int = 0) -> tuple[IntArray, BoolArray]:
        """ids (B, T) of the sequences with these numbers (B,) -> masked ids and chosen positions, both (B, T)."""
        rate = self.rate_at(step)
        ordinary = vocabulary.ordinary[ids]
        wanted = np.array([_mask_count(n, rate) for n in ordinary.sum(axis=1).tolist()])

        def bits(purpose: str) -> npt.NDArray[np.uint64]:
            return keyed_bits(sequences, ids.shape[1], seed, "mask", purpose, epoch)

        order = np.where(ordinary, bits("order") >> np.uint64(1), _NEVER)
        table = None if self.weights is None else self.weights.at(step)
        chosen: BoolArray = make("masking_unit", self.unit, order, ordinary, vocabulary.continues[ids], wanted,
                                 None if table is None else table[ids])
        draw = bits("lot") / 2.0**64
        others = vocabulary.ordinary_ids[bits("others") % np.uint64(len(vocabulary.ordinary_ids))]
        shown = _replaced(ids, draw, vocabulary.mask, others, self.hidden, self.random)
        return np.where(chosen, shown, ids), chosen

    def rate_at(self, step: int) -> float:
        """The share of the tokens that is chosen at a step."""
        if not callable(self.rate):
            return self.rate
        rate = self.rate(step)
        if not 0 <= rate <= 1:
            raise InputError(f"The masking schedule must give a rate between 0 and 1; at step {step} it gives {rate}.")
        return rate


# Each unit, a word of the slot masking_unit, is a function that returns the chosen positions (B, T). `order` (B, T) has
# a random number per token, the highest one at special tokens; `continues` (B, T) says which tokens continue a word;
# `wanted` (B,) is how many tokens to choose in each row; `weights` (B, T), if any, are those of the tokens.

_NEVER = np.uint64(2**64 - 1)


@register("masking_unit", "token")
def _tokens(order: npt.NDArray[np.uint64], ordinary: BoolArray, continues: BoolArray, wanted: IntArray,
            weights: Floats | None) -> BoolArray:
    """Single tokens: those with the lowest numbers in `order`, or the lowest keys."""
    if weights is not None:
        uniform = (np.where(ordinary, order, np.uint64(0)) >> np.uint64(10)) / 2.0**53
        keys = -np.log1p(-uniform) / weights              # not negative, so their bits are in the order of their values
        order = np.where(ordinary, keys.view(np.uint64), _NEVER)
    places = np.argsort(order, axis=1, kind="stable")
    chosen = np.zeros(order.shape, bool)
    np.put_along_axis(chosen, places, np.arange(order.shape[1]) < wanted[:, None], axis=1)
    return chosen


@register("masking_unit", "word")
def _words(order: npt.NDArray[np.uint64], ordinary: BoolArray, continues: BoolArray, wanted: IntArray,
           weights: Floats | None) -> BoolArray:
    """Whole words: all pieces share their first piece's number. The last word may be chosen in part."""
    inside = continues & ordinary
    inside[:, 1:] &= ordinary[:, :-1]                         # after a special token a new word begins
    inside[:, 0] = False
    first = np.maximum.accumulate(np.where(inside, 0, np.arange(order.shape[1])), axis=1)
    if weights is not None:
        word = first + order.shape[1] * np.arange(len(order))[:, None]           # its number among all of the batch
        pieces = np.bincount(word.reshape(-1))
        weights = (np.bincount(word.reshape(-1), weights.reshape(-1)) / np.maximum(pieces, 1))[word]
    return _tokens(np.take_along_axis(order, first, axis=1), ordinary, continues, wanted, weights)


@register("masking_unit", "span")
def _spans(order: npt.NDArray[np.uint64], ordinary: BoolArray, continues: BoolArray, wanted: IntArray,
           weights: Floats | None) -> BoolArray:
    """Runs of tokens, of geometric length with mean 3, until there are enough."""
    chosen = np.zeros(order.shape, bool)
    for row, left in enumerate(wanted.tolist()):
        candidates = np.flatnonzero(ordinary[row])
        rng = np.random.default_rng(order[row])
        taken = np.zeros(len(candidates), bool)
        own = None if weights is None else weights[row, candidates]
        while (missing := left - int(taken.sum())) > 0:
            length = min(int(rng.geometric(1 / MEAN_SPAN)), LONGEST_SPAN, missing)
            start = int(rng.integers(1 - length, len(candidates))) if own is None else _weighted_start(own, length, rng)
            taken[max(start, 0) : start + length] = True      # from before 0: all places are equally likely
        chosen[row, candidates[taken]] = True
    return chosen


def _weighted_start(weights: Floats, length: int, rng: np.random.Generator) -> int:
    """The start of a span, from 1 - length on, in proportion to the mean weight of its tokens (n,)."""
    starts, sums = np.arange(1 - length, len(weights)), np.concatenate([[0.0], np.cumsum(weights)])
    begins, ends = np.maximum(starts, 0), np.minimum(starts + length, len(weights))
    shares = np.cumsum((sums[ends] - sums[begins]) / (ends - begins))
    return int(starts[min(np.searchsorted(shares, rng.random() * shares[-1], "right"), len(starts) - 1)])

