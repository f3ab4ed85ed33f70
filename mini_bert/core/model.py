"""MiniBERT: embeddings, L layers, a final LayerNorm and the MLM head, built from a config.

    ids -> x_0 -> layer 0 -> ... -> layer L-1 -> LN -> head -> logits

Forward passes store nothing on the model; the cache that they return has everything that the backward pass needs.
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError, InputError, NumericalError
from .arrays import Array, BoolArray, IntArray
from .cache import Cache, resolved
from .config import ModelConfig
from .context import Context, Dropout, DropoutKey, Memory, together
from .hooks import Hook, no_hook
from .inputs import Group, as_array, check_batch, check_floats, check_key_mask, check_length, check_order, check_rows
from .modules.assembly import Modules, TaskSpec
from .params import Gradients, Parameters
from .precision.narrow_params import NarrowParameters
from .registry import make
from .selection import Selection, SeveralLengthsError
from .storage.model_files import Opened, read_model, write_model


class MiniBERT:
    """BERT for masked language modelling, Mini-BERT by default.

    `seed` draws the initial parameters; None leaves them zero, for a caller that will fill them.
    """

    def __init__(self, config: ModelConfig | None = None, *, dtype: npt.DTypeLike = np.float32,
                 seed: int | None = 0):
        self.config = config = ModelConfig() if config is None else config
        if not isinstance(config, ModelConfig):
            raise ConfigError(f"A model is built from a ModelConfig, not from {type(config).__name__}; "
                              "see mini_bert.load_preset(NAME) and ModelConfig.from_dict(...).")
        self.dtype = _precision(dtype)
        self.vocab_digest: str | None = None          # of the vocabulary whose ids it has learned, where that is known
        self.described: Mapping[str, Any] = {}        # the config.json that it was read from, if not in our layout
        self.source: PathLike[str] | None = None      # the directory that mini_bert.load read it from
        self.modules = Modules(config)
        try:
            self.params = Parameters(self.modules.layout(), self.dtype)
        except ConfigError:
            raise
        except (MemoryError, ValueError):
            raise ConfigError("There is not enough memory for the parameters of this config.") from None
        if seed is not None:
            self.params.initialise(seed)

    def __getstate__(self) -> dict[str, Any]:     # copies and processes build the modules again from the config
        return {name: value for name, value in vars(self).items() if name != "modules"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.modules = Modules(self.config)

    # ---------------------------------------------------------------- hidden states

    def encode(self, input_ids: IntArray, attention_mask: npt.ArrayLike | None = None, *,
               token_types: IntArray | None = None, positions: BoolArray | None = None,
               memory: Memory | None = None, order: IntArray | None = None, causal: BoolArray | None = None,
               dropout_key: DropoutKey | None = None, recompute: bool = False, forward_only: bool = False,
               activations: str = "float32", hook: Hook = no_hook) -> tuple[Array, Cache]:
        """Hidden states of the last layer, after the final LayerNorm.

        input_ids (B, T) and attention_mask (B, T), nonzero at real tokens, give (B, T, H). With `positions` (B, T),
        True where the hidden state is wanted, only those rows are computed in the last layer, and the result is (M, H)
        in reading order. `memory` has earlier tokens, which attention reads too. With `order` (B, T), the rank of each
        token in a factorisation, the hidden state of a token is made from those of lower rank alone; the model must
        have two streams. In sequences where `causal` (B,) is True no token sees a later one; the model must have the
        score term causal_rows. Dropout is on if `dropout_key` is given, such as (seed, step, shard): the same key drops
        the same elements. With `recompute` the cache holds each layer's input alone, and the backward computes the rest
        again; with `forward_only` it holds the layers' outputs, and there is no backward; with `activations` "bfloat16"
        it holds what the layers computed in half the memory, and gradients are less exact. `hook` is called with every
        value, and may replace it: see core/hooks.py.
        """
        ids, key_mask, types, positions = check_batch(
            self.config, input_ids, attention_mask, token_types, positions)
        B, T = ids.shape
        if order is not None and not self.modules.stack.orders:
            raise InputError(f"An order of the tokens was given, but this model has one stream (its stack is "
                             f"{self.config.stack}); a model that predicts in any order has the stack two_stream.")
        if causal is not None and not self.modules.can_be_causal:
            raise InputError("Causal sequences were asked for, but this model's tokens see what comes after them; its "
                             "score_terms need causal_rows.")
        ctx = Context(Selection(B, T, positions), key_mask, ids, types, memory, check_order(order, ids.shape),
                      check_rows(causal, B, "causal"), hook, Dropout(dropout_key), recompute, forward_only,
                      make("activations", activations))
        cache = self._through_layers(ids, types, ctx)
        x = cache.top["final_hidden"]
        return (x.reshape(B, T, -1) if positions is None else x), cache

    def encode_groups(self, groups: Sequence[Group]) -> list[tuple[Array, Cache]]:
        """What `encode` gives for each group, forward only, computed together: nothing is padded.

        Linear layers and all else that works row by row see the rows of all groups at once, attention one group after
        the other. A part of the user's own that knows one length alone is given the groups one by one.
        """
        contexts, all_ids, all_types = [], [], []
        for group in groups:
            ids, _, types, positions = check_batch(self.config, group.input_ids, None, group.token_types,
                                                   group.positions)
            contexts.append(Context(Selection(len(ids), ids.shape[1], positions), None, ids, types, forward_only=True))
            all_ids.append(ids.reshape(-1))
            all_types += [] if types is None else [types.reshape(-1)]
        ctx = together(contexts)
        try:
            cache = self._through_layers(np.concatenate(all_ids), np.concatenate(all_types) if all_types else None, ctx)
        except SeveralLengthsError:
            if len(groups) == 1:
                raise
            return [self.encode(group.input_ids, token_types=group.token_types, positions=group.positions,
                                forward_only=True) for group in groups]
        found = [cache.of_group(*part) for part in ctx.parts()]
        return [(one.top["final_hidden"].reshape(one.shape_of(self.config.hidden_size)), one) for one in found]

    def _through_layers(self, ids: IntArray, types: IntArray | None, ctx: Context) -> Cache:
        """From the ids to the rows of the last layer: `final_hidden` of the cache."""
        x, embeddings = self.modules.embed.forward(self.params, ids, types, ctx)
        cache = Cache(ctx, embeddings)
        x, cache.layers = self.modules.stack.forward(self.params, x, ctx)
        if self.modules.final_ln is not None:
            x, cache.final_ln = self.modules.final_ln.forward(self.params, x)
            x = ctx.hook("final_hidden", x)
        cache.top["final_hidden"] = x
        self._require_finite(x, "hidden states")
        return cache

    def encode_backward(self, dhidden: Array, cache: Cache, grads: Gradients, *, forget: bool = False,
                        last: bool = False, hook: Hook = no_hook) -> None:
        """d loss / d hidden, shaped as `encode` returned it: adds every parameter's gradient to `grads`.

        With `forget`, a layer's activations are dropped from the cache as soon as its gradients are there. With `last`,
        gradients are announced as complete: no other backward may add to `grads` after this one.
        """
        ctx = cache.ctx.but(hook=hook, last=last)
        dx = check_floats(dhidden, "dhidden", cache.shape_of(self.config.hidden_size), dtype=self.dtype)
        if self.modules.final_ln is not None:
            dx = self.modules.final_ln.backward(hook("final_hidden", dx), cache.final_ln, grads)
        dx = self.modules.stack.backward(dx, cache.layers, grads, ctx, forget=forget)
        self.modules.embed.backward(dx, cache.embeddings, grads, ctx)

    # ---------------------------------------------------------------- word scores

    def forward(self, input_ids: IntArray, attention_mask: npt.ArrayLike | None = None, *,
                token_types: IntArray | None = None, positions: BoolArray | None = None,
                memory: Memory | None = None, order: IntArray | None = None, causal: BoolArray | None = None,
                dropout_key: DropoutKey | None = None, recompute: bool = False, forward_only: bool = False,
                activations: str = "float32", hook: Hook = no_hook) -> tuple[Array, Cache]:
        """Logits (B, T, V), or (M, V) at `positions` alone, and the cache. Arguments as for `encode`.

        A model that finds replaced tokens has one logit for each token: (B, T), or (M,).
        """
        hidden, cache = self.encode(input_ids, attention_mask, token_types=token_types, positions=positions,
                                    memory=memory, order=order, causal=causal, dropout_key=dropout_key,
                                    recompute=recompute, forward_only=forward_only, activations=activations,
                                    hook=hook)
        rows = hidden.reshape(-1, self.config.hidden_size)
        logits, cache.head = self.modules.mlm_head.forward(self.params, rows, cache.ctx)
        logits = hook("logits", logits)
        cache.top["logits"] = logits
        self._require_finite(logits, "logits")
        shaped = logits.reshape(cache.shape_of(logits.shape[-1]))
        return (shaped[..., 0] if self.modules.finds_replaced else shaped), cache

    def backward(self, dlogits: Array, cache: Cache, grads: Gradients, *, forget: bool = False, last: bool = False,
                 hook: Hook = no_hook) -> None:
        """d loss / d logits, shaped as `forward` returned them: adds every gradient to `grads`. See encode_backward."""
        if cache.head is None:
            raise InputError("This cache comes from encode(), which computes no logits; use forward().")
        if self.modules.finds_replaced:
            flat = check_floats(as_array(dlogits, "dlogits")[..., None], "dlogits", cache.shape_of(1), dtype=self.dtype)
        else:
            flat = check_floats(dlogits, "dlogits", cache.shape_of(self.config.vocab_size), dtype=self.dtype)
        flat = hook("logits", flat)
        dhidden = self.modules.mlm_head.backward(flat, cache.head, grads, cache.ctx.but(hook=hook))
        if last:
            grads.complete(self.modules.of_mlm_head_alone)
        if forget:
            cache.head, cache.top = None, {}
            del flat, dlogits                     # the largest arrays of all
        self.encode_backward(dhidden.reshape(cache.shape_of(self.config.hidden_size)), cache, grads, forget=forget,
                             last=last, hook=hook)

    def require_words(self) -> None:
        """Refuse a model whose logits are not of words; one without a head is refused by `forward` itself."""
        if self.modules.finds_replaced:
            raise InputError("This model says which tokens were replaced, and predicts no words; the generator that it "
                             "was trained with does.")

    def logits_of(self, hidden: Array) -> Array:
        """Hidden rows (N, H) of any layer -> logits (N, V), by the MLM head alone."""
        return self.modules.mlm_head.forward(self.params, hidden, Context(Selection(1, len(hidden))))[0]

    # ---------------------------------------------------------------- sequence summaries

    def pool(self, hidden: Array, attention_mask: npt.ArrayLike | None = None) -> tuple[Array, Any]:
        """One vector (B, H) per sequence, from hidden states (B, T, H), if the model has a pooler.

        The pooler reads the tokens that it chooses among the real ones, which `attention_mask` (B, T) marks.
        """
        B, T, _ = _three_axes(hidden, "hidden")
        rows = check_floats(hidden, "hidden", (B, T, self.config.hidden_size), dtype=self.dtype)
        key_mask = None if attention_mask is None else check_key_mask(attention_mask, (B, T), "hidden")
        real = np.ones((B, T), bool) if key_mask is None else key_mask
        select = Selection(B, T, self.modules.pooler.reads(real, None))
        ctx = Context(select, key_mask)
        pooled, cache = self.modules.pooler.forward(self.params, select.take(rows), ctx)
        return pooled, (ctx, cache)

    def pool_backward(self, dpooled: Array, cache: Any, grads: Gradients) -> Array:
        """dpooled (B, H) -> dhidden (B, T, H), which is zero at the tokens that the pooler does not read."""
        ctx, pooler = cache
        select = ctx.select
        dhidden = np.zeros((select.B * select.T, self.config.hidden_size), self.dtype)
        select.take_backward(self.modules.pooler.backward(dpooled, pooler, grads, ctx), dhidden)
        return dhidden.reshape(select.B, select.T, -1)

    def relate(self, pooled: Array) -> tuple[Array, Any]:
        """Scores (B, 2) of how the two sentences of each sequence relate, from pooled vectors (B, H)."""
        ctx = Context(Selection(len(pooled), 1))
        scores, cache = self.modules.sentence_head.forward(self.params, pooled, ctx)
        return scores, (ctx, cache)

    def relate_backward(self, dscores: Array, cache: Any, grads: Gradients) -> Array:
        """dscores (B, 2) -> dpooled (B, H)."""
        ctx, head = cache
        return self.modules.sentence_head.backward(dscores, head, grads, ctx)

    # ---------------------------------------------------------------- one part at a time

    def attend(self, x: Array, layer: int = 0,
               attention_mask: npt.ArrayLike | None = None) -> tuple[Array, dict[str, Any]]:
        """The attention of one layer alone, on x (B, T, H): its output, and Q, K, V, scores and so on."""
        B, T, H = _three_axes(x, "x")
        rows = check_floats(x, "x", (B, T, self.config.hidden_size), dtype=self.dtype)
        check_length(self.config, T, "x")
        key_mask = None if attention_mask is None else check_key_mask(attention_mask, (B, T), "x")
        attention = self.layer(layer).attention
        y, cache = attention.forward(self.params, rows, Context(Selection(B, T), key_mask))
        return y.reshape(B, T, H), resolved(cache)

    _multi_head_attention = attend

    def layer(self, number: int) -> Any:
        """The block at this depth."""
        layers = self.modules.stack.layers
        if not 0 <= number < len(layers):
            raise InputError(f"There is no layer {number}; this model has 0 to {len(layers) - 1}.")
        return layers[number]

    # ---------------------------------------------------------------- about the model

    @property
    def token_embeddings(self) -> Array:
        return self.params["token_embeddings"]

    @property
    def position_embeddings(self) -> Array:
        return self.params["position_embeddings"]

    def get_parameter_count(self) -> int:
        """Distinct numbers: what is tied counts once."""
        return sum(self.params[name].size for name in self.params)

    def set_training(self, training: bool) -> None:
        """Kept for scripts that call it: a pass has dropout exactly if it is given a dropout_key."""
        if training:
            raise InputError("There is no training mode: pass dropout_key=(seed, step) to every pass that needs "
                             "dropout; all others have none.")

    def _require_finite(self, result: Array, what: str) -> None:
        if np.isfinite(result.sum()):         # one NaN or infinity is enough to spoil a sum
            return
        broken = next((name for name, value in self.params.items() if not np.isfinite(value).all()), None)
        raise NumericalError(f"The {what} are not finite: " + (
            f"the parameter {broken} has NaN or infinity." if broken is not None else
            "the numbers have grown beyond the precision; the weights or the learning rate are too large."))

    # ---------------------------------------------------------------- files

    def save(self, directory: str | PathLike[str], *, dtype: npt.DTypeLike | None = None) -> None:
        """Write config.json and model.safetensors; as Hugging Face names things, if transformers has such a model.

        `dtype` is the precision in the file, the model's own unless given; float16 halves the file.
        """
        write_model(self.config, self.params, directory, dtype=dtype, vocab_digest=self.vocab_digest,
                    task=self.task_spec, described=self.described)

    @property
    def task_spec(self) -> TaskSpec | None:
        """What the files must say of a task's head: see TaskModel."""
        return None

    @classmethod
    def load(cls, directory: str | PathLike[str], *, dtype: npt.DTypeLike = np.float32) -> Self:
        """The model in a directory that `save` wrote, or in a layout of Hugging Face, without a task's head.

        `mini_bert.load` opens it with its head.
        """
        return cls._from_files(read_model(directory, _precision(dtype)), dtype)

    @classmethod
    def _from_files(cls, opened: Opened, dtype: npt.DTypeLike) -> Self:
        model = cls(opened.config, dtype=dtype, seed=None)
        model._fill(opened)
        model.vocab_digest, model.described = opened.vocab_digest, dict(opened.described)
        return model

    def load_checkpoint(self, directory: str | PathLike[str]) -> None:
        """Replace the numbers of this model by those in `directory`; the configs must agree."""
        opened = read_model(directory, self.dtype)
        config = opened.config
        if config != self.config:
            changed = [f"{key} ({ours!r} here, {config.to_dict()[key]!r} there)"
                       for key, ours in self.config.to_dict().items() if config.to_dict()[key] != ours]
            raise ConfigError(f"The checkpoint {directory} is of another model: {', '.join(changed)}.")
        self._fill(opened)
        self.vocab_digest = opened.vocab_digest

    def _fill(self, opened: Opened) -> None:
        if opened.narrow:
            self.params = NarrowParameters(self.params.layout, opened.tensors, opened.narrow, self.dtype)
            return
        for name in self.params:
            self.params[name][...] = opened.tensors[name]


def _precision(dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        precision: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        precision = np.dtype(object)
    if precision not in (np.float32, np.float64):
        raise ConfigError(f"dtype must be float32 or float64, not {dtype}.")
    return precision


def _three_axes(array: Array, name: str) -> tuple[int, int, int]:
    shape = as_array(array, name).shape
    if len(shape) != 3:
        raise InputError(f"{name} must have the shape (batch, tokens, features), not {shape}.")
    return shape
