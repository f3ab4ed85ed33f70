"""The classifier of probes: gradients, and problems with known answers."""

import numpy as np
import pytest

from mini_bert.core.gradcheck import CheckResult
from mini_bert.errors import InputError
from mini_bert.evaluation.probes.classifier import Classifier, Recipe, Scaling, gradient_checks, train_classifier


@pytest.mark.parametrize("result", gradient_checks(0), ids=lambda r: f"{r.case}: {r.gradient}")
def test_gradients_match_numerical_derivatives(result: CheckResult):
    assert result.passed, result.error


def test_gradient_checks_cover_every_parameter():
    assert {result.gradient for result in gradient_checks(1)} == {"W", "b", "W1", "b1", "mix_scores", "mix_gamma"}


def test_a_wrong_gradient_is_found(monkeypatch):
    right = Classifier.backward

    def wrong(self, dlogits, cache, grads):
        right(self, dlogits, cache, grads)
        grads["b"][0] *= 1.001

    monkeypatch.setattr(Classifier, "backward", wrong)
    assert not all(result.passed for result in gradient_checks(0))


def separable(rng, n=600):
    """Three classes by the largest of three features, and two features of noise."""
    x = rng.standard_normal((n, 5)).astype(np.float32)
    return x, x[:, :3].argmax(axis=1)


def test_a_linear_probe_learns_a_linear_problem(rng):
    (x, y), (dev, dev_y), (test, test_y) = separable(rng), separable(rng, 200), separable(rng, 500)
    found = train_classifier([x], y, [dev], dev_y, 3, recipe=Recipe(learning_rate=0.03, batch_size=64))
    assert (found.classifier.predict([test]) == test_y).mean() > 0.95
    assert found.dev_accuracy == (found.classifier.predict([dev]) == dev_y).mean()
    again = train_classifier([x], y, [dev], dev_y, 3, recipe=Recipe(learning_rate=0.03, batch_size=64))
    assert (again.classifier.params.flat == found.classifier.params.flat).all()


def test_only_a_hidden_layer_learns_exclusive_or(rng):
    x = rng.standard_normal((2000, 2)).astype(np.float32)
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(np.int64)
    recipe = Recipe(learning_rate=0.02, batch_size=64, max_epochs=30)
    accuracy = [train_classifier([x[:1500]], y[:1500], [x[1500:]], y[1500:], 2, hidden=hidden,
                                 recipe=recipe).dev_accuracy for hidden in (0, 16)]
    assert accuracy[0] < 0.7
    assert accuracy[1] > 0.95


def test_the_mix_finds_the_informative_layer(rng):
    x, y = separable(rng, 1000)
    noise = [rng.standard_normal(x.shape).astype(np.float32) for _ in range(2)]
    layers = [noise[0], x, noise[1]]
    found = train_classifier([layer[:800] for layer in layers], y[:800], [layer[800:] for layer in layers], y[800:], 3,
                             recipe=Recipe(learning_rate=0.03, batch_size=64))
    mix = found.classifier.mix()
    assert sum(mix) == pytest.approx(1)
    assert mix[1] > 0.6
    assert found.dev_accuracy > 0.85


def test_scaling_standardises_the_set_it_was_computed_from(rng):
    x = (5 + 3 * rng.standard_normal((20000, 4))).astype(np.float32)
    x[:, 2] = 7
    scaling = Scaling.of(x)
    np.testing.assert_allclose(scaling.deviation[[0, 1, 3]], x[:, [0, 1, 3]].std(axis=0), rtol=1e-4)
    x = (x - scaling.mean) / scaling.deviation
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(x.std(axis=0), [1, 1, 0, 1], atol=1e-4)


def test_invalid_training_data_is_refused(rng):
    x, y = separable(rng, 10)
    with pytest.raises(InputError, match="needs rows"):
        train_classifier([x[:0]], y[:0], [x], y, 3)
    with pytest.raises(InputError, match="rows of features for"):
        train_classifier([x], y[:5], [x], y, 3)
    with pytest.raises(InputError, match="classes are 0 to 1"):
        train_classifier([x], np.full(10, 2), [x], y, 2)
    with pytest.raises(InputError, match="cannot be built"):
        Classifier(0, 3)


def test_a_development_label_unseen_in_training_counts_as_wrong(rng):
    x, y = separable(rng, 300)
    found = train_classifier([x], y, [x], np.full(300, -1), 3, recipe=Recipe(max_epochs=1))
    assert found.dev_accuracy == 0
