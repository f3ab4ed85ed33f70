"""Contrastive sentence vectors without labels (SimCSE): a sentence is near itself, and far from others.

    z_i = unit(mean of h over sentence i), z'_i the same of a second pass with other dropout
    loss = - sum over i of ln ( exp(z_i . z'_i / T) / sum over j of exp(z_i . z'_j / T) )        divided once by rows

The other sentences j are those of the same group; see sentences.py. Dropout is what makes the two passes differ, so it
belongs to the objective: the model itself may have none. Derivation: docs/math/contrastive.md
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.config import ModelConfig
from ...core.context import DropoutKey
from ...core.gradcheck import Check
from ...core.model import MiniBERT
from ...core.modules.assembly import Modules
from ...core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from ...core.params import Gradients
from ...core.registry import register
from ...errors import ConfigError
from ..masked import EVAL_SEED
from ..objective import USUAL_PASSES, PassOptions, Team
from .sentences import SentenceBatch, SentenceObjective
from .unit_rows import Pooled, pool_backward, pool_forward, unit_rows_backward, unit_rows_forward


def contrastive_forward(first: Array, second: Array, temperature: float = 0.05) -> tuple[float, Any]:
    """Vectors (n, H) of n sentences and once more -> the summed loss of finding the second among all second ones."""
    z, of_z = unit_rows_forward(first)
    others, of_others = unit_rows_forward(second)
    scores = z @ others.T / temperature                                          # (n, n)
    loss, kept = cross_entropy_forward(scores, np.arange(len(z)))
    return loss, (z, others, of_z, of_others, kept, temperature)


def contrastive_backward(dloss: float, cache: Any) -> tuple[Array, Array]:
    """dloss, a number -> dfirst, dsecond (n, H)."""
    z, others, of_z, of_others, kept, temperature = cache
    dscores = cross_entropy_backward(dloss, kept) / temperature                  # scores = z others^T / T
    return unit_rows_backward(dscores @ others, of_z), unit_rows_backward(dscores.T @ z, of_others)


@register("objective", "contrastive")
class Contrastive(SentenceObjective):
    """Of one model, each sentence twice."""

    main: str = "contrastive"

    def __init__(self, model: MiniBERT, passes: PassOptions = USUAL_PASSES, *, temperature: float = 0.05,
                 dropout: float = 0.1, group: int = 64):
        super().__init__(model, passes, "contrastive", group)
        for name, value, most in (("temperature", temperature, float("inf")), ("dropout", dropout, 1.0)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < most:
                limit = "above 0" if most > 1 else "above 0 and below 1, as it makes the two passes differ"
                raise ConfigError(f"contrastive: {name} must be {limit}, not {value}.")
        self.temperature, self.losses = float(temperature), {self.main: 1.0}
        self.dropping = _with_dropout(model, float(dropout))

    def counts(self, part: SentenceBatch) -> Mapping[str, int]:
        return {self.main: len(part.input_ids)}

    def _vectors(self, part: SentenceBatch, **options: Any) -> tuple[Array, Pooled]:
        """The vectors (2 n, H) of the sentences and, below them, of the same sentences once more.

        Dropout is drawn for every element of a pass, so one pass over both copies drops other elements in each.
        """
        return pool_forward(self.dropping, np.tile(part.input_ids, (2, 1)), np.tile(part.attention_mask, (2, 1)),
                            **options)

    def add_gradients(self, part: SentenceBatch, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, float]:
        vectors, pooled = self._vectors(part, dropout_key=key, **self.passes.keeping)
        n = len(part.input_ids)
        loss, kept = contrastive_forward(vectors[:n], vectors[n:], self.temperature)
        dvectors = np.concatenate(contrastive_backward(factors[self.main], kept))
        pool_backward(dvectors, pooled, self.dropping, grads)
        return {self.main: loss}

    def evaluate(self, parts: Sequence[SentenceBatch], team: Team) -> dict[str, float]:
        """With dropout, unlike other objectives: without it the two vectors of a sentence are one. The same elements
        are dropped in every evaluation. `contrastive_accuracy` is how often a sentence's second vector is the
        nearest to its first."""
        def one(number: int) -> tuple[float, int]:
            part = parts[number]
            vectors, _ = self._vectors(part, dropout_key=(EVAL_SEED, "contrastive", number), forward_only=True)
            n = len(part.input_ids)
            loss, (z, others, *_) = contrastive_forward(vectors[:n], vectors[n:], self.temperature)
            return loss, int(((z @ others.T).argmax(axis=1) == np.arange(n)).sum())

        found, rows = team.map(one, range(len(parts))), sum(len(part.input_ids) for part in parts)
        return {self.main: sum(loss for loss, _ in found) / rows,
                "contrastive_accuracy": sum(right for _, right in found) / rows}

    def floats(self, sequences: int, masking_rate: float) -> int:
        return 2 * super().floats(sequences, masking_rate)


def _with_dropout(model: MiniBERT, rate: float) -> MiniBERT:
    """The same model, with the same parameters in the same memory, whose passes drop this share."""
    made = copy(model)
    made.config = ModelConfig.from_dict({**model.config.to_dict(), "dropout": rate, "attention_dropout": rate})
    made.modules = Modules(made.config)
    return made


CHECKS = {"contrastive": (contrastive_forward, contrastive_backward,
                          [Check("rows", lambda rng: [rng.standard_normal((4, 3)) for _ in range(2)]),
                           Check("warm", lambda rng: [rng.standard_normal((3, 5)) for _ in range(2)],
                                 temperature=1.0)])}
