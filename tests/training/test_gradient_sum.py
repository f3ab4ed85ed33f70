"""Gradients of several threads: the sum of one thread, bit for bit."""

import numpy as np
import pytest

from mini_bert import MiniBERT, MiniBERTGradients, ModelConfig, NumericalError
from mini_bert.core.gradients import add_mlm_gradients
from mini_bert.objectives.masked import MaskedLM, masked_predictions, micro_batches
from mini_bert.objectives.objective import PassOptions
from mini_bert.text.batches import MLMBatch
from mini_bert.text.masking import mask_tokens
from mini_bert.training.update import BatchGradients
from mini_bert.workers import Workers, workers

SMALL = {"num_layers": 2, "num_heads": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": 50,
         "max_seq_length": 12, "dropout": 0.1}
CONFIGS = [ModelConfig(**SMALL), ModelConfig(**SMALL, mlm_head="bert", token_types=2, pooler="tanh", block="pre_ln",
                                             embedding_layernorm=True, attention_bias=True)]


def batch(rows: int = 10, seed: int = 0, padded: bool = True) -> MLMBatch:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 13, rows) if padded else np.full(rows, 12)
    mask = np.arange(12) < lengths[:, None]
    ids = np.where(mask, rng.integers(5, 50, (rows, 12)), 0)
    masked, targets, positions = mask_tokens(ids, 50, 4, 0.3, seed)
    return MLMBatch(masked, targets, positions, mask)


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "tied"])
def test_any_number_of_threads_gives_the_same_bits(config):
    model = MiniBERT(config)
    results = []
    for threads in (1, 2, 3):
        with workers(threads) as team:
            computed = BatchGradients(MaskedLM(model, PassOptions(3)), team)
            computed.compute(batch(seed=5), 0, 1)             # what a step leaves must not show in the next
            loss = computed.compute(batch(), 0, 2)
        results.append((loss, computed.gradients.flat.copy()))
    assert all(loss == results[0][0] and np.array_equal(flat, results[0][1]) for loss, flat in results[1:])


@pytest.mark.parametrize("config", CONFIGS, ids=["plain", "tied"])
@pytest.mark.parametrize("recompute", [False, True])
def test_micro_batches_add_up_to_the_whole_batch(config, recompute):
    model = MiniBERT(config, dtype=np.float64)
    whole = MiniBERTGradients(model)
    expected = whole.accumulate_mlm(*batch()[:4])
    for size in (1, 3, 10):
        computed = BatchGradients(MaskedLM(model, PassOptions(size, recompute=recompute)), Workers(1))
        loss = computed.compute(batch())
        assert loss["masked"].total == pytest.approx(expected[0], rel=1e-12)
        assert loss["masked"].count == expected[1]
        assert np.allclose(computed.gradients.flat, whole.gradients.flat, rtol=1e-10, atol=1e-12)


def test_recomputing_gives_the_same_bits_with_dropout():
    model = MiniBERT(CONFIGS[0])
    kept, again = (BatchGradients(MaskedLM(model, PassOptions(4, recompute=recompute)), Workers(1))
                   for recompute in (False, True))
    assert kept.compute(batch(), 7, 3) == again.compute(batch(), 7, 3)
    assert np.array_equal(kept.gradients.flat, again.gradients.flat)


def test_a_step_that_failed_leaves_nothing_behind():
    model = MiniBERT(CONFIGS[0])
    with workers(2) as team:
        computed = BatchGradients(MaskedLM(model, PassOptions(2)), team)
        expected = computed.compute(batch())
        gradients = computed.gradients.flat.copy()
        good = model.params["W1_1"].copy()
        model.params["W1_1"][...] = np.inf
        with pytest.raises(NumericalError), np.errstate(all="ignore"):
            computed.compute(batch())
        model.params["W1_1"][...] = good
        assert computed.compute(batch()) == expected
        assert np.array_equal(computed.gradients.flat, gradients)


def test_micro_batches_are_as_wide_as_their_longest():
    parts = micro_batches(batch(), 4)
    assert [len(part.input_ids) for part in parts] == [4, 4, 2]
    assert all(part.attention_mask.any(axis=0).all() for part in parts)
    assert sum(int(part.mask_positions.sum()) for part in parts) == int(batch().mask_positions.sum())


def test_evaluation_counts_each_masked_token_once():
    model = MiniBERT(CONFIGS[0], dtype=np.float64)
    one = masked_predictions(model, [batch()], Workers(1))
    parts = masked_predictions(model, micro_batches(batch(), 1), Workers(2))
    assert len(one.loss) == int(batch().mask_positions.sum())
    assert one.loss == pytest.approx(parts.loss, rel=1e-12)
    assert np.array_equal(one.right, parts.right)


def test_a_thread_s_error_reaches_the_caller():
    def fail(item: int) -> None:
        if item == 3:
            raise ValueError("three")

    with workers(2) as team, pytest.raises(ValueError, match="three"):
        team.map(fail, range(6))


@pytest.mark.parametrize("threads", [1, 2])
def test_an_objective_may_run_the_model_twice(threads):
    """As losses of two views of a text do: each backward adds to the same gradients."""

    class Twice(MaskedLM):
        def add_gradients(self, part, grads, key, factors):
            for number in range(2):
                view = None if key is None else (*key, number)
                loss, _ = add_mlm_gradients(self.model, grads, *part[:4], dropout_key=view, factor=factors[self.main])
            return {self.main: loss}

    model = MiniBERT(CONFIGS[1], dtype=np.float64)
    once = MiniBERTGradients(model)
    once.accumulate_mlm(*batch()[:4])
    with workers(threads) as team:
        computed = BatchGradients(Twice(model, PassOptions(3)), team)
        computed.compute(batch())
    np.testing.assert_allclose(computed.gradients.flat, 2 * once.gradients.flat, rtol=1e-10, atol=1e-12)
