"""The reference curve: which runs it is compared with, its end, its band, and the finding far above it."""

import json
from pathlib import Path

import numpy as np
import pytest
from doctor_runs import MODEL

from mini_bert.analysis.doctor import reference
from mini_bert.analysis.doctor.doctor import examine
from mini_bert.analysis.doctor.reference import compare_with_reference, reference_curve
from mini_bert.analysis.doctor.run_record import RunRecord, Unavailable
from mini_bert.pretrained import model_directory
from mini_bert.report.run_page import run_page

DIGEST = json.loads((model_directory("mini") / "config.json").read_text())["vocab_digest"]


def shipped_config(name: str) -> dict:
    found = json.loads((model_directory(name) / "config.json").read_text())
    return {key: value for key, value in found.items() if key not in ("model_type", "format_version", "vocab_digest")}


def record(model: dict, *, tokens=2_000_000, loss=5.2, digest=DIGEST, tokens_per_step=1000) -> RunRecord:
    return RunRecord(Path("run"), {"model": model, "training": {}, "data": {"vocab_digest": digest}},
                     [{"step": tokens / tokens_per_step, "tokens": tokens, "eval_loss": loss}])


def test_a_run_is_compared_with_the_curve_of_its_own_model():
    found = reference_curve(record(shipped_config("mini") | {"dropout": 0.1, "init": "local"}))
    said = json.loads((model_directory("mini") / "reference.json").read_text())
    assert found.name == "mini"
    assert found.tokens.tolist() == said["tokens"]
    assert found.mean.tolist() == said["mean"]


@pytest.mark.parametrize("change", [{"num_layers": 2}, {"hidden_size": 128}, {"activation": "gelu"},
                                    {"block": "pre_ln"}, {"vocab_size": 8000}])
def test_a_model_with_another_config_has_no_curve(change):
    with pytest.raises(Unavailable, match="no shipped model has its config; there are curves of mini\\."):
        compare_with_reference(record(shipped_config("mini") | change))


def test_runs_with_another_vocabulary_are_not_compared():
    with pytest.raises(Unavailable, match="vocabulary"):
        compare_with_reference(record(shipped_config("mini"), digest="0" * 64))


def test_runs_with_other_batch_sizes_are_not_compared():
    """A larger batch takes fewer steps for the same tokens, so its loss is higher."""
    usual = 994
    for times in (0.55, 1.0, 1.9):
        compare_with_reference(record(shipped_config("mini"), tokens_per_step=times * usual))
    for times in (0.45, 2.1, 16):
        with pytest.raises(Unavailable, match=rf"tokens per step and the reference run {usual:,}"):
            compare_with_reference(record(shipped_config("mini"), tokens_per_step=times * usual))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Ships a model `toy` with the config of the doctor's runs and the given reference.json."""
    from mini_bert.text.vocabulary import SPECIAL_TOKENS

    def ship(factory, content: dict) -> str:
        folder = tmp_path / "toy"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(MODEL.to_dict()))
        (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *factory.tokenizer().vocabulary[5:]]) + "\n")
        (folder / "reference.json").write_text(json.dumps(content))
        monkeypatch.setattr(reference, "shipped_names", lambda: ["toy"])
        monkeypatch.setattr(reference, "model_directory", lambda name: folder)
        return RunRecord.read(factory.run("recipe")).description["data"]["vocab_digest"]

    return ship


THREE = {"seeds": [0, 1, 2], "unigram_loss": 6.9, "tokens_a_step": 1000, "tokens": [1000, 2000, 3000, 4000],
         "mean": [5.0, 4.0, 3.5, 3.0], "low": [4.9, 3.8, None, None], "high": [5.1, 4.2, None, None],
         "band_until": 2000}


def test_the_band_ends_where_not_all_seeds_were_trained(factory, shipped):
    digest = shipped(factory, THREE)

    def compared(tokens):
        return compare_with_reference(record(MODEL.to_dict(), tokens=tokens, digest=digest))

    inside = compared(1500)
    assert (inside.reference, inside.low, inside.high) == pytest.approx((4.5, 4.35, 4.65))
    assert "the band of 3 seeds is 4.350 to 4.650" in str(inside)
    assert (compared(2000).low, compared(2000).high) == (3.8, 4.2)
    beyond = compared(2500)
    assert beyond.reference == pytest.approx(3.75)
    assert (beyond.low, beyond.high) == (None, None)
    assert "band" not in str(beyond)
    json.dumps(beyond.to_dict(), allow_nan=False)
    with pytest.raises(Unavailable, match="ends at 4,000 tokens, and the run has seen 5,000"):
        compared(5000)
    with pytest.raises(Unavailable, match="begins at 1,000 tokens, and the run has seen 500"):
        compared(500)


def test_values_beyond_the_end_of_the_band_are_ignored(factory, shipped):
    digest = shipped(factory, THREE | {"low": [4.9, 3.8, 3.4, 2.9], "high": [5.1, 4.2, 3.6, 3.1]})
    assert compare_with_reference(record(MODEL.to_dict(), tokens=3000, digest=digest)).low is None


def test_one_seed_has_no_band(factory, shipped):
    alone = {"seeds": [0], "unigram_loss": 6.9, "tokens_a_step": 1000, "tokens": [1000, 2000], "mean": [5.0, 4.0],
             "low": [5.0, 4.0], "high": [5.0, 4.0]}
    found = compare_with_reference(record(MODEL.to_dict(), tokens=1500, digest=shipped(factory, alone)))
    assert (found.low, found.high) == (None, None)
    assert "band" not in str(found)


@pytest.mark.parametrize("content", [{}, {"seeds": 3}, THREE | {"mean": [1.0]}, THREE | {"tokens": []},
                                     THREE | {"low": ["x"] * 4}])
def test_a_damaged_reference_file_is_reported(factory, shipped, content):
    digest = shipped(factory, content)
    with pytest.raises(Unavailable, match="cannot be read"):
        reference_curve(record(MODEL.to_dict(), digest=digest))


def test_the_part_to_draw_ends_where_the_run_does(factory, shipped):
    digest = shipped(factory, THREE)
    found = reference_curve(record(MODEL.to_dict(), digest=digest))
    part = found.until(1500)
    assert part.tokens.tolist() == [1000, 1500]
    assert part.mean.tolist() == [5.0, 4.5]
    assert part.high.tolist() == pytest.approx([5.1, 4.65])
    assert found.until(9000).tokens.tolist() == THREE["tokens"]
    assert len(found.until(900)) == 0


# -------------------------------------------------------------------- runs that were trained


def recipe_curve(factory, unigram: float) -> dict:
    """The held-out curve of the run `recipe`, with a band around it."""
    curve = RunRecord.read(factory.run("recipe")).heldout_curve
    return {"seeds": [0, 1, 3], "tokens_a_step": curve.tokens[-1] / curve.steps[-1],
            "tokens": curve.tokens.tolist(), "mean": curve.losses.tolist(),
            "low": (curve.losses - 0.1).tolist(), "high": (curve.losses + 0.1).tolist(), "unigram_loss": unigram}


def test_a_run_far_above_the_band_is_found_with_its_evidence(factory, shipped):
    shipped(factory, recipe_curve(factory, 2.25))
    found = {finding.name: finding for finding in examine(factory.run("stuck at unigram")).findings}
    far = found["far above the reference curve"]
    assert far.sure.value == "likely"
    assert {"loss", "reference_loss", "band_low", "band_high", "tokens"} <= set(far.evidence)
    assert far.evidence["loss"] > far.evidence["band_high"] + 0.5
    assert "held-out loss, 15 % masked" in far.says
    assert "toy" in far.says


def test_another_seed_is_healthy_and_compared_with_the_curve(factory, shipped):
    shipped(factory, recipe_curve(factory, 2.25))
    found = examine(factory.run("recipe, another seed"))
    assert found.healthy
    assert found.reference.name == "toy"
    assert "reference curve of toy" in found.says
    assert abs(found.measured["above_reference"]) < 0.5


def test_a_run_with_a_larger_batch_is_not_called_far_above(factory, shipped):
    content = recipe_curve(factory, 2.25)
    shipped(factory, content | {"tokens_a_step": content["tokens_a_step"] / 4})
    found = examine(factory.run("stuck at unigram"))
    assert "far above the reference curve" not in [finding.name for finding in found.findings]
    assert "tokens per step" in found.left_out["far above the reference curve"]
    assert found.reference is None


def test_a_run_on_a_harder_text_is_not_called_far_above(factory, shipped):
    shipped(factory, recipe_curve(factory, 1.5))
    found = examine(factory.run("stuck at unigram"))
    assert "far above the reference curve" not in [finding.name for finding in found.findings]
    assert "1.50" in found.left_out["far above the reference curve"]


def test_curve_and_band_are_in_the_report(factory, shipped):
    shipped(factory, recipe_curve(factory, 2.25))
    html = run_page(RunRecord.read(factory.run("recipe")))
    assert "reference: toy" in html
    assert "<polygon" in html
    assert "range of 3 seeds" in html
    assert "reference: toy" not in run_page(RunRecord.read(factory.run("documentation")))       # another config


def test_curve_and_band_are_in_the_figure(factory, shipped):
    pytest.importorskip("matplotlib", reason="figures need the extra viz")
    from mini_bert.report.figures import training_curves

    content = recipe_curve(factory, 2.25)
    shipped(factory, content)
    loss = training_curves(factory.run("recipe")).axes[0]
    lines = {line.get_label(): line for line in loss.lines}
    np.testing.assert_allclose(lines["reference run"].get_ydata(), content["mean"])
    assert len(loss.collections) == 1                         # the band
    shipped(factory, content | {"seeds": [0]})
    assert len(training_curves(factory.run("recipe")).axes[0].collections) == 0
