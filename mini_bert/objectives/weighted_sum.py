"""A weighted sum of objectives: `training.objective: masked + 0.5 sentence_order`.

    total = sum over objectives j of  weight_j  total_j

Every objective makes its own batch of each step, cuts it into its own micro-batches, and keeps the names of its losses
and figures; a step computes the micro-batches of the first objective, then those of the second, numbered one after the
other. Objectives that can read the same pass of the model are put together before: one_pass.py.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.context import DropoutKey
from ..core.model import MiniBERT
from ..core.params import Gradients, Parameters
from ..errors import ConfigError
from ..text.corpora.corpus import Corpus
from .joint_params import join_all
from .objective import Batches, BatchSettings, CorpusObjective, Losses, Team


class Term(NamedTuple):
    weight: float
    objective: CorpusObjective[Any, Any]


class _Of(NamedTuple):
    """Something that belongs to one of the objectives, by its number."""

    term: int
    part: Any


class WeightedSum(CorpusObjective[tuple[Any, ...], Any]):
    """Objectives of one model as one. The main loss is that of the first, or the one that is named."""

    def __init__(self, terms: Sequence[Term], main: str = ""):
        self.objectives = [term.objective for term in terms]
        weights: dict[str, float] = {}
        for weight, objective in terms:
            for name, inner in objective.losses.items():
                if name in weights:
                    raise ConfigError(f"objective: two terms of the sum have a loss {name}; each needs a name of its "
                                      "own.")
                weights[name] = weight * inner
        self.main, self.losses = main or self.objectives[0].main, weights
        if self.main not in weights:
            raise ConfigError(f"main_loss: there is no loss {main!r}; the objective has {', '.join(weights)}.")
        self.params: Parameters = join_all(objective.params for objective in self.objectives)

    # ---------------------------------------------------------------- a step

    def batches(self, corpus: Corpus, config: BatchSettings) -> Batches[tuple[Any, ...]]:
        return _Together([objective.batches(corpus, config) for objective in self.objectives])

    def micro_batches(self, batch: tuple[Any, ...]) -> Sequence[Any]:
        return [_Of(j, part) for j, (objective, own) in enumerate(zip(self.objectives, batch, strict=True))
                for part in objective.micro_batches(own)]

    def tokens(self, batch: tuple[Any, ...]) -> int:
        return sum(objective.tokens(own) for objective, own in zip(self.objectives, batch, strict=True))

    def counts(self, part: Any) -> Mapping[str, int]:
        objective: CorpusObjective[Any, Any] = self.objectives[part.term]
        return objective.counts(part.part)

    def add_gradients(self, part: Any, grads: Gradients, key: DropoutKey | None,
                      factors: Mapping[str, float]) -> Mapping[str, Any]:
        objective: CorpusObjective[Any, Any] = self.objectives[part.term]
        return objective.add_gradients(part.part, grads, key, factors)

    def example(self, rng: np.random.Generator) -> tuple[Any, ...]:
        return tuple(objective.example(rng) for objective in self.objectives)

    # ---------------------------------------------------------------- around it

    def heldout(self, corpus: Corpus, config: BatchSettings) -> list[_Of]:
        return [_Of(j, part) for j, objective in enumerate(self.objectives)
                for part in objective.heldout(corpus, config)]

    def evaluable(self, batch: tuple[Any, ...]) -> list[_Of]:
        return [_Of(j, part) for j, (objective, own) in enumerate(zip(self.objectives, batch, strict=True))
                for part in objective.evaluable(own)]

    def evaluate(self, parts: Sequence[_Of], team: Team) -> dict[str, float]:
        """The figures of every objective; a name that two of them have is put behind the name of the main loss."""
        found: dict[str, float] = {}
        for j, objective in enumerate(self.objectives):
            if own := [part.part for part in parts if part.term == j]:
                for name, value in objective.evaluate(own, team).items():
                    found[f"{objective.main}_{name}" if name in found else name] = value
        return found

    @property
    def _main_term(self) -> int:
        return next(j for j, objective in enumerate(self.objectives) if self.main in objective.losses)

    @property
    def of_words(self) -> bool:       # type: ignore[override]
        return self.objectives[self._main_term].of_words

    def main_parts(self, parts: Sequence[_Of]) -> Sequence[Any]:
        main = self._main_term
        return self.objectives[main].main_parts([part.part for part in parts if part.term == main])

    def prepare(self, corpus: Corpus, config: BatchSettings, team: Team, say: Callable[[str], None]) -> None:
        for objective in self.objectives:
            objective.prepare(corpus, config, team, say)

    def floats(self, sequences: int, masking_rate: float) -> int:
        return max(objective.floats(sequences, masking_rate) for objective in self.objectives)

    @property
    def masks(self) -> bool:          # type: ignore[override]
        return any(objective.masks for objective in self.objectives)

    def noted(self) -> Mapping[str, float]:
        return {name: value for objective in self.objectives for name, value in objective.noted().items()}

    def feedback(self, step: int, losses: Losses, figures: Mapping[str, Any]) -> None:
        for objective in self.objectives:
            objective.feedback(step, {name: losses[name] for name in objective.losses if name in losses}, figures)

    def companions(self) -> Mapping[str, MiniBERT]:
        return {name: model for objective in self.objectives for name, model in objective.companions().items()}

    def state(self) -> dict[str, Any]:
        """Each objective's state under its number."""
        return {f"{j}.{name}": value for j, objective in enumerate(self.objectives)
                for name, value in objective.state().items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        for j, objective in enumerate(self.objectives):
            objective.restore({name.removeprefix(f"{j}."): value for name, value in state.items()
                               if name.startswith(f"{j}.")})


class _Together:
    """The batches of a step, one from each objective."""

    def __init__(self, several: Sequence[Batches[Any]]):
        self.several = several

    def __getitem__(self, step: int) -> tuple[Any, ...]:
        return tuple(batches[step] for batches in self.several)
