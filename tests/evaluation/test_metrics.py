"""Metrics of predictors with known values."""

import json
from math import inf, log, sqrt

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, MiniBERTGradients
from mini_bert.evaluation.metrics import (
    compute_calibration,
    compute_gradient_norm,
    compute_perplexity,
    masked_accuracy,
    masked_calibration,
)


def test_accuracy_is_the_share_of_masked_positions_within_the_top_k(rng):
    logits = np.zeros((2, 3, 20))
    logits[...] = -np.arange(20)                      # token 0 is the most likely, token 19 the least
    targets = np.array([[0, 4, 9], [19, 5, 0]])
    mask = np.array([[1, 1, 1], [1, 1, 0]])
    assert masked_accuracy(logits, targets, mask) == pytest.approx(1 / 5)
    assert masked_accuracy(logits, targets, mask, top=5) == pytest.approx(2 / 5)
    assert masked_accuracy(logits, targets, mask, top=10) == pytest.approx(4 / 5)
    assert masked_accuracy(logits, targets, mask, top=20) == 1
    chosen = mask.astype(bool)
    assert masked_accuracy(logits[chosen], targets[chosen], top=5) == pytest.approx(2 / 5)


def test_equal_scores_for_all_tokens_give_chance_accuracy():
    logits, targets = np.zeros((7, 20), np.float32), np.arange(7)
    for top in (1, 5, 10):
        assert masked_accuracy(logits, targets, top=top) == pytest.approx(top / 20)
    logits[:, 19] = 1                                 # one above, nineteen share the other ranks
    assert masked_accuracy(logits, targets, top=5) == pytest.approx(4 / 19)


def test_top_one_accuracy_equals_argmax(rng):
    logits, targets = rng.standard_normal((500, 6)), rng.integers(0, 6, 500)
    assert masked_accuracy(logits, targets) == np.mean(logits.argmax(axis=1) == targets)


@pytest.mark.parametrize(("logits", "targets", "mask", "top", "words"), [
    (np.zeros((2, 3)), [0, 1], [0, 0], 1, "no position is masked"),
    (np.zeros((2, 3)), [0, 3], None, 1, "vocabulary has 0 to 2"),
    (np.zeros((2, 3)), [0, -100], [1, 1], 1, "from -100"),
    (np.zeros((2, 3)), [0, 1], None, 0, "top must be"),
    (np.zeros((2, 3)), [0, 1], None, True, "top must be"),
    (np.zeros((2, 3)), [0, 1, 2], None, 1, r"targets has the shape \(3,\)"),
    (np.zeros((2, 3)), [0.0, 1.0], None, 1, "must be integers"),
    (np.zeros((2, 3)), [0, 1], [1], 1, "mask has the shape"),
    (np.zeros((2, 3), int), [0, 1], None, 1, "floating-point"),
    (np.full((2, 3), np.nan), [0, 1], None, 1, "NaN"),
])
def test_arrays_that_do_not_fit_are_refused(logits, targets, mask, top, words):
    with pytest.raises(InputError, match=words):
        masked_accuracy(logits, np.array(targets), None if mask is None else np.array(mask), top)


def test_targets_that_are_not_masked_are_never_read():
    assert masked_accuracy(np.eye(3)[None], np.array([[0, -100, -100]]), np.array([[1, 0, 0]])) == 1


def test_perplexity_of_a_uniform_guess_is_the_number_of_choices():
    assert compute_perplexity(log(8192)) == pytest.approx(8192)
    assert compute_perplexity(0.0) == 1
    assert compute_perplexity(1e4) == inf
    for loss in (float("nan"), -0.1):
        with pytest.raises(InputError, match="at least 0"):
            compute_perplexity(loss)


def test_the_gradient_norm_covers_all_parameters(debug):
    assert compute_gradient_norm({"a": np.array([3.0]), "b": np.array([[0.0, 4.0], [12.0, 0.0]])}) == 13
    huge = np.full(100, 1e30, np.float32)             # their squares overflow float32
    assert compute_gradient_norm({"a": huge}) == pytest.approx(1e31)
    gradients = MiniBERTGradients(MiniBERT(debug)).gradients
    gradients.flat[...] = 2
    assert compute_gradient_norm(gradients) == pytest.approx(2 * sqrt(gradients.flat.size))
    assert compute_gradient_norm(dict(gradients)) == pytest.approx(compute_gradient_norm(gradients))
    for wrong in ({}, np.ones(3)):
        with pytest.raises(InputError, match="named arrays"):
            compute_gradient_norm(wrong)


def test_a_calibrated_predictor_has_no_error():
    confidence = np.repeat([0.15, 0.55, 0.95], 100)
    right = np.concatenate([np.arange(100) < share for share in (15, 55, 95)])
    found = compute_calibration(confidence, right)
    assert found.error == pytest.approx(0, abs=1e-12)
    assert found.overconfidence == pytest.approx(0, abs=1e-12)
    assert [row.predictions for row in found.table] == [0, 100, 0, 0, 0, 100, 0, 0, 0, 100]
    assert found.table[5].accuracy == pytest.approx(0.55)


def test_the_error_of_an_overconfident_predictor_is_the_gap():
    found = compute_calibration([0.9] * 100, [True] * 60 + [False] * 40)
    assert found.error == pytest.approx(0.3)
    assert found.worst == pytest.approx(0.3)
    assert found.overconfidence == pytest.approx(0.3)
    # gaps in opposite directions cancel in the mean, but not in the error
    mixed = compute_calibration([0.9] * 50 + [0.1] * 50, [True] * 25 + [False] * 25 + [True] * 25 + [False] * 25)
    assert mixed.overconfidence == pytest.approx(0)
    assert mixed.error == pytest.approx(0.4)
    assert json.loads(json.dumps(found.to_dict()))["table"][8]["predictions"] == 100


def test_the_error_by_chance_is_that_of_a_calibrated_predictor(rng):
    confidence = rng.random(2000)
    errors = [compute_calibration(confidence, rng.random(2000) < confidence).error for _ in range(200)]
    assert compute_calibration(confidence, np.zeros(2000)).error_by_chance == pytest.approx(np.mean(errors), rel=0.05)


def test_confidence_is_the_probability_of_the_most_likely_token():
    logits = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
    found = masked_calibration(logits, np.array([0, 0]))
    assert found.confidence == pytest.approx(0.75)
    assert found.accuracy == 0.5
    assert [row.predictions for row in found.table if row.predictions] == [1, 1]


@pytest.mark.parametrize(("confidence", "right", "bins", "words"), [
    ([], [], 10, "the same length"), ([0.5], [1, 0], 10, "the same length"), ([1.5], [1], 10, "confidence must lie"),
    ([float("nan")], [1], 10, "confidence must lie"), ([0.5], [2], 10, "right must lie"), ([0.5], [1], 0, "bins")])
def test_invalid_confidences_are_refused(confidence, right, bins, words):
    with pytest.raises(InputError, match=words):
        compute_calibration(confidence, right, bins)
