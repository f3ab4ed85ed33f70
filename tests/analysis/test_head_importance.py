"""A head without output has no importance; the derivative by a head's factor is the slope of the loss."""

from dataclasses import replace

import numpy as np
import pytest
from hand_built_models import VARIANTS, build, small, tokenizer

from mini_bert import InputError
from mini_bert.analysis.attention.importance import (
    head_importance,
    head_importance_by_gradient,
    head_importance_by_masking,
    loss_with_heads,
    measure_head_importance,
)
from mini_bert.analysis.passes.sequences import Sentence, masked_sentence

SENTENCES = [Sentence(np.array([2, 9, 4, 11, 3]), [], {2: 7, 3: 9}), Sentence(np.array([2, 4, 3]), [], {1: 12})]
ONES = np.ones((2, 2))


def test_a_head_without_output_has_no_importance():
    model = small()
    model.params["W_O_1"][:8] = 0         # the rows that read the first head's context
    found = head_importance(model, SENTENCES)
    for figures in (found.by_masking, found.by_gradient, found.derivative):
        assert figures[1, 0] == 0
        assert (figures[[0, 0, 1], [0, 1, 1]] != 0).all()
    assert (found.texts, found.masked) == (2, 3)


def test_the_ranking_has_the_most_important_head_first():
    found = replace(head_importance(small(), SENTENCES), by_masking=np.array([[0.1, -0.2], [0.4, 0.0]]))
    assert found.ranking() == [(1, 0), (0, 0), (1, 1), (0, 1)]


@pytest.mark.parametrize("name", ["larger", "gpt2, mini-gpt", "bert-base, bert-large, bert-tiny"])
def test_the_derivative_is_the_slope_of_the_loss(name):
    model, step = build(VARIANTS[name]), 1e-5
    found = head_importance(model, SENTENCES)
    for head in np.ndindex(2, 2):
        moved = np.zeros((2, 2))
        moved[head] = step
        slope = (loss_with_heads(model, SENTENCES, ONES + moved) - loss_with_heads(model, SENTENCES, ONES - moved)) \
            / (2 * step)
        assert found.derivative[head] == pytest.approx(slope, rel=1e-6, abs=1e-9)


def test_importance_by_gradient_is_the_mean_over_texts_of_magnitudes():
    model = small()
    each = [head_importance(model, [sentence]).derivative for sentence in SENTENCES]
    found = head_importance(model, SENTENCES)
    np.testing.assert_allclose(found.by_gradient, np.mean(np.abs(each), axis=0))
    np.testing.assert_allclose(found.derivative, np.mean(each, axis=0))
    np.testing.assert_array_equal(found.by_gradient, head_importance_by_gradient(model, SENTENCES))
    np.testing.assert_array_equal(found.by_masking, head_importance_by_masking(model, SENTENCES))


def test_many_texts_give_the_same_result_in_several_batches():
    model = small()
    few, many = head_importance(model, SENTENCES), head_importance(model, SENTENCES * 20)
    for name in ("loss", "by_masking", "by_gradient", "derivative"):
        np.testing.assert_allclose(getattr(many, name), getattr(few, name), rtol=1e-9, atol=1e-12)
    assert (many.texts, many.masked) == (40, 60)


def test_masking_a_head_equals_zeroing_its_output_weights():
    model = small()
    found = head_importance(model, SENTENCES)
    assert found.loss == pytest.approx(loss_with_heads(model, SENTENCES, ONES))
    without = small()
    without.params["W_O_0"][8:] = 0
    rise = loss_with_heads(without, SENTENCES, ONES) - found.loss
    assert found.by_masking[0, 1] == pytest.approx(rise, rel=1e-9)


def test_the_same_seed_masks_the_same_words():
    model, words, texts = small(), tokenizer(), ["the cat sat on a mat", "a big dog ran"]
    first, again = (measure_head_importance(model, words, texts, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.by_masking, again.by_masking)
    assert len(first.to_dict()["by_gradient"]) == 2


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="no sentence"):
        head_importance(small(), [])
    with pytest.raises(InputError, match="Sentence 0 has no target"):
        head_importance(small(), [Sentence(np.array([2, 5, 3]), [], {})])
    with pytest.raises(InputError, match="no word"):
        masked_sentence(small(), tokenizer(), "")
