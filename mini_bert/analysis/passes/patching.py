"""Activation patching: which activations carry the difference between two texts.

Two texts of equal length differ in a word, and the model answers differently. The pass over one of them, the
corrupted one, is run again with an activation of the other, the clean one, put in its place; what that gives back of
the difference between two answers' logits is the activation's effect: 0 for nothing, 1 for all of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array, IntArray
from ...core.hooks import Hook
from ...core.inputs import check_ids
from ...core.model import MiniBERT
from ...errors import InputError
from ...evaluation.probabilities import Floats
from ...evaluation.result import Result
from ...text.tokenizer import Tokenizer
from .forward_steps import hooked_values
from .sequences import masks_in, read_sentence, row_asked

SITES = ("hidden", "attention_output", "ffn_output")


@dataclass(frozen=True, eq=False)
class Patching(Result):
    """Logit differences (answer less other) after patching one site, by layer and position."""

    also = ("effect", "effect_whole")

    site: str
    clean: float
    corrupted: float
    patched: Floats                       # (L, T), one position of one layer at a time
    patched_whole: Floats                 # (L,), all positions of a layer
    tokens: tuple[list[str], list[str]] | None = None         # of the clean and the corrupted text

    @property
    def effect(self) -> Floats:
        """(L, T): the share of the difference between the clean and the corrupted run that is back."""
        return self._share(self.patched)

    @property
    def effect_whole(self) -> Floats:
        return self._share(self.patched_whole)

    def _share(self, differences: Floats) -> Floats:
        if self.clean == self.corrupted:
            raise InputError("The two texts give the same logit difference, so there is nothing to restore.")
        share: Floats = (differences - self.corrupted) / (self.clean - self.corrupted)
        return share


def replacing(changes: Mapping[str, Callable[[Array], Array]]) -> Hook:
    """A hook that passes a copy of each named value to its function and continues with the result."""
    return lambda name, value: changes[name](value.copy()) if name in changes else value


def patch_activations(model: MiniBERT, clean: npt.ArrayLike, corrupted: npt.ArrayLike, position: int, answer: int,
                      other: int, *, site: str = "hidden") -> Patching:
    """Patch `site` of each layer into the corrupted run (T,), read at `position` as answer's logit less other's."""
    if not model.modules.predicts_words:
        raise InputError("This model has no MLM head, so there are no logits to compare.")
    if site not in SITES:
        raise InputError(f"There is no site {site!r} to patch; choose {', '.join(SITES)}.")
    V = model.config.vocab_size
    good, bad = (check_ids(np.asarray(ids)[None], V, name, "the vocabulary")[0]
                 for ids, name in ((clean, "clean"), (corrupted, "corrupted")))
    T = len(good)
    if len(bad) != T:
        raise InputError(f"Patching goes position by position: the texts have {T} and {len(bad)} tokens.")
    if not 0 <= position < T:
        raise InputError(f"There is no position {position}; the texts' tokens are at 0 to {T - 1}.")
    for word in (answer, other):
        if not 0 <= word < V:
            raise InputError(f"There is no piece {word}; the vocabulary's ids are 0 to {V - 1}.")
    values, _ = hooked_values(model, good[None])

    def difference(ids: IntArray, changes: Mapping[str, Callable[[Array], Array]]) -> Floats:
        hidden, _ = model.encode(ids, hook=replacing(changes))
        logits = model.logits_of(np.ascontiguousarray(hidden[:, position]))
        found: Floats = logits[:, answer].astype(np.float64) - logits[:, other]
        return found

    each = np.tile(bad, (T + 1, 1))                       # sequence t has position t patched, the last one all of them
    here = np.arange(T)
    rows = []
    for layer in range(model.config.num_layers):
        name = f"{site}_{layer}"

        def patch(value: Array, source: Array = values[name]) -> Array:
            grid = value.reshape(T + 1, T, -1)
            grid[here, here] = source
            grid[T] = source
            return value

        rows.append(difference(each, {name: patch}))
    found = np.stack(rows)
    return Patching(site, float(difference(good[None], {})[0]), float(difference(bad[None], {})[0]), found[:, :T],
                    found[:, T])


def patch_texts(model: MiniBERT, tokenizer: Tokenizer, clean: str, corrupted: str, answer: str | int,
                other: str | int, *, position: int | None = None, mask: Sequence[int] = (),
                site: str = "hidden") -> Patching:
    """As `patch_activations`, of two texts, read at their [MASK] unless another position is given."""
    texts = [read_sentence(model, tokenizer, text, mask=mask) for text in (clean, corrupted)]
    if position is None:
        masks = masks_in(texts[0].ids, tokenizer)
        if len(masks) != 1:
            raise InputError(f"The clean text has {len(masks)} [MASK]s; say at which position the answers are read.")
        position = masks[0]
    row = row_asked(model, position)
    words = [read_sentence(model, tokenizer, clean, targets={position: word}).targets[row] for word in (answer, other)]
    found = patch_activations(model, texts[0].ids, texts[1].ids, row, *words, site=site)
    return Patching(**{**vars(found), "tokens": (texts[0].tokens, texts[1].tokens)})
