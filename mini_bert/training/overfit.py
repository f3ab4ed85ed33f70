"""Overfitting one batch: the quickest proof that a model and its gradients can learn at all.

A model that cannot drive the loss of a single batch to nearly zero has a fault; one that can may still
generalise badly, which is another question.
"""

from dataclasses import replace
from typing import Any

from ..core.model import MiniBERT
from ..objectives.objective import CorpusObjective
from .config import TrainingConfig
from .loop import Listener, State
from .trainer import Trainer


class _OneBatch:
    def __init__(self, batch: Any):
        self.batch = batch

    def __getitem__(self, step: int) -> Any:
        return self.batch


class _Target(Listener):
    """Ends the training when a step's loss is below the target."""

    def __init__(self, target: float):
        self.target, self.loss = target, float("inf")

    def stepped(self, state: State, loss: float) -> bool:
        self.loss = loss
        return loss < self.target


def overfit(model: MiniBERT, batch: Any, config: TrainingConfig, *, target: float = 0.05,
            listener: Listener | None = None,
            objective: CorpusObjective[Any, Any] | None = None) -> tuple[float, int]:
    """Train on one batch until its loss is below `target` or the steps are over: the last loss, and the steps.

    The loss is what the objective minimises, the weighted sum if there are several. Weight decay is off.

    Ctrl-C raises KeyboardInterrupt.
    """
    reached = _Target(target)
    settings = replace(config, schedule="constant", eval_every=0, weight_decay=0.0)
    trainer = Trainer(model, _OneBatch(batch), settings, listener=[reached, listener or Listener()],
                      objective=objective)
    state = trainer.train()
    if trainer.interrupted is not None:
        raise KeyboardInterrupt
    return reached.loss, state.step
