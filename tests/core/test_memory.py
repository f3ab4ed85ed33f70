"""The memory of a step: predicted well enough to plan with, and used again."""

import subprocess
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from mini_bert import MiniBERT, MiniBERTGradients, load_preset, mask_tokens
from mini_bert.training.memory import training_memory


@pytest.mark.parametrize(("name", "batch_size", "rate"), [
    ("mini", 8, 0.15), ("mini", 32, 0.15), ("mini", 32, 0.3), ("larger", 4, 0.15), ("larger", 4, 0.3),
    ("bert-tiny", 2, 0.15), ("mini-deberta", 8, 0.15), ("mini-deberta", 32, 0.3)])
def test_the_prediction_is_near_what_a_step_allocates(name, batch_size, rate):
    config = load_preset(name)
    peak = _peak(config, batch_size, rate)
    predicted = training_memory(config, batch_size, masking_rate=rate)
    assert peak == pytest.approx(predicted.gradients + predicted.activations, rel=0.2)


def _peak(config, batch_size, rate=0.15):
    """What a step allocates beside the parameters."""
    model = MiniBERT(config, seed=None)                # what is allocated does not depend on the numbers
    ids = np.random.default_rng(0).integers(5, config.vocab_size, (batch_size, config.max_seq_length))
    masked, targets, positions = mask_tokens(ids, config.vocab_size, mask_prob=rate)
    tracemalloc.start()
    MiniBERTGradients(model).accumulate_mlm(masked, targets, positions, dropout_key=(0, 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("terms", ["relative_keys", "rotary", "relative_keys(reach=4) + rotary", "relative",
                                   "segments + relative", "disentangled",
                                   "disentangled(reach=16, buckets=8, share=true, norm=true)"])
def test_the_prediction_counts_what_score_terms_keep(terms):
    plain = replace(load_preset("mini"), num_heads=8)
    config = replace(plain, score_terms=terms)
    more = _peak(config, 16) - _peak(plain, 16)
    assert more == pytest.approx(training_memory(config, 16).total - training_memory(plain, 16).total, rel=0.2)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator is asked, which is Linux's")
def test_steps_take_no_fresh_pages_once_memory_is_kept():
    program = """
import resource
import numpy as np
from mini_bert import MiniBERT, MiniBERTGradients
from mini_bert.workers import keep_freed_memory
if not keep_freed_memory():
    raise SystemExit("77")
grads = MiniBERTGradients(MiniBERT())
ids = np.full((16, 64), 7)
positions = np.arange(64) % 7 == 0
positions = np.broadcast_to(positions, ids.shape)
def step():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    grads.accumulate_mlm(ids, ids, positions)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = step()
step()
print(first, min(step() for _ in range(5)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.stderr.strip() == "77":
        pytest.skip("this C library has no mallopt")
    first, later = map(int, done.stdout.split())
    assert later < first / 20
