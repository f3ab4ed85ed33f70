"""MathematicalExplorer as a user calls it: a model, a tokenizer, a text."""

import json

import numpy as np
import pytest
from hand_built_models import small, tokenizer

import mini_bert
from mini_bert import InputError, MathematicalExplorer
from mini_bert.evaluation.representations.geometry import compute_layer_similarity

TEXT = "the cat sat on a mat ."


@pytest.fixture
def explorer() -> MathematicalExplorer:
    return MathematicalExplorer(small(), tokenizer())


def test_every_method_takes_a_text(explorer):
    assert len(explorer.explore_attention_heads(TEXT).heads) == 4
    assert explorer.step_through_forward_pass(TEXT)["logits"].shape == (9, 18)
    assert explorer.step_through_backward_pass(TEXT, mask=[2])["dQ_0"].norm > 0
    assert explorer.analyze_gradient_flow(TEXT).total > 0
    assert explorer.compare_layer_representations(TEXT).names == ["embeddings", "hidden_0", "hidden_1", "final_hidden"]
    assert explorer.logit_lens(TEXT, mask=[2]).positions == [2]
    assert explorer.explain_prediction(TEXT, 2, "cat", mask=[2]).tokens[2] == "[MASK]"


def test_every_method_can_mask_positions(explorer):
    assert explorer.explore_attention_heads(TEXT, mask=[2]).tokens[2] == "[MASK]"
    assert explorer.step_through_forward_pass(TEXT, mask=[2]).tokens[2] == "[MASK]"
    assert explorer.step_through_backward_pass(TEXT, mask=[2]).forward.tokens[2] == "[MASK]"
    loss = explorer.step_through_backward_pass(TEXT, mask=[2]).loss
    assert explorer.analyze_gradient_flow(TEXT, mask=[2]).loss == loss
    found = explorer.compare_layer_representations(TEXT, mask=[2])
    assert found.tokens[1] == "[MASK]"
    assert not np.allclose(found.similarity, explorer.compare_layer_representations(TEXT).similarity)


def test_all_results_can_be_written_as_json(explorer):
    results = [explorer.explore_attention_heads(TEXT), explorer.step_through_forward_pass(TEXT),
               explorer.step_through_backward_pass(TEXT, mask=[2]), explorer.analyze_gradient_flow(TEXT),
               explorer.compare_layer_representations(TEXT), explorer.explain_prediction(TEXT, 2, "cat", mask=[2])]
    for result in results:
        json.dumps(result.to_dict(), allow_nan=False)
    json.dumps(explorer.logit_lens(TEXT).to_dict(explorer.tokenizer), allow_nan=False)


def test_layers_are_compared_without_special_tokens(explorer):
    found = explorer.compare_layer_representations(TEXT)
    assert found.tokens == TEXT.split()
    _, cache = explorer.model.encode(np.array([explorer.tokenizer.encode(TEXT)]))
    states = [cache[name][0, 1:-1] for name in found.names]
    np.testing.assert_allclose(found.similarity, compute_layer_similarity(states))
    first, second = (state / np.linalg.norm(state, axis=1, keepdims=True) for state in states[:2])
    np.testing.assert_allclose(found.cosine[0], (first * second).sum(axis=1))
    assert found.geometry["hidden_0"].tokens == 7


def test_a_layer_that_changes_nothing_is_similar_to_the_previous_one():
    """With zero attention and feed-forward outputs a layer is LayerNorm, which leaves its own output unchanged."""
    model = small()
    for name in model.params:
        if name.startswith(("W_O", "W2", "b2")) or "beta" in name:
            model.params[name][...] = 0
        if "gamma" in name:
            model.params[name][...] = 1
    found = MathematicalExplorer(model, tokenizer()).compare_layer_representations(TEXT)
    assert found.similarity[1, 2] == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(found.cosine[1:], 1, atol=1e-6)


def test_too_few_tokens_and_a_foreign_tokenizer_are_refused(explorer):
    with pytest.raises(InputError, match="3 tokens; comparing layers needs at least 4"):
        explorer.compare_layer_representations("the cat sat")
    with pytest.raises(InputError, match="18 pieces"):
        MathematicalExplorer(small(vocab_size=10), tokenizer())


def test_the_class_is_a_public_name_of_the_package():
    assert mini_bert.MathematicalExplorer is MathematicalExplorer
    assert {"MathematicalExplorer", "MathematicalAnalyzer"} <= set(mini_bert.__all__)
