"""How long a training step of a run takes, relative to a step of the config that all runs share.

Other work on the machine slows both, so what is measured is a ratio: a step of the one and a step of the other in
turns, each in processor time on one thread; the medians over the turns. The steps are spread evenly over the
run, since lengths, batches and masking may change on the way.
"""

from statistics import median
from time import process_time
from typing import Any

import numpy as np

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..text.corpora.corpus import Corpus
from ..text.schedule import Step
from ..training.config import TrainingConfig, make_clipping, make_objective, make_optimiser
from ..training.update import Update
from ..workers import Workers, workers

_WARM_UP, _TURNS = 2, 16

Configs = tuple[ModelConfig, TrainingConfig]


def relative_step_time(run: Configs, shared: Configs, corpus: Corpus) -> float:
    """The time of a step of the run, divided by the time of a step of the shared config."""
    with workers(1) as team:
        ours, theirs = _Steps(*run, corpus, team), _Steps(*shared, corpus, team)
        times = [(ours.seconds(turn), theirs.seconds(turn)) for turn in range(-_WARM_UP, _TURNS)][_WARM_UP:]
    return median(one for one, _ in times) / median(other for _, other in times)


class _Steps:
    """Steps at chosen places of a run, with nothing around them."""

    def __init__(self, model: ModelConfig, training: TrainingConfig, corpus: Corpus, team: Workers):
        training = training.resolved(model)
        self.training = training
        network = MiniBERT(model, seed=0)
        self.objective = make_objective(training, network)
        self.objective.prepare(corpus, training, team, lambda sentence: None)
        self.batches: Any = self.objective.batches(corpus, training)
        self.update = Update(self.objective, make_optimiser(training, self.objective.params), team,
                             clipping=make_clipping(training, self.objective.params))
        self.places = np.linspace(0, training.steps - 1, _TURNS).astype(int).tolist()

    def seconds(self, turn: int) -> float:
        """Of one step, its batch included."""
        step, begin = self.places[turn], process_time()
        self.update.step(self.batches[Step(step, self.training.steps)], (0, step), 1e-4)
        return process_time() - begin
