"""The loss landscape: a quadratic whose landscape is known, and parameters that are restored."""

import json

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, ParameterError, mask_tokens
from mini_bert.analysis.batches import as_batch, batch_gradient, batch_loss
from mini_bert.analysis.dynamics import loss_landscape
from mini_bert.analysis.dynamics.loss_landscape import analyze_loss_landscape, filter_normalised


@pytest.fixture
def batch():
    ids = np.random.default_rng(2).integers(5, 64, (6, 12))
    return mask_tokens(ids, 64, rng=3)


def quadratic(model: MiniBERT, batch: object) -> float:
    """1/2 |W_Q_0|^2 + 2 |W1_0|^2."""
    return float(0.5 * (model.params["W_Q_0"] ** 2).sum() + 2 * (model.params["W1_0"] ** 2).sum())


def test_a_quadratic_has_the_landscape_of_a_quadratic(model, batch, monkeypatch):
    monkeypatch.setattr(loss_landscape, "batch_loss", quadratic)
    d, e = model.params.zeros_like(), model.params.zeros_like()
    rng = np.random.default_rng(0)
    d["W_Q_0"][...] = rng.standard_normal((16, 16))
    e["W1_0"][...] = rng.standard_normal((16, 32))
    alphas, betas = np.linspace(-2, 2, 9), np.linspace(-1, 1, 5)
    found = analyze_loss_landscape(model, batch, ["W_Q_0", "W1_0"], alphas=alphas, betas=betas, directions=[d, e],
                                   normalise=False)
    Q, W = model.params["W_Q_0"], model.params["W1_0"]
    expected = [[0.5 * ((Q + a * d["W_Q_0"]) ** 2).sum() + 2 * ((W + b * e["W1_0"]) ** 2).sum() for b in betas]
                for a in alphas]
    assert found.losses == pytest.approx(np.array(expected), rel=1e-9)
    assert found.curvature == pytest.approx((d["W_Q_0"] ** 2).sum(), rel=1e-6)        # second derivative: |d|^2
    assert found.loss == pytest.approx(quadratic(model, None))


def test_along_its_own_weights_a_normalised_direction_reaches_zero_at_minus_one(model, batch, monkeypatch):
    monkeypatch.setattr(loss_landscape, "batch_loss", quadratic)
    d = model.params.zeros_like()
    d["W_Q_0"][...] = 7 * model.params["W_Q_0"]                   # normalisation removes the factor
    found = analyze_loss_landscape(model, batch, "W_Q_0", alphas=[-1, 0, 1], directions=[d])
    rest = 2 * (model.params["W1_0"] ** 2).sum()
    own = 0.5 * (model.params["W_Q_0"] ** 2).sum()
    assert found.losses == pytest.approx([rest, rest + own, rest + 4 * own])


def test_each_neurons_direction_has_the_norm_of_its_weights(rng):
    W, d = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    W[:, 1] = 0
    scaled = filter_normalised(d, W, "W1_0")
    assert np.linalg.norm(scaled, axis=0) == pytest.approx(np.linalg.norm(W, axis=0))
    rows = filter_normalised(d, W, "token_embeddings")
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.linalg.norm(W, axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_parameters_are_restored_bit_for_bit(debug, batch, dtype):
    model = MiniBERT(debug, dtype=dtype)
    before = model.params.flat.tobytes()
    found = analyze_loss_landscape(model, batch, alphas=[-1, 0, 1e30], seed=4)
    assert model.params.flat.tobytes() == before
    assert found.losses[1] == pytest.approx(found.loss, abs=1e-6)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["losses"][1] == pytest.approx(found.loss, abs=1e-6)
    assert (plain["losses"][2] is None) == (dtype == np.float32)      # overflows in float32; JSON has no infinity
    again = analyze_loss_landscape(model, batch, alphas=[-1, 0, 1e30], seed=4)
    assert np.array_equal(found.losses, again.losses)


def test_an_error_restores_the_parameters(model, batch, monkeypatch):
    before = model.params.flat.copy()

    def fails(network: MiniBERT, batch: object) -> float:
        if not np.array_equal(network.params.flat, before):
            raise RuntimeError
        return 0.0

    monkeypatch.setattr(loss_landscape, "batch_loss", fails)
    with pytest.raises(RuntimeError):
        analyze_loss_landscape(model, batch, "W_Q_0")
    assert np.array_equal(model.params.flat, before)


def test_the_slope_is_the_gradient(model, batch):
    given = as_batch(batch)
    loss, gradient = batch_gradient(model, given)
    assert loss == pytest.approx(batch_loss(model, given))
    d = model.params.zeros_like()
    d["W2_1"][...] = np.random.default_rng(1).standard_normal(d["W2_1"].shape)
    h = 1e-5
    found = analyze_loss_landscape(model, batch, "W2_1", alphas=[-h, h], directions=[d], normalise=False)
    slope = (found.losses[1] - found.losses[0]) / (2 * h)
    assert slope == pytest.approx(np.vdot(gradient["W2_1"], d["W2_1"]), rel=1e-6)


def test_bad_input_is_refused(model, batch):
    with pytest.raises(ParameterError, match="nearest name is 'W_Q_0'"):
        analyze_loss_landscape(model, batch, "W_Q0")
    with pytest.raises(InputError, match="finite numbers"):
        analyze_loss_landscape(model, batch, "W_Q_0", alphas=[np.nan])
    with pytest.raises(InputError, match="at least one"):
        analyze_loss_landscape(model, batch, [])
    with pytest.raises(InputError, match="MLMBatch"):
        analyze_loss_landscape(model, [1, 2])
    with pytest.raises(InputError, match="at least one masked position"):
        analyze_loss_landscape(model, (batch[0], batch[1], np.zeros_like(batch[2])))
