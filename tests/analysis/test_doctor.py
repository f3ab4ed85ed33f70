"""The doctor on runs that were really trained: sabotaged on purpose, one for each disease, and healthy ones."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from doctor_runs import HEALTHY, MODEL, SICK, TOO_HIGH, TRAINING, WORDS, chain, made_corpus, sentences

import mini_bert.core.model
from mini_bert import CheckpointError, CorpusError, MiniBERT
from mini_bert.analysis.doctor import data as doctor_data
from mini_bert.analysis.doctor.baseline_losses import measured_levels
from mini_bert.analysis.doctor.checkpoint_stats import padding_matters, sample
from mini_bert.analysis.doctor.curve import forecast, pace
from mini_bert.analysis.doctor.data import repeated_share, window_hashes
from mini_bert.analysis.doctor.doctor import examine
from mini_bert.analysis.doctor.run_record import RunRecord
from mini_bert.analysis.doctor.symptoms import DISEASES, Case
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.training.checkpoints import read_state, write_checkpoint
from mini_bert.training.run import start_run


@pytest.mark.parametrize("name", SICK)
def test_the_disease_of_a_sabotaged_run_is_the_first_finding(shop, name):
    found = examine(shop.run(name))
    assert [finding.name for finding in found.findings][:1] == [name]
    first = found.findings[0]
    assert not found.healthy
    assert first.evidence
    assert all(isinstance(value, float) for value in first.evidence.values())
    assert first.says.endswith(".")
    assert first.advice.endswith(".")
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_raises_no_alarm(shop, name):
    found = examine(shop.run(name))
    assert [finding.name for finding in found.findings] == []
    assert found.verdict == "healthy"
    assert found.says.startswith("Healthy: the held-out loss is")
    assert found.loss < found.levels.unigram
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", TOO_HIGH)
def test_ten_to_thirty_times_the_recipes_rate_is_named_at_the_width_of_mini(shop, name):
    found = examine(shop.run(name))
    assert found.findings[0].name == "learning rate too high"
    assert found.findings[0].evidence["largest_update_ratio"] > 3 * 0.01      # that of the recipe
    assert "over-fitting" not in [finding.name for finding in found.findings]


def test_a_rate_too_high_is_named_from_the_log_alone(shop, tmp_path):
    run = copied(shop, tmp_path, "wide, rate 0.01")
    for name in ("checkpoints", "best", "final"):
        shutil.rmtree(run / name)
    assert examine(run).findings[0].name == "learning rate too high"


def test_every_disease_has_a_sabotaged_run():
    assert set(DISEASES) == {*SICK, "far above the reference curve"}          # that one is in test_reference.py
    assert len({disease.place for disease in DISEASES.values()}) == len(DISEASES)
    assert all(disease.about for disease in DISEASES.values())


def test_the_levels_are_the_entropies_of_the_language(shop):
    P = chain()
    share = np.full(len(WORDS), 1 / len(WORDS))
    occurs = np.zeros(len(WORDS))
    for length in range(40):                      # documents begin anywhere and are 5 to 39 words long
        occurs += share * (1 - max(0, length - 4) / 35)
        share = share @ P
    occurs /= occurs.sum()
    unigram = -(occurs * np.log(occurs)).sum()
    bigram = -(occurs * (P * np.log(np.where(P > 0, P, 1))).sum(axis=1)).sum()
    levels = measured_levels(RunRecord.read(shop.run("recipe")))
    assert levels.uniform == pytest.approx(np.log(45))
    # measured at some hundred positions: three standard errors are 0.3
    assert levels.unigram == pytest.approx(unigram, abs=0.3)
    # mixed with frequencies, so that 0.7 of the probability is left, and first words of a document are single
    assert bigram - 0.3 < levels.bigram < bigram - np.log(0.7) + 0.3
    assert levels.counted_tokens > 20_000


# -------------------------------------------------------------------- parts of it


def test_pace_and_forecast_of_a_straight_line(shop, tmp_path):
    run = copied(shop, tmp_path)
    lines = [{"step": n, "tokens": 1000 * n, "loss": 3 - n / 100, "learning_rate": 1e-3, "total_steps": 200}
             for n in range(1, 101)]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    case = Case(RunRecord.read(run))
    assert case.loss == pytest.approx(2)
    assert pace(case) == pytest.approx(1e-5)
    assert forecast(case, 1.0) == pytest.approx(1)           # as far again as it has come
    assert forecast(case, 2.5) == 0


def test_repeated_text_is_counted():
    tokens = np.arange(100)
    assert len(window_hashes(tokens, 10)) == 91
    twice = window_hashes(np.concatenate([tokens, tokens]), 10)
    assert len(np.unique(twice)) == 100                       # 91, and 9 over the seam
    assert twice[0] == twice[100]
    assert len(window_hashes(tokens[:5], 10)) == 0


def test_sentences_that_repeat_in_another_order_are_found(shop, chain_corpus):
    assert repeated_share(chain_corpus)[0] < 0.01
    share, tokens = repeated_share(Corpus(shop.corpus("repeated")))
    assert share > 0.9
    assert tokens > 3000


def test_of_a_large_text_repetitions_are_found_wherever_they_stand(shop, chain_corpus, tmp_path, monkeypatch):
    """A part of it is compared; what is far from its repetition must not be missed for that."""
    once = sentences(300, 7)
    corpus = Corpus(made_corpus(tmp_path / "twice", once + once, shop.tokenizer(), deduplicate=False))
    monkeypatch.setattr(doctor_data, "MOST_TOKENS", 1000)
    monkeypatch.setattr(doctor_data, "_STRETCH", 256)
    share, tokens = repeated_share(corpus)
    assert share == pytest.approx(0.5, abs=0.1)
    assert tokens > 10 * 1000
    assert repeated_share(chain_corpus)[0] < 0.01


def test_padding_that_is_attended_to_is_seen_at_once(shop, monkeypatch):
    run = RunRecord.read(shop.run("recipe"))
    vocabulary, model = run.corpus.tokenizer.vocabulary, run.model()
    assert padding_matters(model, sample(run), vocabulary) == 0
    real = mini_bert.core.model.check_batch
    monkeypatch.setattr(mini_bert.core.model, "check_batch", lambda *a: (real(*a)[0], None, *real(*a)[2:]))
    assert padding_matters(model, sample(run), vocabulary) > 0.01
    found = examine(shop.run("recipe"))
    assert found.findings[0].name == "broken attention mask"
    assert "effect_of_padding" in found.findings[0].evidence


# -------------------------------------------------------------------- going, damaged, moved


def copied(shop, folder, name="recipe"):
    shutil.copytree(shop.run(name), folder / "run")
    return folder / "run"


def test_a_line_that_is_being_written_is_no_damage(shop):
    found = examine(shop.run("live"))
    assert not found.finished
    assert found.notes == []


def test_lines_that_cannot_be_read_are_counted(shop, tmp_path):
    run = copied(shop, tmp_path)
    log = run / "log.jsonl"
    log.write_text('{"step": broken\n' + log.read_text())
    found = examine(run)
    assert found.healthy
    assert any("1 lines" in note for note in found.notes)


@pytest.mark.parametrize("content", [None, "", '{"step": 10, "lo'])
def test_without_a_log_the_rest_is_examined(shop, tmp_path, content):
    run = copied(shop, tmp_path)
    (run / "log.jsonl").unlink()
    if content is not None:
        (run / "log.jsonl").write_text(content)
    found = examine(run)
    assert found.verdict == "unclear"
    assert [finding.name for finding in found.findings] == ["too short to tell"]
    assert found.step == 0
    assert not found.finished
    assert "exploding" in found.left_out
    assert "dead_units" in found.measured
    assert found.notes


def test_a_sick_model_is_named_without_a_log(shop, tmp_path):
    run = copied(shop, tmp_path, "dead units")
    (run / "log.jsonl").unlink()
    assert examine(run).findings[0].name == "dead units"


def test_without_checkpoints_the_curve_is_examined(shop, tmp_path):
    run = copied(shop, tmp_path)
    for name in ("checkpoints", "best", "final"):
        shutil.rmtree(run / name)
    found = examine(run)
    assert found.healthy
    assert set(found.left_out) >= {"dead units", "collapsed representations", "masks on special tokens"}
    assert all("no checkpoint" in found.left_out[name] for name in ("dead units", "broken attention mask"))


def test_a_damaged_checkpoint_is_passed_over(shop, tmp_path):
    run = copied(shop, tmp_path)
    file = run / "checkpoints" / "step-240" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"0000")
    found = examine(run)
    assert found.healthy
    assert "dead_units" in found.measured                     # of the checkpoint before it


def test_a_corpus_that_was_moved_is_named(shop, tmp_path):
    run, moved = copied(shop, tmp_path), tmp_path / "moved"
    shutil.copytree(shop.corpus("chain"), moved)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(tmp_path / "gone")))
    without = examine(run)
    assert without.healthy
    assert without.levels.bigram is None
    assert without.levels.unigram == pytest.approx(2.25, abs=0.2)         # from config.yaml
    assert "duplicate data" in without.left_out
    assert "stuck at the bigram plateau" in without.left_out
    assert examine(run, moved).levels.bigram is not None
    with pytest.raises(CorpusError, match="another vocabulary"):
        examine(run, shop.corpus("docs"))
    with pytest.raises(CorpusError, match="not a prepared corpus"):
        examine(run, tmp_path / "gone")


def test_stuck_at_unigram_is_seen_without_the_corpus_by_what_is_known(shop, tmp_path):
    run = copied(shop, tmp_path, "stuck at unigram")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(tmp_path / "gone")))
    first = examine(run).findings[0]
    assert first.name == "stuck at unigram"
    assert first.sure.value == "likely"
    assert "bigram_loss" not in first.evidence                # nobody has measured it


def test_weights_that_were_changed_afterwards_are_noted(shop, tmp_path):
    run = copied(shop, tmp_path)
    for place in (run / "checkpoints" / "step-240", run / "checkpoints" / "step-120"):
        model = MiniBERT.load(place)
        model.params["W2_0"][...] *= 0.5
        write_checkpoint(place, model, shop.tokenizer(), read_state(place))       # whole, with right checksums
    for name in ("final", "best"):
        shutil.rmtree(run / name)
    found = examine(run)
    assert found.measured["evaluation_differs_by"] > 0.001
    (note,) = found.notes
    assert "step-240 has a held-out loss of" in note
    assert "have changed" in note
    assert "broken attention mask" not in [finding.name for finding in found.findings]


def test_a_checkpoint_without_checksums_is_not_looked_at(shop, tmp_path):
    run = copied(shop, tmp_path)
    for sums in run.glob("**/checksums.json"):
        sums.unlink()
    assert "not a whole checkpoint" in examine(run).left_out["dead units"]


def test_a_state_that_is_no_object_is_passed_over(shop, tmp_path):
    run = copied(shop, tmp_path)
    for state in run.glob("**/state.json"):
        if state.parent.name != "step-120":
            state.write_text("[1, 2]")
    log = run / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if line["step"] == 120:
            del line["eval_loss"]                             # so that best/ is asked too
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = examine(run)
    assert "whose held-out loss is in the log" in found.left_out["broken attention mask"]
    with pytest.raises(CheckpointError, match="no object"):
        read_state(run / "best")


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not a directory"):
        examine(tmp_path / "none")
    with pytest.raises(CheckpointError, match="not a run"):
        examine(tmp_path)


def test_a_run_without_held_out_text_is_judged_by_its_training(shop, tmp_path):
    corpus = made_corpus(tmp_path / "all", sentences(400, 5), shop.tokenizer(), heldout=0.0)
    start_run(MODEL, replace(TRAINING, steps=120), corpus, tmp_path / "run").train()
    found = examine(tmp_path / "run")
    assert found.healthy
    assert found.says.startswith("Healthy: the training loss")
    assert "over-fitting" in found.left_out


def test_a_corpus_that_is_damaged_costs_only_what_needs_it(shop, tmp_path):
    run, broken = copied(shop, tmp_path), tmp_path / "broken"
    shutil.copytree(shop.corpus("chain"), broken)
    tokens = np.fromfile(broken / "tokens.bin", np.uint16)
    np.full_like(tokens, 60000).tofile(broken / "tokens.bin")             # ids that no vocabulary has
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(shop.corpus("chain").resolve()), str(broken)))
    found = examine(run)
    assert found.healthy
    assert found.levels.bigram is None
    assert "damaged" in found.left_out["dead units"]
    assert any("changed since the run began" in note for note in found.notes)
