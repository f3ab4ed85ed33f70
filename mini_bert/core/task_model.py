"""An encoder with the head of a task: scores, their loss, and its gradients for every parameter of both.

The head's parameters lie in the same flat buffer as the model's, behind them, so one optimiser moves all.
The MLM head stays where it is, untouched by the task's loss: what fine-tuning does to it can be measured.
"""

from typing import NamedTuple

import numpy as np

from ..errors import ConfigError, InputError
from .arrays import Array, BoolArray, IntArray
from .config import ModelConfig
from .model import DropoutKey, MiniBERT
from .modules.heads.task import TASK_HEADS
from .ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from .params import Gradients, Parameters


class TaskBatch(NamedTuple):
    """Sequences of a task.

    `targets` are the rows' right answers, in the order of the head's scores: (B,) labels of sequences, (M,) of the
    chosen tokens, or (2 B,) starts and then ends. `places` (B, T) are the chosen tokens.
    """

    input_ids: IntArray
    attention_mask: BoolArray
    targets: IntArray
    places: BoolArray | None = None
    token_types: IntArray | None = None


class TaskModel(MiniBERT):
    """A model for a task, from a trained model or a new one. `dropout` is of the head alone."""

    def __init__(self, model: MiniBERT, head: str, outputs: int, *, dropout: float = 0.0, seed: int = 0):
        if head not in TASK_HEADS:
            raise ConfigError(f"There is no head {head!r} for a task; choose one of {', '.join(TASK_HEADS)}.")
        if outputs < 1:
            raise ConfigError(f"A task needs at least one label, not {outputs}.")
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be in [0, 1), not {dropout}.")
        self.config, self.dtype, self.parts, self.training = model.config, model.dtype, model.parts, False
        self.vocab_digest = model.vocab_digest
        self.head_name, self.task = head, TASK_HEADS[head](model.config, outputs, dropout)
        self.params = Parameters([*self.parts.layout(), *self.task.layout()], self.dtype)
        self.params.initialise(seed)
        for name, value in model.params.items():
            self.params[name][...] = value

    def encoder(self) -> MiniBERT:
        """The model without the task's head."""
        model = MiniBERT(self.config, dtype=self.dtype, seed=None)
        for name in model.params:
            model.params[name][...] = self.params[name]
        model.vocab_digest = self.vocab_digest
        return model

    def scores(self, batch: TaskBatch) -> Array:
        """The head's scores (N, C), a row for each answer."""
        reads = self._reads(batch)
        hidden, _ = self.encode(batch.input_ids, batch.attention_mask, token_types=batch.token_types, positions=reads,
                                dropout_key=("scores",) if self.training else None, recompute=True)
        return self.task.forward(self.params, hidden, reads, None)[0]

    def scores_by_sequence(self, batch: TaskBatch) -> list[Array]:
        """The same, sequence by sequence: (answers, C), or (2, T) for spans."""
        return self.task.by_sequence(self.scores(batch), self._reads(batch))

    def add_gradients(self, batch: TaskBatch, grads: Gradients, dropout_key: DropoutKey | None = None, *,
                      recompute: bool = False) -> tuple[float, int]:
        """The summed loss over the batch's answers and their number; adds the gradients of the sum to `grads`."""
        reads = self._reads(batch)
        hidden, cache = self.encode(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                    positions=reads, dropout_key=dropout_key, recompute=recompute)
        rng = self._dropout(dropout_key, "task")("head") if self.task.rate and dropout_key is not None else None
        scores, head = self.task.forward(self.params, hidden, reads, rng)
        if len(scores) != len(batch.targets):
            raise InputError(f"The batch has {len(batch.targets)} targets; the head gives {len(scores)} answers.")
        loss, loss_cache = cross_entropy_forward(scores, batch.targets)
        dhidden = self.task.backward(cross_entropy_backward(1.0, loss_cache), head, grads)
        self.encode_backward(dhidden, cache, grads, forget=True)
        return loss, len(scores)

    def _reads(self, batch: TaskBatch) -> BoolArray:
        mask = np.asarray(batch.attention_mask, bool)
        return self.task.reads(mask, batch.places)


def with_dropout(model: MiniBERT, dropout: float) -> MiniBERT:
    """The same parameters in a model that drops so much of them in training: models ship without dropout."""
    config = ModelConfig.from_dict({**model.config.to_dict(), "dropout": dropout, "attention_dropout": dropout})
    made = MiniBERT(config, dtype=model.dtype, seed=None)
    made.params.flat[...] = model.params.flat
    return made
