"""Metrics of tasks on answers with known scores."""

import numpy as np
import pytest

from mini_bert.core.registry import find
from mini_bert.errors import ConfigError
from mini_bert.evaluation.tasks.metrics.metric import ClassMetric, metrics_from
from mini_bert.evaluation.tasks.scores import answer_f1, exact_match


def metric(word, values, truth):
    return find("metric", word).named(np.asarray(values, np.float64), np.asarray(truth))


def test_metrics_of_classes_follow_their_definitions():
    predicted, true = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
    values = np.eye(3)[predicted]
    assert metric("accuracy", values, true) == 0.75
    assert metric("macro_f1", values, true) == pytest.approx((2 / 3 + 4 / 5) / 2)     # the third label does not occur
    assert metric("macro_f1", values, predicted) == 1
    assert metric("f1", np.eye(2)[predicted], true) == pytest.approx(4 / 5)           # of the label 1
    # the correlation of two columns of zeros and ones
    assert metric("mcc", np.eye(2)[predicted], true) == pytest.approx(np.corrcoef(predicted, true)[0, 1])
    assert metric("mcc", np.eye(2)[[1, 1, 1, 1]], true) == 0                          # always the majority


def test_metrics_of_several_labels_and_of_numbers():
    values, true = [[0.9, 0.2], [0.6, 0.5], [0.1, 0.1]], [[1, 0], [0, 1], [0, 0]]
    assert metric("micro_f1", values, true) == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert metric("label_macro_f1", values, true) == pytest.approx((2 / 3 + 1) / 2)
    assert metric("exact_labels", values, true) == pytest.approx(2 / 3)
    assert metric("micro_f1", [[0.0, 0.0]], [[0, 0]]) == 1
    x, y = np.array([[1.0], [2.0], [4.0], [3.0]]), np.array([[1.0], [3.0], [30.0], [4.0]])
    assert metric("pearson", x, y) == pytest.approx(np.corrcoef(x[:, 0], y[:, 0])[0, 1])
    assert metric("spearman", x, y) == pytest.approx(1)
    assert metric("r2", y, y) == 1
    assert metric("r2", np.full_like(y, y.mean()), y) == pytest.approx(0)
    assert metric("pearson", np.ones_like(y), y) == 0


def test_a_metric_of_another_kind_is_refused_with_those_that_fit():
    assert list(metrics_from(("accuracy", "macro_f1"), "mcc", ClassMetric)) == ["mcc", "accuracy", "macro_f1"]
    with pytest.raises(ConfigError, match="pearson is of numbers, and the task has classes; choose one of accuracy"):
        metrics_from(("accuracy",), "pearson", ClassMetric)


def test_answers_are_normalised_as_in_squad():
    assert exact_match("The Eiffel Tower.", ["eiffel tower"]) == 1
    assert answer_f1("the tall Eiffel Tower", ["Eiffel Tower", "Paris"]) == pytest.approx(2 * 2 / 5)
    assert answer_f1("", ["x"]) == 0
