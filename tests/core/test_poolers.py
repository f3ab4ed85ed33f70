"""A pooler reads the tokens that it chooses, whatever it is: the first, the last, or all for their mean."""

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, MiniBERTGradients, ModelConfig, load_preset
from mini_bert.checks.check_all import models_to_check
from mini_bert.checks.models import check_model
from mini_bert.core.registry import register, restored_registry

LENGTHS = np.array([7, 4, 2])
MASK = np.arange(7) < LENGTHS[:, None]
IDS = np.random.default_rng(0).integers(5, 60, MASK.shape)


class Plain:
    """A pooler without parameters."""

    def __init__(self, config):
        pass

    def layout(self):
        return iter(())

    def steps(self, h):
        return iter(())

    def floats(self, sizes):
        return 0


class Mean(Plain):
    def reads(self, mask, places):
        return mask

    def forward(self, params, hidden, ctx):
        counts = ctx.select.counts()
        return np.add.reduceat(hidden, np.cumsum(counts) - counts) / counts[:, None], counts

    def backward(self, dpooled, counts, grads, ctx):
        return np.repeat(dpooled / counts[:, None], counts, axis=0)


class Last(Plain):
    """XLNet's: the last real token."""

    def reads(self, mask, places):
        return mask & (np.cumsum(mask[:, ::-1], axis=1)[:, ::-1] == 1)

    def forward(self, params, hidden, ctx):
        return hidden, None

    def backward(self, dpooled, cache, grads, ctx):
        return dpooled


class WrongMean(Mean):
    def backward(self, dpooled, counts, grads, ctx):
        return np.repeat(dpooled, counts, axis=0)


@pytest.fixture(autouse=True)
def poolers():
    with restored_registry():
        for word, pooler in {"mean": Mean, "last": Last, "wrong_mean": WrongMean}.items():
            register("pooler", word)(pooler)
        yield


def model_with(pooler):
    return MiniBERT(ModelConfig.from_dict({**load_preset("debug").to_dict(), "pooler": pooler}), dtype=np.float64)


@pytest.mark.parametrize(("word", "rows"), [
    ("mean", lambda hidden: [row[:n].mean(axis=0) for row, n in zip(hidden, LENGTHS, strict=True)]),
    ("last", lambda hidden: [row[n - 1] for row, n in zip(hidden, LENGTHS, strict=True)])])
def test_the_tokens_that_a_pooler_reads_are_pooled_and_no_padding(word, rows):
    model = model_with(word)
    hidden, _ = model.encode(IDS, MASK)
    np.testing.assert_allclose(model.pool(hidden, MASK)[0], rows(hidden))
    whole, _ = model.encode(IDS)
    np.testing.assert_array_equal(model.pool(whole)[0], model.pool(whole, np.ones_like(MASK))[0])


def test_tokens_that_are_not_read_get_no_gradient():
    model = model_with("last")
    hidden, _ = model.encode(IDS, MASK)
    pooled, cache = model.pool(hidden, MASK)
    dhidden = model.pool_backward(np.ones_like(pooled), cache, MiniBERTGradients(model).gradients)
    np.testing.assert_array_equal(dhidden.any(axis=2).argmax(axis=1), LENGTHS - 1)
    assert dhidden.any(axis=2).sum() == len(LENGTHS)


def test_poolers_of_any_kind_are_proved_with_padding_and_a_wrong_one_is_found():
    passed = {}
    for name, config in models_to_check().items():
        if name.startswith("pooler: "):
            passed[name] = all(result.passed for result in check_model(name, config))
    assert passed == {"pooler: mean": True, "pooler: last": True, "pooler: wrong_mean": False}


def test_a_mask_of_another_shape_is_refused():
    model = model_with("mean")
    hidden, _ = model.encode(IDS, MASK)
    with pytest.raises(InputError, match="attention_mask has the shape"):
        model.pool(hidden, MASK[:, :3])
