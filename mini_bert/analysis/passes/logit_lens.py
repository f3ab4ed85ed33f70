"""The logit lens: what the model would predict if it stopped after each layer.

Every layer's hidden states go through the final LayerNorm and the head, which were trained for the last one's alone.
The last row of the lens is the model's own prediction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...core.arrays import Array
from ...core.model import MiniBERT
from ...core.ops.softmax import softmax_forward
from ...errors import InputError
from ...evaluation.metrics import target_ranks
from ...evaluation.probabilities import Floats, entropy, log_softmax
from ...text.tokenizer import Tokenizer
from .sequences import masks_in, read_sentence


class Guess(NamedTuple):
    token: str
    id: int
    probability: float


@dataclass(frozen=True, eq=False)
class LogitLens:
    """Predictions by layer, embeddings first, at some positions."""

    names: list[str]                      # embeddings, hidden_0, ...
    positions: list[int]
    logits: Array                         # (L + 1, P, V)

    @property
    def probabilities(self) -> Array:
        return softmax_forward(self.logits)[0]

    @property
    def entropy(self) -> Floats:
        """Of each prediction (L + 1, P), in nats: ln V for no idea, 0 for certainty."""
        return entropy(self.probabilities)

    @property
    def divergence(self) -> Floats:
        """From each layer's prediction to the last one's (L + 1, P): KL(last | layer), in nats."""
        logs = log_softmax(self.logits)
        divergence: Floats = (np.exp(logs[-1]) * (logs[-1] - logs)).sum(axis=-1)
        return divergence

    def target(self, targets: Sequence[int]) -> tuple[Floats, npt.NDArray[np.int64]]:
        """The probability and the rank (1 is first) of one id for each position, by layer (L + 1, P)."""
        ids = np.asarray(targets)
        if ids.shape != (len(self.positions),):
            raise InputError(f"There are {len(self.positions)} positions, but targets of shape {ids.shape}.")
        chances = self.probabilities[:, np.arange(len(ids)), ids].astype(np.float64)
        return chances, 1 + np.stack([target_ranks(layer, ids).above for layer in self.logits])

    def top(self, tokenizer: Tokenizer, count: int = 5) -> list[list[list[Guess]]]:
        """The likeliest pieces by layer and position."""
        if count < 1:
            raise InputError(f"count must be at least 1, not {count}.")
        size, p = len(tokenizer), self.probabilities
        scores, count = self.logits[..., :size], min(count, size)
        best = np.sort(np.argpartition(scores, -count, axis=-1)[..., -count:], axis=-1)       # then ties go by id
        order = np.argsort(-np.take_along_axis(scores, best, -1), axis=-1, kind="stable")
        best = np.take_along_axis(best, order, -1)
        return [[[Guess(tokenizer.vocabulary[i], i, float(p[layer, place, i])) for i in row.tolist()]
                 for place, row in enumerate(rows)] for layer, rows in enumerate(best)]

    def to_dict(self, tokenizer: Tokenizer, count: int = 5) -> dict[str, Any]:
        return {"names": self.names, "positions": self.positions, "entropy": self.entropy.tolist(),
                "divergence": self.divergence.tolist(),
                "top": [[[guess._asdict() for guess in row] for row in rows] for rows in self.top(tokenizer, count)]}


def logit_lens(model: MiniBERT, ids: npt.ArrayLike, positions: Sequence[int] | None = None, *,
               types: npt.NDArray[np.int64] | None = None) -> LogitLens:
    """The lens of one sequence of ids (T,), at all positions unless some are chosen."""
    if not model.modules.predicts_words:
        raise InputError("This model has no MLM head, so its layers predict nothing.")
    row = np.asarray(ids)
    kinds = None if types is None else types[None]
    _, cache = model.encode(row[None], token_types=kinds, forward_only=True)     # of a layer its output alone is kept
    chosen = list(range(len(row))) if positions is None else [int(p) for p in positions]
    if not chosen or min(chosen) < 0 or max(chosen) >= len(row):
        raise InputError(f"positions must be some of 0 to {len(row) - 1}, not {chosen}.")
    names = ["embeddings", *(f"hidden_{i}" for i in range(len(model.modules.stack.layers)))]
    return LogitLens(names, chosen, np.stack([lens_logits(model, cache[name][0][chosen]) for name in names]))


def lens_logits(model: MiniBERT, hidden: Array) -> Array:
    """Hidden rows (P, H) of any layer -> logits (P, V)."""
    if model.modules.final_ln is not None:
        hidden, _ = model.modules.final_ln.forward(model.params, hidden)
    return model.logits_of(hidden)


def lens_of_text(model: MiniBERT, tokenizer: Tokenizer, text: str, *, mask: Sequence[int] = (),
                 positions: Sequence[int] | None = None) -> LogitLens:
    """The lens of a text, by default at its [MASK]s, or everywhere if it has none."""
    sentence = read_sentence(model, tokenizer, text, mask=mask)
    asked = sorted({*masks_in(sentence.ids, tokenizer), *sentence.positions})
    return logit_lens(model, sentence.ids, positions if positions is not None else asked or None)
