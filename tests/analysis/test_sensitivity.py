"""Learning-rate sensitivity, and collapsed representations and predictions."""

import numpy as np
import pytest

from mini_bert import ConfigError, InputError, mask_tokens
from mini_bert.analysis.batches import as_batch, batch_gradient
from mini_bert.analysis.dynamics.sensitivity import (
    analyze_learning_rate_sensitivity,
    compute_layer_wise_learning_rates,
    detect_mode_collapse,
    prediction_spread,
)


@pytest.fixture
def batch():
    return mask_tokens(np.random.default_rng(2).integers(5, 64, (6, 12)), 64, rng=3)


def test_small_steps_change_the_loss_by_rate_times_squared_slope(model, batch):
    _, gradient = batch_gradient(model, as_batch(batch))
    before = model.params.flat.tobytes()
    found = analyze_learning_rate_sensitivity(model, batch, [1e-6, 1e-5], optimiser="sgd", max_grad_norm=0)
    assert model.params.flat.tobytes() == before
    square = float((gradient.flat**2).sum())
    assert found.changes == pytest.approx([-1e-6 * square, -1e-5 * square], rel=1e-3)


def test_too_large_a_step_overshoots(model, batch):
    found = analyze_learning_rate_sensitivity(model, batch)
    assert found.rates == sorted(found.rates)
    assert found.losses[0] == pytest.approx(found.loss, abs=1e-2)
    assert min(found.changes) < -0.1
    assert found.changes[-1] > 0.5
    assert found.best_rate < found.overshoots <= 1
    assert found.to_dict()["best_rate"] == found.best_rate


def test_layer_wise_rates_change_all_parameters_equally():
    gradients = {"a": np.full((2, 2), 3.0), "b": np.full(4, 1.0), "c": np.zeros(3)}
    rates = compute_layer_wise_learning_rates(gradients, 0.1)
    assert rates["a"] * 3 == pytest.approx(rates["b"] * 1)
    assert rates["c"] == 0.1
    assert compute_layer_wise_learning_rates(gradients, {"a": 0.1, "b": 0.2, "c": 1})["b"] == pytest.approx(
        2 * rates["b"])
    with pytest.raises(InputError, match="no rate for b"):
        compute_layer_wise_learning_rates(gradients, {"a": 0.1})


def test_collapse_is_found_with_its_beginning(rng):
    spread = rng.standard_normal((40, 8))
    alike = np.ones((40, 8)) + 0.01 * spread
    found = detect_mode_collapse([spread, alike, spread, alike, alike])
    assert found.collapsed
    assert found.since == 3
    assert found.mean_cosine[0] < 0.1
    assert found.mean_cosine[-1] > 0.99
    assert found.dimensionality[0] > 5
    assert detect_mode_collapse([alike, spread]).since is None
    assert detect_mode_collapse([alike]).since == 0


def test_the_spread_of_predictions():
    same = np.log(np.tile([0.5, 0.25, 0.25], (10, 1)))
    found = prediction_spread(same)
    assert found.top_share == 1
    assert found.distinct == 1
    assert found.position_entropy == pytest.approx(1.5 * np.log(2))
    assert found.information == pytest.approx(0, abs=1e-12)
    each = prediction_spread(1e3 * np.eye(4))                     # four positions, each certain of a different token
    assert each.top_share == 0.25
    assert each.information == pytest.approx(np.log(4))


def test_bad_input_is_refused(model, batch):
    for rates in ([], [0.0], [-1.0], [np.inf]):
        with pytest.raises(InputError, match="above 0"):
            analyze_learning_rate_sensitivity(model, batch, rates)
    with pytest.raises(ConfigError, match="adamw, ema, lion, lookahead, muon, sgd"):
        analyze_learning_rate_sensitivity(model, batch, [1.0], optimiser="newton")
    with pytest.raises(InputError, match="empty"):
        detect_mode_collapse([])
    with pytest.raises(InputError, match="finite"):
        prediction_spread(np.full((2, 2), np.nan))
