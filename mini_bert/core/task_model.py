"""An encoder with the head of a task: scores, their loss, and its gradients for every parameter of both.

The head's parameters are in the same flat buffer as the model's, behind them, so one optimiser moves all.
The MLM head stays where it is, untouched by the task's loss: what fine-tuning does to it can be measured.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, InputError
from .arrays import Array, BoolArray, IntArray, Targets
from .cache import Cache
from .config import ModelConfig
from .context import DropoutKey, Memory
from .hooks import Hook, no_hook
from .inputs import check_floats
from .model import MiniBERT
from .modules.assembly import TaskSpec, parameter_specs
from .modules.heads.tasks import Answers, TaskHead
from .modules.losses.loss import ScoreLoss
from .params import Gradients, Parameters
from .registry import make
from .selection import Selection
from .storage.model_files import read_model

Found = TypeVar("Found")


class TaskBatch(NamedTuple):
    """Sequences of a task.

    `targets` are the right answers, in the order of the head's scores: (B,) labels of sequences, (M,) of the
    chosen tokens, or (2 B,) starts and then ends; of losses other than the cross-entropy (B, C), one for each score.
    `places` (B, T) are the chosen tokens.
    """

    input_ids: IntArray
    attention_mask: BoolArray
    targets: Targets
    places: BoolArray | None = None
    token_types: IntArray | None = None


class TaskModel(MiniBERT):
    """A model for a task, from a trained model or a new one. `dropout` is of the head alone; `loss` is the word of what
    it learns from, which also says what its scores mean."""

    def __init__(self, model: MiniBERT, head: str, outputs: int, *, dropout: float = 0.0, seed: int = 0,
                 labels: Sequence[str] = (), loss: str = "cross_entropy"):
        model.params.require_trainable()
        if outputs < 1:
            raise ConfigError(f"A task needs at least one label, not {outputs}.")
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be in [0, 1), not {dropout}.")
        self.config, self.dtype, self.modules = model.config, model.dtype, model.modules
        self.vocab_digest, self.source, self.described = model.vocab_digest, model.source, model.described
        self.head_name, self.labels = head, tuple(labels)
        self.task: TaskHead = make("task_head", head, model.config, outputs, dropout)
        self.loss_name = loss
        self.loss: ScoreLoss = make("task_loss", loss)
        self.params = Parameters([*self.modules.layout(), *self.task.layout()], self.dtype)
        self.params.initialise(seed)
        for spec in parameter_specs(model.config):
            self.params[spec.name][...] = model.params[spec.name]

    def encoder(self) -> MiniBERT:
        """The model without the task's head."""
        model = MiniBERT(self.config, dtype=self.dtype, seed=None)
        for name in model.params:
            model.params[name][...] = self.params[name]
        model.vocab_digest, model.described = self.vocab_digest, self.described
        return model

    # ---------------------------------------------------------------- the head's output for any batch

    def forward(self, input_ids: IntArray, attention_mask: npt.ArrayLike | None = None, *,
                token_types: IntArray | None = None, positions: BoolArray | None = None, memory: Memory | None = None,
                order: IntArray | None = None, causal: BoolArray | None = None, dropout_key: DropoutKey | None = None,
                recompute: bool = False, forward_only: bool = False, activations: str = "float32",
                hook: Hook = no_hook) -> tuple[Array, Cache]:
        """The head's scores and the cache: (B, C) of sequences, (B, T, C) of tokens, (2, B, T) of spans.

        `start, end = model.forward(ids, mask)[0]` for spans. With `positions` (B, T), only those tokens can be
        answers: (M, C) of tokens, and minus infinity elsewhere in spans. Arguments as for `encode`.
        """
        hidden, cache = self.encode(input_ids, attention_mask, token_types=token_types, memory=memory, order=order,
                                    causal=causal, dropout_key=dropout_key, recompute=recompute,
                                    forward_only=forward_only, activations=activations, hook=hook)
        B, T, H = hidden.shape
        everything = np.ones((B, T), bool)
        real = self.task.real(cache.ctx.ids, everything if cache.ctx.key_mask is None else cache.ctx.key_mask)
        reads = self.task.reads(real, everything if positions is None else positions)
        ctx = cache.ctx.but(select=Selection(B, T, reads)).in_part("task")
        scores, head = self.task.forward(self.params, ctx.select.take(hidden.reshape(-1, H)), ctx)
        cache.top["task_scores"] = scores = hook("task_scores", scores)
        some = self.task.answers is Answers.TOKENS and len(scores) < B * T
        result = scores if some else self.task.arranged(scores, B, T)
        cache.head = (ctx, head, result.shape)
        return result, cache

    def backward(self, dlogits: Array, cache: Cache, grads: Gradients, *, forget: bool = False, last: bool = False,
                 hook: Hook = no_hook) -> None:
        """d loss / d scores, shaped as `forward` returned them: adds every gradient to `grads`."""
        if cache.head is None:
            raise InputError("This cache comes from encode(), which computes no scores; use forward().")
        ctx, head, shape = cache.head
        ctx = ctx.but(hook=hook)
        dscores = hook("task_scores", check_floats(dlogits, "dlogits", shape, dtype=self.dtype))
        drows = self.task.backward(dscores, head, grads, ctx)
        dhidden = np.zeros((ctx.select.B * ctx.select.T, drows.shape[1]), self.dtype)
        ctx.select.take_backward(drows, dhidden)
        self.encode_backward(dhidden.reshape(ctx.select.B, ctx.select.T, -1), cache, grads, forget=forget, last=last,
                             hook=hook)

    @property
    def task_spec(self) -> TaskSpec:
        return TaskSpec(self.head_name, self.task.outputs, self.labels, self.loss_name)

    # ---------------------------------------------------------------- batches of a task

    def scores(self, batch: TaskBatch) -> Array:
        """The head's scores (N, C), one row per answer."""
        hidden, cache = self.encode(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                    positions=self._reads(batch), forward_only=True)
        return self.task.forward(self.params, hidden, cache.ctx)[0]

    def scores_of(self, hidden: Array, cache: Cache) -> list[Array]:
        """From the hidden rows of the tokens that the head reads, sequence by sequence: (answers, C), or (2, T) for
        spans."""
        return self.task.by_sequence(self.task.forward(self.params, hidden, cache.ctx)[0], cache.ctx.select.mask())

    def add_gradients(self, batch: TaskBatch, grads: Gradients, dropout_key: DropoutKey | None = None, *,
                      last: bool = False, factor: float = 1.0, **keeping: Any) -> tuple[float, int]:
        """The summed loss over the batch's answers and the number of its terms; adds `factor` times its gradients to
        `grads`. `keeping` goes to `encode`: see PassOptions in objectives/objective.py."""
        def compared(scores: Array) -> tuple[tuple[float, int], Array]:
            loss, cache = self.loss.forward(scores, batch.targets)
            return (loss, batch.targets.size), self.loss.backward(factor, cache)

        return self.add_gradients_of(batch, grads, compared, dropout_key, last=last, **keeping)

    def add_gradients_of(self, batch: TaskBatch, grads: Gradients, loss: Callable[[Array], tuple[Found, Array]],
                         dropout_key: DropoutKey | None = None, *, last: bool = False, **keeping: Any) -> Found:
        """The same for any loss of the scores (N, C): `loss(scores)` gives what is returned, and dscores."""
        hidden, cache = self.encode(batch.input_ids, batch.attention_mask, token_types=batch.token_types,
                                    positions=self._reads(batch), dropout_key=dropout_key, **keeping)
        ctx = cache.ctx.in_part("task")
        scores, head = self.task.forward(self.params, hidden, ctx)
        if len(scores) != len(batch.targets):
            raise InputError(f"The batch has {len(batch.targets)} targets; the head gives {len(scores)} answers.")
        found, dscores = loss(scores)
        self.encode_backward(self.task.backward(dscores, head, grads, ctx), cache, grads, forget=True, last=last)
        return found

    def reads(self, ids: IntArray, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        """The tokens (B, T) that the head reads, of the real ones in `mask` or of those in `places`."""
        return self.task.reads(self.task.real(ids, mask), places)

    def _reads(self, batch: TaskBatch) -> BoolArray:
        return self.reads(batch.input_ids, np.asarray(batch.attention_mask, bool), batch.places)


def open_model(directory: str | PathLike[str], *, dtype: npt.DTypeLike = np.float32) -> MiniBERT:
    """The model in a directory, with the head of a task if the files have one: a TaskModel then."""
    opened = read_model(directory, np.dtype(dtype))
    if opened.task is None:
        return MiniBERT._from_files(opened, dtype)
    model = MiniBERT(opened.config, dtype=dtype, seed=None)
    model.vocab_digest, model.described = opened.vocab_digest, dict(opened.described)
    made = TaskModel(model, opened.task.head, opened.task.outputs, labels=opened.task.labels, loss=opened.task.loss)
    made._fill(opened)
    return made


def with_dropout(model: MiniBERT, dropout: float) -> MiniBERT:
    """The same parameters in a model that drops this share in training: models ship without dropout."""
    model.params.require_trainable()
    config = ModelConfig.from_dict({**model.config.to_dict(), "dropout": dropout, "attention_dropout": dropout})
    made = MiniBERT(config, dtype=model.dtype, seed=None)
    for name in made.params:                  # of a TaskModel, all but the head
        made.params[name][...] = model.params[name]
    made.described = model.described
    return made
