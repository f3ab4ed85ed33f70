"""Activations as bfloat16: the loss does not change by a bit, gradients hardly, and memory is nearly halved."""

import numpy as np
import pytest

from mini_bert import MiniBERT, load_preset
from mini_bert.core.context import Context
from mini_bert.core.gradients import add_mlm_gradients
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.core.precision.activations import AS_COMPUTED, BFloat16Activations
from mini_bert.core.precision.bfloat16 import nearest, widened
from mini_bert.core.selection import Selection
from mini_bert.errors import ConfigError

B, T = 4, 32


def batch(config, rng):
    ids = rng.integers(5, config.vocab_size, (B, T))
    return ids, ids, rng.random((B, T)) < 0.3


@pytest.mark.parametrize("preset", ["mini", "mini-modern", "mini-deberta", "mini-albert", "mini-xlnet"])
def test_the_loss_keeps_its_bits_and_gradients_nearly_theirs(preset, rng):
    model = MiniBERT(load_preset(preset))
    ids, targets, positions = batch(model.config, rng)
    found = {}
    for word in ("float32", "bfloat16"):
        grads = model.params.zeros_like()
        loss = add_mlm_gradients(model, grads, ids, targets, positions, activations=word, dropout_key=(0, 1))
        found[word] = loss, grads.flat
    (exact_loss, exact), (loss, rounded) = found.values()
    assert loss == exact_loss
    assert 0 < np.linalg.norm(rounded - exact) < 2.0**-8 * np.linalg.norm(exact)


def test_a_layer_takes_half_the_memory():
    model = MiniBERT(load_preset("mini"))
    x = np.random.default_rng(0).standard_normal((B * T, model.config.hidden_size), np.float32)
    _, cache = model.modules.stack.layers[0].forward(model.params, x, Context(Selection(B, T)))
    kept = BFloat16Activations().kept(cache, model.params)
    ours = {id(owner): owner for owner in owners(cache["_parts"])
            if not np.may_share_memory(owner, model.params.flat)}
    assert sum(halves.nbytes for halves in kept["_opened"]._halves) < 0.6 * sum(o.nbytes for o in ours.values())


def owners(value):
    """The arrays that own the memory of a cache."""
    if isinstance(value, np.ndarray):
        while isinstance(value.base, np.ndarray):
            value = value.base
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from owners(inner) if name.startswith("_") else ()
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from owners(inner)


def test_what_is_opened_is_the_rounded_cache_with_its_views_and_masks(rng):
    params = Parameters([ParamSpec("table", (6000,), std=1.0)])
    params.initialise(0)
    rows = rng.standard_normal((64, 128)).astype(np.float32)
    heads = rows.reshape(64, 4, 32).transpose(1, 0, 2)
    mask, few, weights = rng.random((64, 9)) < 0.5, np.arange(5.0, dtype=np.float32), params["table"].reshape(60, 100)
    cache = {"hidden": rows, "Q": heads, "_parts": ((rows, heads, mask), {"_inner": [heads[1:], few, weights, 7]})}
    kept = BFloat16Activations().kept(cache, params)
    (same_rows, same_heads, same_mask), inside = BFloat16Activations().opened(kept)["_parts"]
    expected = widened(nearest(rows.reshape(-1))).reshape(rows.shape)
    assert np.array_equal(same_rows, expected)
    assert np.array_equal(same_heads, expected.reshape(64, 4, 32).transpose(1, 0, 2))
    assert np.may_share_memory(same_rows, same_heads)                # widened once
    assert np.array_equal(same_mask, mask)
    assert same_mask.dtype == bool
    part, same_few, same_weights, number = inside["_inner"]
    assert np.array_equal(part, same_heads[1:])
    assert same_few is few
    assert same_weights is weights                                   # parameters are not copied
    assert number == 7
    assert np.array_equal(kept["hidden"].compute(), expected)


def test_float32_keeps_the_cache_itself():
    cache = {"hidden": np.zeros(3, np.float32)}
    assert AS_COMPUTED.opened(AS_COMPUTED.kept(cache, cache["hidden"])) is cache


def test_an_unknown_word_is_refused(rng):
    model = MiniBERT(load_preset("debug"))
    with pytest.raises(ConfigError, match="bfloat16"):
        model.encode(rng.integers(5, 50, (1, 4)), activations="bfloat61")
