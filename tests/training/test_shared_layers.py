"""ALBERT's sharing, through the real trainer: one layer applied several times, on any number of threads."""

import numpy as np
import pytest

from mini_bert import MiniBERT, MiniBERTGradients, ModelConfig
from mini_bert.objectives.masked import MaskedLM
from mini_bert.objectives.objective import PassOptions
from mini_bert.text.batches import MLMBatch
from mini_bert.text.masking import mask_tokens
from mini_bert.training.config import TrainingConfig
from mini_bert.training.trainer import Trainer
from mini_bert.training.update import BatchGradients
from mini_bert.workers import workers

CONFIG = ModelConfig(num_layers=4, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=50, max_seq_length=12,
                     stack="shared", mlm_head="bert", dropout=0.1)


class Batches:
    """Sequences of different lengths, drawn by the step."""

    def __getitem__(self, step):
        rng = np.random.default_rng(step)
        ids = rng.integers(5, 50, (10, 12))
        masked, targets, positions = mask_tokens(ids, 50, 4, 0.3, step)
        real = np.arange(12) < rng.integers(6, 13, 10)[:, None]
        return MLMBatch(masked, targets, positions & real, real)


def test_twenty_steps_have_the_same_bits_on_any_number_of_threads():
    ends = []
    for threads in (1, 2, 4):
        model = MiniBERT(CONFIG)
        Trainer(model, Batches(), TrainingConfig(steps=20, batch_size=10, micro_batch_size=2, threads=threads,
                                               learning_rate=5e-3, warmup_steps=2)).train()
        ends.append(model.params.flat.copy())
    assert not np.array_equal(ends[0], MiniBERT(CONFIG).params.flat)
    assert all(np.array_equal(end, ends[0]) for end in ends[1:])


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_gradients_are_those_of_a_plain_store(threads):
    model, batch = MiniBERT(CONFIG, dtype=np.float64), Batches()[3]
    plain = MiniBERTGradients(model)
    loss, count = plain.accumulate_mlm(*batch[:4])
    with workers(threads) as team:
        computed = BatchGradients(MaskedLM(model, PassOptions(2)), team)
        found = computed.compute(batch)["masked"]
    assert (found.total, found.count) == (pytest.approx(loss, rel=1e-12), count)
    np.testing.assert_allclose(computed.gradients.flat, plain.gradients.flat, rtol=1e-10, atol=1e-12)


def test_there_is_one_layer_of_parameters():
    layers = {spec.layer for spec in MiniBERT(CONFIG).params.specs.values()}
    assert layers == {None, 0}
