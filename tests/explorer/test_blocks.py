"""The map of the model: every step in one block, and the ways past blocks are the residual paths."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, load_preset
from mini_bert.analysis.passes.backward_steps import backward_pass
from mini_bert.analysis.passes.forward_steps import forward_pass
from mini_bert.explorer.blocks import blocks_of, places_of_gradients

PRESETS = ["mini", "mini-modern", "mini-albert", "mini-deberta", "mini-xlnet", "mini-gpt", "mini-gated"]


def passed(preset):
    config = {**load_preset(preset).to_dict(), "vocab_size": 40, "num_layers": 2}
    return forward_pass(MiniBERT(ModelConfig.from_dict(config), seed=0), np.arange(5, 11))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_step_is_in_one_block_in_the_order_of_the_pass(preset):
    forward = passed(preset)
    blocks = blocks_of(forward)
    assert [name for block in blocks for name in block["steps"]] == forward.names
    assert len({block["id"] for block in blocks}) == len(blocks)
    assert all(block["title"] and block["group"] for block in blocks)


def test_the_ways_past_the_blocks_of_bert_are_its_residual_paths():
    blocks = {block["id"]: block for block in blocks_of(passed("mini"))}
    assert list(blocks)[:5] == ["embeddings-embeddings", "layer-0-attention", "layer-0-add-and-norm",
                                "layer-0-feed-forward", "layer-0-add-and-norm-2"]
    assert blocks["layer-0-add-and-norm"]["past"] == ["embeddings-embeddings"]
    assert blocks["layer-0-add-and-norm-2"]["past"] == ["layer-0-add-and-norm"]
    assert blocks["layer-1-attention"]["past"] == []


@pytest.mark.parametrize("preset", [preset for preset in PRESETS if preset != "mini-xlnet"])
def test_every_gradient_is_shown_in_a_block(preset):
    forward = passed(preset)
    backward = backward_pass(forward, {3: 7})
    places = places_of_gradients(forward, backward)
    assert places.keys() == {step.name for step in backward}
    assert set(places.values()) <= set(forward.names)
    assert places["dlogits"] == "logits"
    if preset == "mini":
        assert places["dW_Q_1"] == "Q_1"
        assert places["dtoken_embeddings"] == "token_vectors"
