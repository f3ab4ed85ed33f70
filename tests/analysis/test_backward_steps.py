"""The backward pass step by step: the model's own gradients, true formulas, every entry the slope that it claims."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hand_built_models import WITH_HEAD, build, small, tokenizer

from mini_bert import InputError, MiniBERT, MiniBERTGradients, ModelConfig
from mini_bert.analysis.passes.backward_steps import backward_pass, step_through_backward_pass, verify_entry
from mini_bert.analysis.passes.forward_steps import forward_pass

IDS = np.array([2, 9, 11, 9, 30, 4, 3])
TARGETS = {2: 17, 5: 40}


@pytest.fixture(params=WITH_HEAD, ids=list(WITH_HEAD))
def model(request):
    return build(WITH_HEAD[request.param])


def test_the_gradients_are_those_of_the_models_own_backward_bit_for_bit(model):
    passed = backward_pass(forward_pass(model, IDS), TARGETS)
    grads = MiniBERTGradients(model)
    logits, cache = model.forward(IDS[None])
    targets, chosen = np.zeros((1, 7), int), np.zeros((1, 7), bool)
    targets[0, [2, 5]], chosen[0, [2, 5]] = [17, 40], True
    loss, dlogits = grads.compute_mlm_loss_and_gradients(logits, targets, chosen)
    grads.backward_from_logits(dlogits, cache)
    assert passed.loss == loss
    np.testing.assert_array_equal(passed.gradients.flat, grads.gradients.flat)
    np.testing.assert_array_equal(passed["dlogits"].array, dlogits[0])
    shown = {step.of for step in passed if step.is_parameter}
    unread = ("pooler", "query_embedding")            # without an order, nothing starts as a query
    assert shown == {name for name in model.params if not name.startswith(unread)}
    for name in shown:
        step = passed[f"d{name}"]
        rows = slice(None) if step.rows is None else step.rows
        np.testing.assert_array_equal(step.array, grads.gradients[name][rows])
        assert step.norm == pytest.approx(np.linalg.norm(grads.gradients[name]))     # no row that counts is left out


def test_entries_of_every_step_pass_verification(model):
    """Every value and every parameter, at its largest entry; of some another entry too."""
    passed, rng = backward_pass(forward_pass(model, IDS), TARGETS), np.random.default_rng(0)
    for number, step in enumerate(passed):
        places = [np.unravel_index(np.abs(step.array).argmax(), step.shape)]
        places += [tuple(rng.integers(n) for n in step.shape)] if number % 4 == 0 else []
        for index in places:
            found = verify_entry(step, [int(i) for i in index])
            assert found.passed, (step.name, found)
            assert found.shown == pytest.approx(found.analytic, rel=1e-9, abs=1e-15)


def test_what_a_step_uses_was_there_before_it(model):
    forward = forward_pass(model, IDS)
    known = {"dlogits"}
    for step in backward_pass(forward, TARGETS):
        assert set(step.gradients) <= known, step.name
        assert all(name in forward.names or name in model.params for name in step.values)
        assert ElementTree.fromstring(step.formula.mathml).tag.endswith("math")
        assert step.to_dict()["norm"] == step.norm
        known.add(step.name)


def test_the_loss_sends_back_the_probabilities_less_the_target():
    forward = forward_pass(small(), IDS[:3])
    passed = backward_pass(forward, {1: 7})
    exps = np.exp(forward["logits"].array[1])
    expected = exps / exps.sum()
    assert passed.probabilities[1] == pytest.approx(expected[7])
    assert passed.loss == pytest.approx(-np.log(expected[7]))
    expected[7] -= 1
    np.testing.assert_allclose(passed["dlogits"].array[1], expected)
    assert not passed["dlogits"].array[[0, 2]].any()
    assert passed["dlogits"].formula.text == \
        "dL = [asked] * (softmax(L) - onehot(target)) / M, where M = number(asked), asked = has(target)"


def test_the_gradient_of_a_bias_is_a_sum_over_tokens():
    passed = backward_pass(forward_pass(small(), IDS[:3]), {1: 7})
    assert passed["db2_1"].formula.text == "db_2 = sum_t(df)"
    assert "<msub><mi>sum</mi><mi>t</mi></msub>" in passed["db2_1"].formula.mathml


def test_the_residual_path_splits_and_joins():
    passed = backward_pass(forward_pass(small(), IDS[:3]), {1: 7})
    np.testing.assert_array_equal(passed["dffn_output_1"].array, passed["dffn_residual_1"].array)
    np.testing.assert_allclose(passed["dmiddle_1"].array,
                               passed["dffn_input_1"].array + passed["dffn_residual_1"].array)
    assert passed["dmiddle_1"].formula.text == "dm = dn + dq"


def test_a_tied_table_gets_both_gradients():
    model = small(mlm_head="bert", embedding_layernorm=True)
    passed = backward_pass(forward_pass(model, IDS[:3]), {1: 7})
    step = passed["dtoken_embeddings"]
    assert "dmlm_head_W" not in passed.names
    assert step.rows is None
    assert step.formula.text.startswith("dE = scatter(de, ids) + (k^T dL)^T")
    assert set(step.gradients) == {"dtoken_vectors", "dlogits"}


def test_layers_that_share_parameters_add_up():
    model = small(stack="shared")
    forward = forward_pass(model, IDS[:3])
    passed = backward_pass(forward, {1: 7})
    step = passed["dW1_0"]
    assert "dW1_1" not in passed.names
    assert step.formula.text == "dW_1 = sum_layers(n^T du)"
    assert step.values == ("ffn_input_0", "ffn_input_1")
    np.testing.assert_allclose(step.array, sum(forward[f"ffn_input_{i}"].array.T @ passed[f"dffn_hidden_{i}"].array
                                               for i in range(2)))
    assert passed.names.index("dW1_0") > passed.names.index("dffn_hidden_0")


def test_a_wrong_gradient_does_not_pass(monkeypatch):
    step = backward_pass(forward_pass(small(), IDS[:3]), {1: 7})["dQ_0"]
    index = [int(i) for i in np.unravel_index(np.abs(step.array).argmax(), step.shape)]
    assert verify_entry(step, index).passed
    wrong = {**step.check.values, "Q_0": 1.001 * step.check.values["Q_0"]}
    monkeypatch.setitem(vars(step.check), "values", wrong)
    assert not verify_entry(step, index).passed


def test_a_step_over_a_kink_is_made_smaller():
    """A ReLU's input 1e-5 below its kink: the first step goes over it, and the slope on this side is 0."""
    model = small(num_layers=1, activation="relu")
    forward = forward_pass(model, IDS[:3])
    model.params["b1_0"][4] -= forward["ffn_hidden_0"].array[1, 4] + 1e-5
    passed = backward_pass(forward_pass(model, IDS[:3]), {1: 7})
    found = verify_entry(passed["dffn_hidden_0"], [1, 4])
    assert found.numeric == found.analytic == 0
    assert 0 < found.step < 1e-5
    assert not found.at_kink


def test_float32_is_verified_in_float64():
    config = small().config
    model = build(config, np.float32)
    step = backward_pass(forward_pass(model, IDS[:3]), {1: 7})["dW_Q_0"]
    assert step.array.dtype == np.float32
    index = [int(i) for i in np.unravel_index(np.abs(step.array).argmax(), step.shape)]
    found = verify_entry(step, index)
    assert found.passed
    assert found.shown == pytest.approx(found.analytic, rel=1e-4)
    assert found.to_dict()["passed"] is True


def test_a_text_with_masks_and_words():
    model, words = small(), tokenizer()
    passed = step_through_backward_pass(model, words, "the cat sat", mask=[2])
    assert passed.targets == {2: words.vocabulary.ids["cat"]}
    assert passed.forward.tokens[2] == "[MASK]"
    passed = step_through_backward_pass(model, words, "the [MASK] sat", targets={2: "dog"})
    assert passed.targets == {2: words.vocabulary.ids["dog"]}
    again = [step_through_backward_pass(model, words, "the cat sat on the mat", seed=seed).targets for seed in (3, 3)]
    assert len(again[0]) == 1
    assert again[0] == again[1]


def test_bad_input_is_refused():
    model, words = small(), tokenizer()
    forward = forward_pass(model, IDS[:3])
    with pytest.raises(InputError, match="no target"):
        backward_pass(forward, {})
    with pytest.raises(InputError, match="no position 3"):
        backward_pass(forward, {3: 5})
    with pytest.raises(InputError, match="no piece 18"):
        backward_pass(forward, {1: 18})
    with pytest.raises(InputError, match=r"targets=\{2: 'word'\}"):
        step_through_backward_pass(model, words, "the [MASK] sat")
    with pytest.raises(InputError, match="not one piece"):
        step_through_backward_pass(model, words, "the [MASK] sat", targets={2: "zebra"})
    with pytest.raises(InputError, match="no word that could be masked"):
        step_through_backward_pass(model, words, "")
    with pytest.raises(InputError, match=r"no entry \[0, 99\]"):
        verify_entry(backward_pass(forward, {1: 7})["dhidden_0"], [0, 99])
    headless = MiniBERT(ModelConfig.from_dict({**model.config.to_dict(), "mlm_head": "none"}))
    with pytest.raises(InputError, match="no MLM head"):
        backward_pass(forward_pass(headless, IDS[:3]), {1: 7})
