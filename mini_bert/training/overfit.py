"""Overfitting one batch: the quickest proof that a model and its gradients can learn at all.

A model that cannot drive the loss of a single batch to nearly zero has a fault; one that can may still
generalise badly, which is another question.
"""

from dataclasses import replace
from typing import Any

from ..core.model import MiniBERT
from ..text.batches import MLMBatch
from .config import TrainingConfig
from .trainer import Listener, State, Trainer


class _OneBatch:
    def __init__(self, batch: MLMBatch):
        self.batch = batch

    def __getitem__(self, step: int) -> MLMBatch:
        return self.batch


class _Target(Listener):
    """Ends the training when a step's loss is below the target."""

    def __init__(self, target: float, inner: Listener):
        self.target, self.inner, self.loss = target, inner, float("inf")

    def began(self, trainer: Trainer) -> None:
        self.inner.began(trainer)

    def stepped(self, state: State, loss: float) -> None:
        self.loss = loss
        self.inner.stepped(state, loss)
        if loss < self.target:
            state.total_steps = state.step

    def logged(self, record: dict[str, Any]) -> None:
        self.inner.logged(record)


def overfit(model: MiniBERT, batch: MLMBatch, config: TrainingConfig, *, target: float = 0.05,
            listener: Listener | None = None) -> tuple[float, int]:
    """Train on one batch until its loss is below `target` or the steps are over: the last loss, and the steps.

    Ctrl-C raises KeyboardInterrupt.
    """
    watch = _Target(target, listener or Listener())
    settings = replace(config, schedule="constant", eval_every=0, weight_decay=0.0)
    trainer = Trainer(model, _OneBatch(batch), settings, listener=watch)
    state = trainer.train()
    if trainer.interrupted is not None:
        raise KeyboardInterrupt
    return watch.loss, state.step

