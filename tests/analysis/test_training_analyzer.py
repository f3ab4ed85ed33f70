"""TrainingAnalyzer on trained runs, and the gradient noise scale."""

import json
import shutil
import sys

import numpy as np
import pytest

from mini_bert import CheckpointError, InputError, MiniBERT, TrainingAnalyzer, mask_tokens
from mini_bert.analysis.dynamics.gradient_noise import gradient_noise_scale, simple_noise_scale


def test_the_noise_scale_of_a_known_gradient(rng):
    G, sigma, b, n = rng.standard_normal(200), 3.0, 4, 4000
    g = G + sigma / np.sqrt(b) * rng.standard_normal((n, 200))
    mean = g.mean(axis=0)
    found = simple_noise_scale(float((g**2).sum(axis=1).mean()), float(mean @ mean), b, n)
    assert found.gradient_square == pytest.approx(G @ G, rel=0.02)
    assert found.noise_trace == pytest.approx(sigma**2 * 200, rel=0.02)
    assert found.noise_scale == pytest.approx(sigma**2 * 200 / (G @ G), rel=0.03)


def test_equal_micro_batches_have_no_noise(model):
    ids = np.tile(np.random.default_rng(0).integers(5, 64, (1, 12)), (6, 1))
    masked, targets, positions = mask_tokens(ids[:1], 64, rng=1)
    batch = tuple(np.tile(part, (6, 1)) for part in (masked, targets, positions))
    found = gradient_noise_scale(model, batch, micro_batch_size=2)
    assert found.micro_batches == 3
    assert found.noise_scale == pytest.approx(0, abs=1e-9)
    assert gradient_noise_scale(model, mask_tokens(np.random.default_rng(3).integers(5, 64, (8, 12)), 64, rng=1),
                                micro_batch_size=1).noise_scale > 1
    with pytest.raises(InputError, match="at least two"):
        gradient_noise_scale(model, batch, micro_batch_size=6)


def test_the_log_is_read_by_parameter_group(factory):
    analyzer = TrainingAnalyzer(factory.run("recipe"))
    steps, ratios = analyzer.update_ratios()
    assert steps == list(range(10, 241, 10))
    assert set(ratios) == {"embeddings", "layer_0", "layer_1", "head"}
    assert all(len(values) == len(steps) for values in ratios.values())
    assert len(analyzer.loss_curve()) == 24
    assert analyzer.heldout_curve().losses[-1] < analyzer.heldout_curve().losses[0]


def test_parameter_updates_are_ranked_and_match_the_checkpoints(factory):
    found = TrainingAnalyzer(factory.run("recipe")).analyze_parameter_updates()
    medians = {part: np.median(values) for part, values in found.by_part.items()}
    assert found.fastest[0] == max(medians, key=medians.get)
    assert found.checkpoints == [120, 240]
    assert set(found.by_component) == {"embeddings", "attention", "feedforward", "layernorm", "head"}
    assert set(found.by_layer) == {"layer_0", "layer_1"}
    first, last = (MiniBERT.load(factory.run("recipe") / "checkpoints" / f"step-{n}") for n in (120, 240))
    change = np.linalg.norm(last.params["W1_0"] - first.params["W1_0"]) / np.linalg.norm(first.params["W1_0"])
    assert found.by_parameter["W1_0"] == pytest.approx(change, rel=1e-5)
    json.dumps(found.to_dict())


def test_a_frozen_parameter_does_not_change(factory):
    found = TrainingAnalyzer(factory.run("stuck at the bigram plateau")).analyze_parameter_updates()
    assert found.by_parameter["W_Q_0"] == 0
    assert found.by_parameter["W_V_0"] > 0


def test_attention_entropy_over_the_checkpoints(factory):
    found = TrainingAnalyzer(factory.run("recipe")).attention_entropy()
    assert found.steps == [120, 240]
    assert found.by_layer["layer_0"].shape == (2, 2)
    assert all(((values > 0) & (values <= 1)).all() for values in found.by_layer.values())
    assert found.by_layer["layer_0"][0].max() < 0.8               # its heads attend to neighbours
    json.dumps(found.to_dict())


def test_uniform_attention_has_entropy_one(factory, tmp_path):
    shutil.copytree(factory.run("recipe"), tmp_path / "run")
    for place in (tmp_path / "run" / "checkpoints").iterdir():
        model = MiniBERT.load(place)
        model.params["W_Q_1"][...] = 0
        model.save(place)
    found = TrainingAnalyzer(tmp_path / "run").attention_entropy()
    assert found.by_layer["layer_1"] == pytest.approx(np.ones((2, 2)))


def test_gradient_shares_by_component(factory):
    analyzer = TrainingAnalyzer(factory.run("recipe"))
    found = analyzer.loss_components()
    assert found.steps == [120, 240]
    assert np.sum(list(found.shares.values()), axis=0) == pytest.approx([1, 1])
    assert found.losses[1] < found.losses[0]
    assert analyzer.gradient_noise_scale().noise_scale > 0


def test_the_loss_by_component_is_drawn(factory):
    pytest.importorskip("matplotlib", reason="figures need the extra viz")
    analyzer = TrainingAnalyzer(factory.run("recipe"))
    found, axes = analyzer.loss_components(), analyzer.plot_loss_components().axes[0]
    drawn = {line.get_label(): line for line in axes.lines}
    assert set(drawn) == {"embeddings", "attention", "feedforward", "layernorm", "head"}
    for name, shares in found.shares.items():
        assert list(drawn[name].get_ydata()) == shares
        assert list(drawn[name].get_xdata()) == found.steps


def test_without_matplotlib_the_figure_says_what_to_install(factory, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("mini_bert.plots")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=r"pip install 'mini-bert\[viz\]'"):
        TrainingAnalyzer(factory.run("recipe")).plot_loss_components()


def test_training_issues_are_the_doctors_findings(factory):
    assert TrainingAnalyzer(factory.run("recipe")).detect_training_issues() == []
    found = TrainingAnalyzer(factory.run("dead units")).detect_training_issues()
    assert found[0].name == "dead units"


def test_refresh_reads_an_unfinished_run_again(factory, tmp_path):
    shutil.copytree(factory.run("recipe"), tmp_path / "run")
    log = tmp_path / "run" / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:5]) + lines[5][:30])
    analyzer = TrainingAnalyzer(tmp_path / "run")
    assert len(analyzer.loss_curve()) == 5
    log.write_text("".join(lines))
    analyzer.refresh()
    assert len(analyzer.loss_curve()) == 24


def test_without_checkpoints_the_log_is_still_analysed(factory, tmp_path):
    shutil.copytree(factory.run("recipe"), tmp_path / "run",
                    ignore=shutil.ignore_patterns("checkpoints", "best", "final"))
    analyzer = TrainingAnalyzer(tmp_path / "run")
    found = analyzer.analyze_parameter_updates()
    assert found.fastest
    assert found.by_parameter == {}
    with pytest.raises(CheckpointError, match="no checkpoint"):
        analyzer.attention_entropy()
    with pytest.raises(CheckpointError, match="no checkpoint"):
        analyzer.gradient_noise_scale()
