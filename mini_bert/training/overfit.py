"""Overfitting one batch: the quickest proof that a model and its gradients can learn at all.

A model that cannot drive the loss of a single batch to nearly zero has a fault; one that can may still
generalise badly, which is another question.
"""

from dataclasses import replace

from ..core.model import MiniBERT
from ..text.batches import MLMBatch
from .config import TrainingConfig
from .loop import Listener, State
from .trainer import Trainer


class _OneBatch:
    def __init__(self, batch: MLMBatch):
        self.batch = batch

    def __getitem__(self, step: int) -> MLMBatch:
        return self.batch


class _Target(Listener):
    """Ends the training when a step's loss is below the target."""

    def __init__(self, target: float):
        self.target, self.loss = target, float("inf")

    def stepped(self, state: State, loss: float) -> bool:
        self.loss = loss
        return loss < self.target


def overfit(model: MiniBERT, batch: MLMBatch, config: TrainingConfig, *, target: float = 0.05,
            listener: Listener | None = None) -> tuple[float, int]:
    """Train on one batch until its loss is below `target` or the steps are over: the last loss, and the steps.

    Ctrl-C raises KeyboardInterrupt.
    """
    reached = _Target(target)
    settings = replace(config, schedule="constant", eval_every=0, weight_decay=0.0)
    trainer = Trainer(model, _OneBatch(batch), settings, listener=[reached, listener or Listener()])
    state = trainer.train()
    if trainer.interrupted is not None:
        raise KeyboardInterrupt
    return reached.loss, state.step
