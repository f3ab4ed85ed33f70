"""Weights over checkpoints: matrices with known rank and change, and models that are known to differ."""

import numpy as np
import pytest

from mini_bert import CheckpointError, InputError, MiniBERT
from mini_bert.analysis.dynamics.weight_evolution import (
    analyze_weight_evolution,
    compute_stable_rank,
    representation_evolution,
    run_checkpoints,
    track_weight_changes,
    weight_spectrum,
)


def test_the_spectrum_of_a_known_matrix(rng):
    left, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    right, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    values = np.array([4.0, 2.0, 2.0, 0.0])
    found = weight_spectrum(left[:, :4] * values @ right)
    assert found.singular_values == pytest.approx(values, abs=1e-12)
    assert found.stable_rank == pytest.approx(24 / 16)
    assert found.effective_rank == pytest.approx(2**1.5)              # p = 1/2, 1/4, 1/4: entropy 1.5 ln 2
    assert found.spectral_norm == pytest.approx(4)
    assert compute_stable_rank(np.eye(5)) == pytest.approx(5)
    assert compute_stable_rank(np.zeros((3, 2))) == 0


def test_changes_of_known_matrices():
    W = np.diag([3.0, 4.0])
    history = [{"W": W, "b": np.zeros(2)}, {"W": 2 * W, "b": np.zeros(2)}, {"W": -W, "b": np.ones(2)}]
    found = analyze_weight_evolution(history, [0, 10, 20])
    W_change = found.changes["W"]
    assert W_change.norm == pytest.approx([5, 10, 5])
    assert W_change.from_first == pytest.approx([0, 1, 2])
    assert W_change.from_previous == pytest.approx([0, 1, 1.5])
    assert W_change.cosine_to_first == pytest.approx([1, 1, -1])
    assert W_change.stable_rank == pytest.approx([25 / 16] * 3)
    assert found.changes["b"].from_first == [0, 0, 1]
    assert found.changes["b"].effective_rank is None
    assert found.fastest == ["W", "b"]


def test_the_checkpoints_of_a_run_are_tracked(debug, tmp_path):
    model = MiniBERT(debug)
    for step in (0, 5, 100):
        model.save(tmp_path / "checkpoints" / f"step-{step}")
        model.params["W1_0"][...] *= 2
    (tmp_path / "checkpoints" / "step-7").mkdir()
    found = track_weight_changes(tmp_path, ranks=False)
    assert found.steps == [0, 5, 100]
    assert len(found.left_out) == 1
    assert found.fastest[0] == "W1_0"
    assert found.changes["W1_0"].from_first == pytest.approx([0, 1, 3], rel=1e-6)
    assert found.changes["W2_0"].from_first == [0, 0, 0]
    assert set(found.to_dict()) == {"steps", "changes", "fastest", "left_out"}
    assert set(track_weight_changes([model, model], names=["W_Q_0"]).changes) == {"W_Q_0"}
    assert [path.name for path in run_checkpoints(tmp_path)] == ["step-0", "step-5", "step-7", "step-100"]


def test_a_checkpoint_is_similar_to_itself_and_not_to_another_model(debug):
    model, other = MiniBERT(debug, seed=0), MiniBERT(debug, seed=1)
    ids = np.random.default_rng(0).integers(5, 64, (8, 16))
    positions = np.zeros(ids.shape, bool)
    positions[:, 1] = True
    found = representation_evolution([model, model, other], (ids, ids, positions))
    assert list(found.similarity) == ["embeddings", "hidden_0", "hidden_1", "final_hidden"]
    for matrix in found.similarity.values():
        assert matrix[0, 1] == pytest.approx(1)
    assert found.similarity["embeddings"][0, 2] < 0.7
    assert found.steps == [0, 1, 2]


def test_bad_input_is_refused(debug, tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoints"):
        track_weight_changes(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint to track"):
        track_weight_changes([])
    with pytest.raises(InputError, match="another shape"):
        analyze_weight_evolution([{"W": np.eye(2)}, {"W": np.eye(3)}])
    with pytest.raises(InputError, match="2 entries for 1"):
        analyze_weight_evolution([{"W": np.eye(2)}], [1, 2])
    with pytest.raises(InputError, match="shape"):
        compute_stable_rank(np.zeros(3))
