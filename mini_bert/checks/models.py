"""Gradient checks of whole models: the derivative along a random direction, for every parameter.

A parameter of a model has too many elements to move one by one. Moving all of them along a random
direction d tests them at once: (L(p + h d) - L(p - h d)) / 2h must equal the gradient's product with d.
An error stays unseen only if it is orthogonal to d, to within the tolerance.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ..core.arrays import Array, IntArray
from ..core.config import MASK, ModelConfig
from ..core.gradcheck import CheckResult, relative_error
from ..core.gradients import MiniBERTGradients
from ..core.memory import memory_after
from ..core.model import MiniBERT
from ..core.params import Parameters
from ..errors import NumericalError
from ..randomness import generator

SIZES = ("num_layers", "num_heads", "hidden_size", "intermediate_size", "vocab_size", "max_seq_length")
STEP = 4e-5               # relative to a parameter's own size
MARGIN = 5e-4             # a step that crosses ReLU's kink is wrong at any precision: keep off it


def shrink(config: ModelConfig, sizes: ModelConfig) -> ModelConfig:
    """The slots of `config` at other sizes, with dropout on and weights large enough to matter.

    At the usual deviation of 0.02 attention is nearly uniform, and an error in its gradient nearly
    invisible.
    """
    return ModelConfig.from_dict({**config.to_dict(), **{name: getattr(sizes, name) for name in SIZES},
                                  "embedding_size": sizes.hidden_size // 2 if config.embedding_size else 0,
                                  "dropout": 0.1, "attention_dropout": 0.1, "init_std": 0.3})


def distinct_slots(configs: Mapping[str, ModelConfig], sizes: ModelConfig) -> dict[str, ModelConfig]:
    """Each combination of slots once, shrunk, under the names of the configs that use it."""
    names: dict[ModelConfig, list[str]] = {}
    for name, config in configs.items():
        names.setdefault(shrink(config, sizes), []).append(name)
    return {", ".join(users): config for config, users in names.items()}


def check_model(name: str, config: ModelConfig, seed: int = 0) -> Iterator[CheckResult]:
    """Every parameter's gradient: of the MLM loss at masked positions alone, and of all outputs.

    The batch has padding, dropout is on, and biases and LayerNorm parameters are moved
    away from their zeros and ones.
    """
    model = MiniBERT(config, dtype=np.float64, seed=None)
    B, T = 3, min(7, config.max_seq_length)
    mask = np.arange(T) < np.array([T, T - 3, 2])[:, None]
    for attempt in range(1000):
        rng = generator(seed, "modelcheck", name, attempt)
        model.params.initialise(int(rng.integers(2**32)))
        model.params.flat += 0.1 * rng.standard_normal(model.params.flat.size)
        ids = rng.integers(MASK + 1, config.vocab_size, (B, T))
        types = rng.integers(0, config.token_types, (B, T)) if config.token_types else None
        chosen = mask & (rng.random((B, T)) < 0.4)
        chosen[0, 0] = True
        context: dict[str, Any] = {"token_types": types, "dropout_key": (seed, 0)}
        run = model.forward if model.modules.predicts_words else model.encode
        others = _other_passes(model, ids, rng)
        if min(_distance_to_kinks(model, partial(run, ids, mask, **context, **more))
               for more in ({}, *({"positions": chosen, **told} for told in ({}, *others.values())))) > MARGIN:
            break
    else:
        raise NumericalError(f"No weights of {name} keep every activation's input off zero; its sizes are too large.")

    if model.modules.predicts_words:
        def masked_loss(grads: Parameters) -> float:
            return MiniBERTGradients(model, grads).accumulate_mlm(ids, ids, chosen, mask, **context)[0]

        def mean_loss(grads: Parameters) -> float:
            logits, cache = model.forward(ids, mask, **context)
            wanted = MiniBERTGradients(model, grads)
            loss, dlogits = wanted.compute_mlm_loss_and_gradients(logits, ids, chosen)
            wanted.backward_from_logits(dlogits, cache)
            return loss

        yield from check_directions(name, "masked positions", model, model.params, masked_loss, rng)
        yield from check_directions(name, "all logits", model, model.params, mean_loss, rng)

    if model.modules.finds_replaced:
        of_logits = rng.standard_normal((B, T)) * mask

        def all_logits(grads: Parameters) -> float:
            logits, cache = model.forward(ids, mask, **context)
            MiniBERTGradients(model, grads).backward_from_logits(of_logits, cache)
            return float((logits * of_logits).sum())

        yield from check_directions(name, "all logits", model, model.params, all_logits, rng)

    cotangent = rng.standard_normal((B, T, config.hidden_size)) * mask[..., None]
    pool_cotangent = rng.standard_normal((B, config.hidden_size))

    def all_outputs(grads: Parameters) -> float:
        hidden, cache = model.encode(ids, mask, **context)
        loss, dhidden = float((hidden * cotangent).sum()), cotangent
        if model.modules.pools:
            pooled, pool_cache = model.pool(hidden, mask)
            loss, dpooled = loss + float((pooled * pool_cotangent).sum()), pool_cotangent
            if model.modules.relates_sentences:
                scores, relate_cache = model.relate(pooled)
                loss += float((scores * pool_cotangent[:, : scores.shape[1]]).sum())
                dpooled = dpooled + model.relate_backward(pool_cotangent[:, : scores.shape[1]], relate_cache, grads)
            dhidden = dhidden + model.pool_backward(dpooled, pool_cache, grads)
        MiniBERTGradients(model, grads).backward_from_hidden(dhidden, cache)
        return loss

    yield from check_directions(name, "all hidden states", model, model.params, all_outputs, rng)
    for case, more in others.items():
        def some_outputs(grads: Parameters, more: Mapping[str, Any] = more) -> float:
            hidden, cache = model.encode(ids, mask, positions=chosen, **context, **more)
            MiniBERTGradients(model, grads).backward_from_hidden(cotangent[chosen], cache)
            return float((hidden * cotangent[chosen]).sum())

        yield from check_directions(name, case, model, model.params, some_outputs, rng)

    alone, between = model.params.zeros_like(), model.params.zeros_like()
    for grads in (alone, between):
        _, cache = model.encode(ids, mask, **context)
        if grads is between:
            model.encode(ids[::-1], mask[::-1], **context)
        MiniBERTGradients(model, grads).backward_from_hidden(cotangent, cache)
    yield CheckResult(name, "another pass in between", "all", relative_error(between.flat, alone.flat))


def _other_passes(model: MiniBERT, ids: IntArray, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """What else a pass of this model can be told: a memory, if it keeps one, an order of its tokens, causal rows."""
    order = {"order": rng.permuted(np.arange(ids.size).reshape(ids.shape) // 2, axis=1)}       # two tokens of each rank
    _, cache = model.encode(rng.permuted(ids, axis=1))
    memory = {"memory": memory_after(cache, 4)} if model.modules.stack.remembers else {}
    causal = {"causal": np.arange(len(ids)) % 2 == 0} if model.modules.can_be_causal != model.modules.causal else {}
    return ({"with memory": memory} if memory else {}) | ({"in causal rows": causal} if causal else {}) | (
        {"in an order": order, "in an order, with memory": order | memory} if model.modules.stack.orders else {})


def check_directions(name: str, case: str, model: MiniBERT, params: Parameters, loss: Callable[[Parameters], float],
                     rng: np.random.Generator) -> Iterator[CheckResult]:
    """One result a parameter. `loss` adds its gradients to what it is given, by the backward of the model."""
    grads, discarded = params.zeros_like(), params.zeros_like()
    loss(grads)
    directions, analytic = {}, {}
    for parameter, value in params.items():
        # in units of the parameter's own size, so that all parameters are on one scale
        directions[parameter] = rng.standard_normal(value.shape) * np.sqrt(np.mean(value**2))
        analytic[parameter] = float((grads[parameter] * directions[parameter]).sum())
    largest = max(map(abs, analytic.values()))
    for parameter, slope in analytic.items():
        with _backward_left_out(model):
            numeric = _slope(params[parameter], directions[parameter], partial(loss, discarded))
        yield CheckResult(name, case, parameter, relative_error(np.array([slope, largest]),
                                                                np.array([numeric, largest])))


@contextmanager
def _backward_left_out(model: MiniBERT) -> Iterator[None]:
    """Meanwhile this model's backward does nothing: a slope needs losses alone."""
    parts = dict.fromkeys(("backward", "encode_backward"), _nothing)
    vars(model).update(parts)
    try:
        yield
    finally:
        for name in parts:
            del vars(model)[name]


def _nothing(*arguments: Any, **options: Any) -> None:
    pass


def _slope(parameter: Array, direction: Array, loss: Callable[[], float]) -> float:
    """d loss / d distance along the direction: central differences with steps h and h/2, extrapolated to h = 0."""
    before = parameter.copy()

    def moved(distance: float) -> float:
        parameter[...] = before + distance * direction
        return loss()

    try:
        coarse, fine = ((moved(step) - moved(-step)) / (2 * step) for step in (STEP, STEP / 2))
    finally:
        parameter[...] = before
    return (4 * fine - coarse) / 3        # the error in h^2 cancels


def _distance_to_kinks(model: MiniBERT, run: Callable[..., object]) -> float:
    """How near the inputs of activations come in `run` to a point where the slope jumps, as ReLU's does at zero."""
    kinks = {step.inputs[0]: step.formula.kink for step in model.modules.steps() if step.formula.kink is not None}
    nearest: dict[str, float] = {}

    def hook(name: str, value: Array) -> Array:
        if name in kinks:
            nearest[name] = float(np.abs(value - kinks[name]).min())
        return value

    run(hook=hook)
    return min(nearest.values(), default=float("inf"))
