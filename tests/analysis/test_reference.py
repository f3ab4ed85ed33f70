"""The reference curve: which one a run is held against, where it ends, its band, and what far above it means."""

import json
from pathlib import Path

import numpy as np
import pytest
from doctor_runs import MODEL

from mini_bert.analysis.doctor import reference
from mini_bert.analysis.doctor.doctor import examine
from mini_bert.analysis.doctor.reference import compared_with_reference, reference_of
from mini_bert.analysis.doctor.run_record import NotThere, RunRecord
from mini_bert.pretrained import model_directory
from mini_bert.report.run_page import run_page

DIGEST = json.loads((model_directory("mini") / "config.json").read_text())["vocab_digest"]


def shipped_config(name: str) -> dict:
    found = json.loads((model_directory(name) / "config.json").read_text())
    return {key: value for key, value in found.items() if key not in ("model_type", "format_version", "vocab_digest")}


def record(model: dict, *, tokens=2_000_000, loss=5.2, digest=DIGEST, tokens_a_step=1000) -> RunRecord:
    return RunRecord(Path("run"), {"model": model, "training": {}, "data": {"vocab_digest": digest}},
                     [{"step": tokens / tokens_a_step, "tokens": tokens, "eval_loss": loss}])


def test_a_run_is_held_against_the_curve_of_its_own_model():
    found = reference_of(record(shipped_config("mini") | {"dropout": 0.1, "init": "local"}))
    said = json.loads((model_directory("mini") / "reference.json").read_text())
    assert found.name == "mini"
    assert found.tokens.tolist() == said["tokens"]
    assert found.mean.tolist() == said["mean"]


@pytest.mark.parametrize("change", [{"num_layers": 2}, {"hidden_size": 128}, {"activation": "gelu"},
                                    {"block": "pre_ln"}, {"vocab_size": 8000}])
def test_a_model_of_another_shape_has_no_curve(change):
    with pytest.raises(NotThere, match="no shipped model has its shape; there are curves of mini\\."):
        compared_with_reference(record(shipped_config("mini") | change))


def test_another_vocabulary_is_not_compared():
    with pytest.raises(NotThere, match="vocabulary"):
        compared_with_reference(record(shipped_config("mini"), digest="0" * 64))


def test_runs_with_other_batches_are_not_compared():
    """A larger batch takes fewer steps for as many tokens, and has learned less by then."""
    usual = 994
    for times in (0.55, 1.0, 1.9):
        compared_with_reference(record(shipped_config("mini"), tokens_a_step=times * usual))
    for times in (0.45, 2.1, 16):
        with pytest.raises(NotThere, match=rf"tokens a step and the reference run {usual:,}"):
            compared_with_reference(record(shipped_config("mini"), tokens_a_step=times * usual))


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A shipped model `toy` of the shape of the doctor's runs; call it with the content of its reference.json."""
    from mini_bert.text.vocabulary import SPECIAL_TOKENS

    def ship(shop, content: dict) -> str:
        folder = tmp_path / "toy"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(MODEL.to_dict()))
        (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, *shop.tokenizer().vocabulary[5:]]) + "\n")
        (folder / "reference.json").write_text(json.dumps(content))
        monkeypatch.setattr(reference, "shipped_names", lambda: ["toy"])
        monkeypatch.setattr(reference, "model_directory", lambda name: folder)
        return RunRecord.read(shop.run("recipe")).description["data"]["vocab_digest"]

    return ship


THREE = {"seeds": [0, 1, 2], "unigram_loss": 6.9, "tokens_a_step": 1000, "tokens": [1000, 2000, 3000, 4000],
         "mean": [5.0, 4.0, 3.5, 3.0], "low": [4.9, 3.8, None, None], "high": [5.1, 4.2, None, None],
         "band_until": 2000}


def test_the_band_ends_where_not_all_seeds_were_trained(shop, shipped):
    digest = shipped(shop, THREE)

    def beside(tokens):
        return compared_with_reference(record(MODEL.to_dict(), tokens=tokens, digest=digest))

    inside = beside(1500)
    assert (inside.reference, inside.low, inside.high) == pytest.approx((4.5, 4.35, 4.65))
    assert "the band of 3 seeds is 4.350 to 4.650" in str(inside)
    assert (beside(2000).low, beside(2000).high) == (3.8, 4.2)
    behind = beside(2500)
    assert behind.reference == pytest.approx(3.75)
    assert (behind.low, behind.high) == (None, None)
    assert "band" not in str(behind)
    json.dumps(behind.to_dict(), allow_nan=False)
    with pytest.raises(NotThere, match="ends at 4,000 tokens, and the run has seen 5,000"):
        beside(5000)
    with pytest.raises(NotThere, match="begins at 1,000 tokens, and the run has seen 500"):
        beside(500)


def test_numbers_behind_the_end_of_the_band_are_none(shop, shipped):
    digest = shipped(shop, THREE | {"low": [4.9, 3.8, 3.4, 2.9], "high": [5.1, 4.2, 3.6, 3.1]})
    assert compared_with_reference(record(MODEL.to_dict(), tokens=3000, digest=digest)).low is None


def test_one_seed_has_no_band(shop, shipped):
    alone = {"seeds": [0], "unigram_loss": 6.9, "tokens_a_step": 1000, "tokens": [1000, 2000], "mean": [5.0, 4.0],
             "low": [5.0, 4.0], "high": [5.0, 4.0]}
    found = compared_with_reference(record(MODEL.to_dict(), tokens=1500, digest=shipped(shop, alone)))
    assert (found.low, found.high) == (None, None)
    assert "band" not in str(found)


@pytest.mark.parametrize("content", [{}, {"seeds": 3}, THREE | {"mean": [1.0]}, THREE | {"tokens": []},
                                     THREE | {"low": ["x"] * 4}])
def test_a_damaged_curve_is_said_to_be(shop, shipped, content):
    digest = shipped(shop, content)
    with pytest.raises(NotThere, match="cannot be read"):
        reference_of(record(MODEL.to_dict(), digest=digest))


def test_the_part_for_a_picture_ends_where_the_run_does(shop, shipped):
    digest = shipped(shop, THREE)
    found = reference_of(record(MODEL.to_dict(), digest=digest))
    part = found.until(1500)
    assert part.tokens.tolist() == [1000, 1500]
    assert part.mean.tolist() == [5.0, 4.5]
    assert part.high.tolist() == pytest.approx([5.1, 4.65])
    assert found.until(9000).tokens.tolist() == THREE["tokens"]
    assert len(found.until(900)) == 0


# -------------------------------------------------------------------- runs that were trained


def recipes_curve(shop, unigram: float) -> dict:
    """The recipe's held-out curve, with a band around it."""
    curve = RunRecord.read(shop.run("recipe")).heldout_curve
    return {"seeds": [0, 1, 3], "tokens_a_step": curve.tokens[-1] / curve.steps[-1],
            "tokens": curve.tokens.tolist(), "mean": curve.losses.tolist(),
            "low": (curve.losses - 0.1).tolist(), "high": (curve.losses + 0.1).tolist(), "unigram_loss": unigram}


def test_a_run_far_above_the_band_is_told_with_what_was_compared(shop, shipped):
    shipped(shop, recipes_curve(shop, 2.25))
    found = {finding.name: finding for finding in examine(shop.run("stuck at unigram")).findings}
    far = found["far above the reference curve"]
    assert far.sure.value == "likely"
    assert {"loss", "reference_loss", "band_low", "band_high", "tokens"} <= set(far.evidence)
    assert far.evidence["loss"] > far.evidence["band_high"] + 0.5
    assert "held-out loss, 15 % masked" in far.says
    assert "toy" in far.says


def test_another_seed_is_no_finding_and_is_held_against_the_curve(shop, shipped):
    shipped(shop, recipes_curve(shop, 2.25))
    found = examine(shop.run("recipe, another seed"))
    assert found.healthy
    assert found.reference.name == "toy"
    assert "reference curve of toy" in found.says
    assert abs(found.measured["above_reference"]) < 0.5


def test_a_larger_batch_is_not_blamed(shop, shipped):
    content = recipes_curve(shop, 2.25)
    shipped(shop, content | {"tokens_a_step": content["tokens_a_step"] / 4})
    found = examine(shop.run("stuck at unigram"))
    assert "far above the reference curve" not in [finding.name for finding in found.findings]
    assert "tokens a step" in found.left_out["far above the reference curve"]
    assert found.reference is None


def test_a_text_that_is_harder_is_not_blamed(shop, shipped):
    shipped(shop, recipes_curve(shop, 1.5))
    found = examine(shop.run("stuck at unigram"))
    assert "far above the reference curve" not in [finding.name for finding in found.findings]
    assert "1.50" in found.left_out["far above the reference curve"]


def test_curve_and_band_are_in_the_report(shop, shipped):
    shipped(shop, recipes_curve(shop, 2.25))
    html = run_page(RunRecord.read(shop.run("recipe")))
    assert "reference: toy" in html
    assert "<polygon" in html
    assert "range of 3 seeds" in html
    assert "reference: toy" not in run_page(RunRecord.read(shop.run("documentation")))       # of another shape


def test_curve_and_band_are_in_the_figure(shop, shipped):
    pytest.importorskip("matplotlib", reason="figures need the extra viz")
    from mini_bert.report.figures import training_curves

    content = recipes_curve(shop, 2.25)
    shipped(shop, content)
    loss = training_curves(shop.run("recipe")).axes[0]
    lines = {line.get_label(): line for line in loss.lines}
    np.testing.assert_allclose(lines["reference run"].get_ydata(), content["mean"])
    assert len(loss.collections) == 1                         # the band
    shipped(shop, content | {"seeds": [0]})
    assert len(training_curves(shop.run("recipe")).axes[0].collections) == 0
