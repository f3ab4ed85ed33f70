"""An encoder with the head of a task: scores, their loss, and its gradients for every parameter of both.

The head's parameters are in the same flat buffer as the model's, behind them, so one optimiser moves all.
The MLM head stays where it is, untouched by the task's loss: what fine-tuning does to it can be measured.
"""

from typing import NamedTuple

import numpy as np

from ..errors import ConfigError, InputError
from .arrays import Array, BoolArray, IntArray
from .config import ModelConfig
from .context import DropoutKey
from .model import MiniBERT
from .modules.heads.tasks import TaskHead
from .ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from .params import Gradients, Parameters
from .registry import make


class TaskBatch(NamedTuple):
    """Sequences of a task.

    `targets` are the right answers, in the order of the head's scores: (B,) labels of sequences, (M,) of the
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
        if outputs < 1:
            raise ConfigError(f"A task needs at least one label, not {outputs}.")
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be in [0, 1), not {dropout}.")
        self.config, self.dtype, self.modules = model.config, model.dtype, model.modules
        self.vocab_digest, self.source = model.vocab_digest, model.source
        self.head_name = head
        self.task: TaskHead = make("task_head", head, model.config, outputs, dropout)
        self.params = Parameters([*self.modules.layout(), *self.task.layout()], self.dtype)
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
        """The head's scores (N, C), one row per answer."""
        hidden, cache = self.encode(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                    positions=self._reads(batch), forward_only=True)
        return self.task.forward(self.params, hidden, cache.ctx)[0]

    def scores_by_sequence(self, batch: TaskBatch) -> list[Array]:
        """The same, sequence by sequence: (answers, C), or (2, T) for spans."""
        return self.task.by_sequence(self.scores(batch), self._reads(batch))

    def add_gradients(self, batch: TaskBatch, grads: Gradients, dropout_key: DropoutKey | None = None, *,
                      recompute: bool = False, last: bool = False, factor: float = 1.0) -> tuple[float, int]:
        """The summed loss over the batch's answers and their number; adds `factor` times its gradients to `grads`."""
        hidden, cache = self.encode(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                    positions=self._reads(batch), dropout_key=dropout_key, recompute=recompute)
        ctx = cache.ctx.in_part("task")
        scores, head = self.task.forward(self.params, hidden, ctx)
        if len(scores) != len(batch.targets):
            raise InputError(f"The batch has {len(batch.targets)} targets; the head gives {len(scores)} answers.")
        loss, loss_cache = cross_entropy_forward(scores, batch.targets)
        dhidden = self.task.backward(cross_entropy_backward(factor, loss_cache), head, grads, ctx)
        self.encode_backward(dhidden, cache, grads, forget=True, last=last)
        return loss, len(scores)

    def _reads(self, batch: TaskBatch) -> BoolArray:
        mask = np.asarray(batch.attention_mask, bool)
        return self.task.reads(mask, batch.places)


def with_dropout(model: MiniBERT, dropout: float) -> MiniBERT:
    """The same parameters in a model that drops this share in training: models ship without dropout."""
    config = ModelConfig.from_dict({**model.config.to_dict(), "dropout": dropout, "attention_dropout": dropout})
    made = MiniBERT(config, dtype=model.dtype, seed=None)
    made.params.flat[...] = model.params.flat
    return made
