"""Metrics of tasks on answers with known scores."""

import numpy as np
import pytest

from mini_bert.evaluation.tasks.scores import answer_f1, exact_match, macro_f1


def test_macro_f1_is_the_mean_over_labels():
    predicted, true = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    assert macro_f1(predicted, true, 3) == pytest.approx((2 / 3 + 4 / 5) / 2)     # the third label does not occur
    assert macro_f1(true, true, 2) == 1


def test_answers_are_normalised_as_in_squad():
    assert exact_match("The Eiffel Tower.", ["eiffel tower"]) == 1
    assert answer_f1("the tall Eiffel Tower", ["Eiffel Tower", "Paris"]) == pytest.approx(2 * 2 / 5)
    assert answer_f1("", ["x"]) == 0
