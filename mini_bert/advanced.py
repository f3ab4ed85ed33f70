"""The names of the original outline for variants, optimisers and training methods, as thin wrappers of config words.

Each of them is a word in a slot; these names choose the words (docs/equivalents.md has the table).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .core.config import ModelConfig
from .core.model import MiniBERT
from .core.params import Parameters
from .core.registry import find, parse_word
from .errors import ConfigError, InputError
from .objectives.objective import CorpusObjective
from .text.masking import Masking
from .training.config import TrainingConfig, make_clipping, make_objective, make_optimiser
from .training.curricula.adaptive import AdaptiveWeights, next_weights
from .workers import workers

__all__ = ["AdvancedMiniBERT", "AdvancedOptimizer", "add_auxiliary_tasks", "implement_adaptive_masking",
           "implement_curriculum_learning"]

_MOST_HIDDEN, _LEAST_HIDDEN = 0.4, 0.15       # for a model that gets no hidden token right, and one that gets all


class AdvancedMiniBERT(MiniBERT):
    """A model whose methods change its config. Parameters that keep their name and shape keep their numbers."""

    def add_relative_position_encoding(self) -> Self:
        """A learned key for each distance in place of the table of positions, as in the preset mini-relative."""
        return self._change(position_embeddings="none", score_terms="relative_keys(reach=16)")

    def implement_rotary_embeddings(self) -> Self:
        """Queries and keys turned by their positions (RoPE), as in the preset mini-rope."""
        return self._change(position_embeddings="none", score_terms="rotary")

    def add_gated_attention(self) -> Self:
        """A gate on the result of each head, as in the preset mini-gated."""
        return self._change(attention="head_gated")

    def _change(self, **settings: Any) -> Self:
        changed = with_settings(self, **settings)
        self.config, self.modules, self.params = changed.config, changed.modules, changed.params
        return self


def with_settings(model: MiniBERT, **settings: Any) -> MiniBERT:
    """A model of a changed config; what has the same name and shape in both has the numbers of `model`."""
    model.params.require_trainable()
    made = MiniBERT(ModelConfig.from_dict(model.config.to_dict() | settings), dtype=model.dtype)
    for name, value in made.params.items():
        if name in model.params and model.params[name].shape == value.shape:
            value[...] = model.params[name]
    made.vocab_digest = model.vocab_digest
    return made


class AdvancedOptimizer:
    """An optimiser put together by methods, before its first step: `AdvancedOptimizer(model.params)`.

    `config()` has the same words for a run. Settings are those of a TrainingConfig, such as weight_decay.
    """

    def __init__(self, params: Parameters, learning_rate: float = 1e-3, **settings: Any):
        self.params, self._made = params, False
        self._inner, self._lookahead, self._clipping = "adamw", "", "norm"
        self._settings = {"learning_rate": learning_rate, **settings}
        self.config()                             # refuses wrong settings

    def implement_lion_optimizer(self) -> Self:
        """Lion instead of AdamW; its learning rate is three to ten times smaller."""
        return self._choose(_inner="lion")

    def add_adaptive_gradient_clipping(self, limit: float = 0.01) -> Self:
        """The gradient of each unit at most `limit` times the norm of its weights, instead of one norm for all."""
        return self._choose(_clipping=f"adaptive(limit={limit})")

    def implement_lookahead_wrapper(self, k: int = 6, alpha: float = 0.5) -> Self:
        """Every k steps, back to `alpha` of the way."""
        return self._choose(_lookahead=f"k={k}, alpha={alpha}")

    def config(self, base: TrainingConfig | None = None) -> TrainingConfig:
        """A training config with these words and settings."""
        word = f"lookahead({self._inner}, {self._lookahead})" if self._lookahead else self._inner
        return replace(TrainingConfig() if base is None else base, optimiser=word, clipping=self._clipping,
                       **self._settings)

    def step(self, gradients: Parameters, *, learning_rate: float | None = None) -> None:
        """Clip the gradients of a mean loss in place, and take a step."""
        if not self._made:
            config = self.config()
            self.optimiser, self.clipping = make_optimiser(config, self.params), make_clipping(config, self.params)
            self._made = True
        with workers(1) as team:
            norm = self.optimiser.grad_norm(gradients, team)
            scale = self.clipping(gradients, norm, 1, team)
            self.optimiser.step(gradients, learning_rate=learning_rate, scale=scale, workers=team)

    def _choose(self, **words: str) -> Self:
        if self._made:
            raise ConfigError("This optimiser has taken steps; choose its parts before the first one.")
        before = {name: getattr(self, name) for name in words}
        vars(self).update(words)
        try:
            make_clipping(self.config(), self.params)         # refuses wrong words and options
        except ConfigError:
            vars(self).update(before)
            raise
        return self


def implement_curriculum_learning(difficulty_schedule: str | Sequence[int] | Mapping[str, Any],
                                  base: TrainingConfig | None = None) -> TrainingConfig:
    """A training config that begins with easier examples.

    `difficulty_schedule` is a curriculum, such as "rarity(pacing=root, start=0.2, until=0.6)": the easiest sequences
    first; a schedule of lengths in tokens, such as "16 until 0.3, 64"; lengths that take equal parts of the run, such
    as [16, 32, 64]; or settings by name, such as {"masking_rate": "0.1 -> 0.2"}.
    """
    schedule = difficulty_schedule
    if isinstance(schedule, str) and not schedule.strip()[:1].isdigit():
        schedule = {"curriculum": schedule}
    if isinstance(schedule, Sequence) and not isinstance(schedule, str):
        if not schedule:
            raise ConfigError("A curriculum needs at least one length.")
        *before, last = schedule
        schedule = ", ".join([*(f"{length} until {round((number + 1) / len(schedule), 6)}"
                                for number, length in enumerate(before)), str(last)])
    settings = schedule if isinstance(schedule, Mapping) else {"max_seq_length": schedule}
    return TrainingConfig.from_dict((TrainingConfig() if base is None else base).to_dict() | dict(settings))


def implement_adaptive_masking(model_performance: float | Callable[[int], float] | npt.ArrayLike,
                               unit: str = "token") -> Masking:
    """Masking by what the model can do.

    `model_performance` is an accuracy at masked tokens, or a function that gives it for a step: 40 % are masked at 0,
    15 % at 1, on a line between. Or it is how often each token of the vocabulary was asked for and how often it was
    found, (2, V): 15 % are masked, and tokens that were not found more often than others. A run counts for itself:
    training.masking_weights.
    """
    if not callable(model_performance) and np.ndim(model_performance):
        return Masking(_LEAST_HIDDEN, unit, weights=_learned(np.asarray(model_performance)))

    def rate(step: int) -> float:
        accuracy: Any = model_performance(step) if callable(model_performance) else model_performance
        if not 0 <= accuracy <= 1:
            raise InputError(f"model_performance must be an accuracy between 0 and 1, not {accuracy}.")
        return _MOST_HIDDEN + (_LEAST_HIDDEN - _MOST_HIDDEN) * float(accuracy)

    rate(0)                                       # refuses a wrong number
    return Masking(rate if callable(model_performance) else rate(0), unit)


def _learned(counts: npt.NDArray[Any]) -> AdaptiveWeights:
    """Weights that have heard of these counts, (2, V)."""
    if counts.ndim != 2 or len(counts) != 2 or counts.dtype.kind not in "iu" or not (counts[1] >= 0).all() \
            or not (counts[1] <= counts[0]).all():
        raise InputError("model_performance must be an accuracy, or two rows of whole numbers: how often each token "
                         "was masked, and how often it was predicted.")
    weights = AdaptiveWeights(np.ones(counts.shape[1], bool))
    table = next_weights(np.full(counts.shape[1], _LEAST_HIDDEN), counts.astype(np.int64), _LEAST_HIDDEN)
    weights.tables = table, table, 0
    return weights


def add_auxiliary_tasks(model: MiniBERT, tasks: Sequence[str] = ("next_sentence", "token_order"), weight: float = 1.0,
                        base: TrainingConfig | None = None) -> tuple[MiniBERT, CorpusObjective[Any, Any]]:
    """The model with the heads that the tasks need, and the objective: hidden words, and each task with this weight.

    Tasks are words of the slot `objective`, such as sentence_order. The model keeps its numbers; new heads are drawn.
    """
    needed: dict[str, Any] = {}
    for task in tasks:
        needed |= find("objective", parse_word(task, "objective").name).named.needs
    lacking = {name: value for name, value in needed.items() if getattr(model.config, name) != value}
    made = with_settings(model, **lacking) if lacking else model
    words = " + ".join(["masked", *(f"{weight} {task}" for task in tasks)])
    config = replace(TrainingConfig() if base is None else base, objective=words).resolved(made.config)
    return made, make_objective(config, made)
