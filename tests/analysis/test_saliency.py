"""Attributions: they are complete, equal the slope, and are zero for tokens that cannot matter."""

import numpy as np
import pytest
from hand_built_models import WITH_HEAD, build, small, tokenizer

from mini_bert import InputError
from mini_bert.analysis.passes.saliency import explain_prediction, gradient_times_input, integrated_gradients

IDS = np.array([2, 9, 11, 4, 3])


@pytest.fixture(params=WITH_HEAD, ids=list(WITH_HEAD))
def model(request):
    return build(WITH_HEAD[request.param])


def output(model, vectors, against=None):
    """The logit of 7 at position 3 for other token embeddings."""
    logits, _ = model.forward(IDS[None], hook=lambda name, value: vectors if name == "token_vectors" else value)
    return logits[0, 3, 7] - (0 if against is None else logits[0, 3, against])


@pytest.mark.parametrize("against", [None, 12])
def test_integrated_gradients_are_complete(model, against):
    x = model.params["token_embeddings"][IDS]
    baseline = x + 0.3 * np.random.default_rng(0).standard_normal(x.shape)
    found = integrated_gradients(model, IDS, 3, 7, against, baseline=baseline, steps=257)
    assert found.output == pytest.approx(output(model, x, against))
    assert found.baseline_output == pytest.approx(output(model, baseline, against))
    change = found.output - found.baseline_output
    assert abs(found.attributions.sum() - change) <= found.error + 1e-12
    assert found.error < 0.02 * np.abs(found.attributions).sum()
    assert found.gap == pytest.approx(change - found.attributions.sum())
    np.testing.assert_allclose(found.by_dimension.sum(axis=1), found.attributions)


def test_a_smooth_model_needs_few_steps():
    model = small(activation="gelu")
    model.params["token_embeddings"][...] *= 0.3          # no sharp bends along the path
    found = integrated_gradients(model, IDS, 3, 7, steps=33)
    assert found.error < 1e-3 * abs(found.output - found.baseline_output)
    assert abs(found.gap) <= found.error


def test_gradient_times_input_is_the_slope_of_scaling_a_token(model):
    found, h = gradient_times_input(model, IDS, 3, 7), 1e-6
    x = model.params["token_embeddings"][IDS]
    for t in range(5):
        moved = np.zeros_like(x)
        moved[t] = h * x[t]
        assert found.attributions[t] == pytest.approx((output(model, x + moved) - output(model, x - moved)) / (2 * h),
                                                      rel=1e-4, abs=1e-7)
    assert found.gap is None


def test_tokens_that_cannot_be_attended_to_get_zero():
    model = small()
    for i in range(2):
        model.params[f"W_V_{i}"][...] = 0                 # no head contributes anything
    for found in (integrated_gradients(model, IDS, 3, 7), gradient_times_input(model, IDS, 3, 7)):
        assert not found.attributions[[0, 1, 2, 4]].any()
        assert found.attributions[3] != 0


def test_with_the_text_as_baseline_attributions_are_zero():
    model = small()
    found = integrated_gradients(model, IDS, 3, 7, baseline=model.params["token_embeddings"][IDS])
    assert not found.attributions.any()
    assert found.output == pytest.approx(found.baseline_output)
    masks = integrated_gradients(model, IDS, 3, 7, baseline=4)
    assert masks.attributions[3] == 0     # the token there is [MASK] itself


def test_explaining_a_prediction_in_a_text():
    model, words = small(), tokenizer()
    found = explain_prediction(model, words, "the [MASK] sat", 2, "cat", against="dog")
    assert found.tokens == ["[CLS]", "the", "[MASK]", "sat", "[SEP]"]
    assert (found.target, found.against) == (words.vocabulary.ids["cat"], words.vocabulary.ids["dog"])
    again = explain_prediction(model, words, "the cat sat", 2, "cat", mask=[2], method="gradient x input")
    assert again.tokens == found.tokens
    assert again.to_dict()["gap"] is None


def test_bad_input_is_refused():
    model = small()
    for problem, call in {"no position 9": lambda: gradient_times_input(model, IDS, 9, 7),
                          "no piece 99": lambda: gradient_times_input(model, IDS, 3, 99),
                          "steps": lambda: integrated_gradients(model, IDS, 3, 7, steps=0),
                          "baseline has": lambda: integrated_gradients(model, IDS, 3, 7, baseline=np.zeros((2, 2))),
                          "no piece -1": lambda: integrated_gradients(model, IDS, 3, 7, baseline=-1),
                          "no method": lambda: explain_prediction(model, tokenizer(), "cat", 1, "dog", method="lime"),
                          }.items():
        with pytest.raises(InputError, match=problem):
            call()
