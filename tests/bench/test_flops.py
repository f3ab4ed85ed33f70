"""The count of operations is that of the formulas, for any variant."""

import pytest

from mini_bert import ModelConfig
from mini_bert.bench.flops import count_flops

SIZES = {"num_layers": 2, "num_heads": 4, "hidden_size": 64, "intermediate_size": 256, "vocab_size": 500,
         "max_seq_length": 32}


def test_the_count_is_that_of_the_matrices_and_of_attention():
    T, H, I, L = 32, 64, 256, 2
    layers = L * (4 * 2 * T * H * H + 2 * 2 * T * H * I + 2 * 2 * T * T * H)
    counted = count_flops(ModelConfig(**SIZES))
    assert counted.forward == pytest.approx(layers, rel=0.02)        # row sums are products too
    assert 1.5 * layers < counted.step < 3.5 * layers                # the last layer's rows are few


def test_a_gate_costs_half_as_much_again_as_the_feed_forward_network():
    plain, gated = (count_flops(ModelConfig(**SIZES, feedforward=word)).forward for word in ("mlp", "gated"))
    assert gated - plain == 2 * 2 * 32 * 64 * 256


def test_a_shorter_text_costs_less_and_a_model_without_a_head_has_no_step():
    assert count_flops(ModelConfig(**SIZES, mlm_head="none")).step == 0
    assert count_flops(ModelConfig(**SIZES), length=16).forward < count_flops(ModelConfig(**SIZES)).forward / 2
