"""The doctor on trained runs: healthy ones, and one sabotaged run for each disease."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from doctor_runs import HEALTHY, MODEL, SICK, TOO_HIGH, TRAINING, WORDS, chain, made_corpus, sentences

import mini_bert.core.model
from mini_bert import CheckpointError, CorpusError, MiniBERT
from mini_bert.analysis.doctor import data as doctor_data
from mini_bert.analysis.doctor.baseline_losses import baseline_losses
from mini_bert.analysis.doctor.checkpoint_stats import padding_effect, sample_batches
from mini_bert.analysis.doctor.curve import fall_per_token, forecast
from mini_bert.analysis.doctor.data import repeated_share, window_hashes
from mini_bert.analysis.doctor.doctor import examine
from mini_bert.analysis.doctor.heldout import divergence
from mini_bert.analysis.doctor.run_record import RunRecord
from mini_bert.analysis.doctor.symptoms import DISEASES, Case
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.training.runs.checkpoints import read_state, write_checkpoint
from mini_bert.training.runs.run import start_run


@pytest.mark.parametrize("name", SICK)
def test_the_disease_of_a_sabotaged_run_is_the_first_finding(factory, name):
    found = examine(factory.run(name))
    assert [finding.name for finding in found.findings][:1] == [name]
    first = found.findings[0]
    assert not found.healthy
    assert first.evidence
    assert all(isinstance(value, float) for value in first.evidence.values())
    assert first.says.endswith(".")
    assert first.advice.endswith(".")
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_has_no_findings(factory, name):
    found = examine(factory.run(name))
    assert [finding.name for finding in found.findings] == []
    assert found.verdict == "healthy"
    assert found.says.startswith("Healthy: the held-out loss is")
    assert found.loss < found.baselines.unigram
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", TOO_HIGH)
def test_ten_to_thirty_times_the_usual_learning_rate_is_found_at_the_width_of_mini(factory, name):
    found = examine(factory.run(name))
    assert found.findings[0].name == "learning rate too high"
    assert found.findings[0].evidence["largest_update_ratio"] > 3 * 0.01      # the ratio at the usual rate
    assert "over-fitting" not in [finding.name for finding in found.findings]


def test_a_rate_that_is_much_too_high_is_found_in_a_log_with_one_measured_step(factory):
    found = examine(factory.run("one line of steps, rate 1"))
    assert found.findings[0].name == "learning rate too high"
    assert found.findings[0].sure.value == "likely"
    assert "too few lines to measure the steps" in found.findings[0].says


def test_no_symptom_is_certain_if_its_cause_could_not_be_examined(factory):
    found = examine(factory.run("one line of steps, rate 0.03"))
    assert "too few update ratios" in found.left_out["learning rate too high"]
    symptom = next(finding for finding in found.findings if finding.name == "collapsed representations")
    assert symptom.sure.value == "possible"
    assert symptom.says.endswith("could not be examined: learning rate too high.")
    assert found.verdict == "unclear"
    assert all(cause in DISEASES and DISEASES[cause].order < disease.order
               for disease in DISEASES.values() for cause in disease.symptom_of)


def test_text_that_was_read_very_often_is_counted_without_the_held_out_part(factory):
    found = examine(factory.run("too little text"))
    corpus = Corpus(factory.corpus("none held out"))
    assert found.findings[0].evidence["tokens_in_text"] == corpus.manifest.tokens < 400
    assert found.findings[0].evidence["times_read"] == pytest.approx(
        found.findings[0].evidence["tokens_seen"] / corpus.manifest.tokens)
    assert 1 < examine(factory.run("recipe")).measured["times_read"] < 10


def test_the_divergence_of_the_held_out_text_is_compared_with_that_of_training_parts(factory):
    own, others = np.array([1, 3, 0]), np.array([7, 3, 2])
    p, q = own / 4, (others + 1) / 15
    assert divergence(own, others) == pytest.approx((p[:2] * np.log(p[:2] / q[:2])).sum())
    healthy = examine(factory.run("recipe")).measured
    assert healthy["divergence_of_heldout_text"] < healthy["divergence_within_training"] + 0.05
    sick = examine(factory.run("held-out text of another kind")).findings[0].evidence
    assert sick["divergence"] > 20 * sick["divergence_within_training"]


def test_a_finished_run_that_was_too_short_is_not_told_to_go_on_by_itself(factory):
    finding = examine(factory.run("too short to tell")).findings[-1]
    assert finding.name == "too short to tell"
    assert "Train for longer" in finding.advice
    assert "Let the run continue" not in finding.advice


def test_a_learning_rate_that_is_too_high_is_found_from_the_log_alone(factory, tmp_path):
    run = copied(factory, tmp_path, "wide, rate 0.01")
    for name in ("checkpoints", "best", "final"):
        shutil.rmtree(run / name)
    assert examine(run).findings[0].name == "learning rate too high"


def test_every_disease_has_a_sabotaged_run():
    assert set(DISEASES) == {*SICK, "far above the reference curve"}          # tested in test_reference.py
    assert len({disease.order for disease in DISEASES.values()}) == len(DISEASES)
    assert all(disease.check.__doc__ for disease in DISEASES.values())


def test_the_baseline_losses_are_the_entropies_of_the_language(factory):
    P = chain()
    share = np.full(len(WORDS), 1 / len(WORDS))
    occurs = np.zeros(len(WORDS))
    for length in range(40):                      # documents start with any word and have 5 to 39 words
        occurs += share * (1 - max(0, length - 4) / 35)
        share = share @ P
    occurs /= occurs.sum()
    unigram = -(occurs * np.log(occurs)).sum()
    bigram = -(occurs * (P * np.log(np.where(P > 0, P, 1))).sum(axis=1)).sum()
    baselines = baseline_losses(RunRecord.read(factory.run("recipe")))
    assert baselines.uniform == pytest.approx(np.log(45))
    # measured at a few hundred positions: three standard errors are 0.3
    assert baselines.unigram == pytest.approx(unigram, abs=0.3)
    # interpolated with frequencies, which leaves 0.7 of the probability; first words have no predecessor
    assert bigram - 0.3 < baselines.bigram < bigram - np.log(0.7) + 0.3
    assert baselines.trigram == pytest.approx(baselines.bigram, abs=0.15)     # a chain has no longer memory
    assert baselines.counted_tokens > 20_000


# -------------------------------------------------------------------- measurements


def test_pace_and_forecast_of_a_straight_line(factory, tmp_path):
    run = copied(factory, tmp_path)
    lines = [{"step": n, "tokens": 1000 * n, "loss": 3 - n / 100, "learning_rate": 1e-3, "total_steps": 200}
             for n in range(1, 101)]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    case = Case(RunRecord.read(run))
    assert case.loss == pytest.approx(2)
    assert fall_per_token(case) == pytest.approx(1e-5)
    assert forecast(case, 1.0) == pytest.approx(1)           # the same number of tokens again
    assert forecast(case, 2.5) == 0


def test_repeated_text_is_counted():
    tokens = np.arange(100)
    assert len(window_hashes(tokens, 10)) == 91
    twice = window_hashes(np.concatenate([tokens, tokens]), 10)
    assert len(np.unique(twice)) == 100                       # 91, and 9 across the boundary
    assert twice[0] == twice[100]
    assert len(window_hashes(tokens[:5], 10)) == 0


def test_repeated_sentences_in_another_order_are_found(factory, chain_corpus):
    assert repeated_share(chain_corpus)[0] < 0.01
    share, tokens = repeated_share(Corpus(factory.corpus("repeated")))
    assert share > 0.9
    assert tokens > 3000


def test_repetitions_in_a_sampled_text_are_found_at_any_distance(factory, chain_corpus, tmp_path, monkeypatch):
    """Sampling must not miss a repetition because it is far from its original."""
    once = sentences(300, 7)
    corpus = Corpus(made_corpus(tmp_path / "twice", once + once, factory.tokenizer(), deduplicate=False))
    monkeypatch.setattr(doctor_data, "MOST_TOKENS", 1000)
    monkeypatch.setattr(doctor_data, "_STRETCH", 256)
    share, tokens = repeated_share(corpus)
    assert share == pytest.approx(0.5, abs=0.1)
    assert tokens > 10 * 1000
    assert repeated_share(chain_corpus)[0] < 0.01


def test_attention_to_padding_is_found_by_changing_the_padding(factory, monkeypatch):
    run = RunRecord.read(factory.run("recipe"))
    vocabulary, model = run.corpus.tokenizer.vocabulary, run.model()
    assert padding_effect(model, sample_batches(run), vocabulary) == 0
    real = mini_bert.core.model.check_batch
    monkeypatch.setattr(mini_bert.core.model, "check_batch", lambda *a: (real(*a)[0], None, *real(*a)[2:]))
    assert padding_effect(model, sample_batches(run), vocabulary) > 0.01
    found = examine(factory.run("recipe"))
    assert found.findings[0].name == "broken attention mask"
    assert "effect_of_padding" in found.findings[0].evidence


# -------------------------------------------------------------------- unfinished, damaged and moved runs


def copied(factory, folder, name="recipe"):
    shutil.copytree(factory.run(name), folder / "run")
    return folder / "run"


def test_an_incomplete_last_line_is_no_damage(factory):
    found = examine(factory.run("live"))
    assert not found.finished
    assert found.notes == []


def test_unreadable_lines_are_counted(factory, tmp_path):
    run = copied(factory, tmp_path)
    log = run / "log.jsonl"
    log.write_text('{"step": broken\n' + log.read_text())
    found = examine(run)
    assert found.healthy
    assert any("1 lines" in note for note in found.notes)


@pytest.mark.parametrize("content", [None, "", '{"step": 10, "lo'])
def test_without_a_log_the_model_and_corpus_are_examined(factory, tmp_path, content):
    run = copied(factory, tmp_path)
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


def test_a_disease_of_the_model_is_found_without_a_log(factory, tmp_path):
    run = copied(factory, tmp_path, "dead units")
    (run / "log.jsonl").unlink()
    assert examine(run).findings[0].name == "dead units"


def test_without_checkpoints_the_curve_is_examined(factory, tmp_path):
    run = copied(factory, tmp_path)
    for name in ("checkpoints", "best", "final"):
        shutil.rmtree(run / name)
    found = examine(run)
    assert found.healthy
    assert set(found.left_out) >= {"dead units", "collapsed representations", "masks on special tokens"}
    assert all("no checkpoint" in found.left_out[name] for name in ("dead units", "broken attention mask"))


def test_a_damaged_checkpoint_is_skipped(factory, tmp_path):
    run = copied(factory, tmp_path)
    file = run / "checkpoints" / "step-240" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"0000")
    found = examine(run)
    assert found.healthy
    assert "dead_units" in found.measured                     # of the previous checkpoint


def test_a_moved_corpus_can_be_named(factory, tmp_path):
    run, moved = copied(factory, tmp_path), tmp_path / "moved"
    shutil.copytree(factory.corpus("chain"), moved)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(factory.corpus("chain").resolve()), str(tmp_path / "gone")))
    without = examine(run)
    assert without.healthy
    assert without.baselines.bigram is None
    assert without.baselines.unigram == pytest.approx(2.25, abs=0.2)         # from config.yaml
    assert "duplicate data" in without.left_out
    assert "stuck at the bigram plateau" in without.left_out
    assert examine(run, moved).baselines.bigram is not None
    with pytest.raises(CorpusError, match="a different vocabulary"):
        examine(run, factory.corpus("docs"))
    with pytest.raises(CorpusError, match="not a prepared corpus"):
        examine(run, tmp_path / "gone")


def test_stuck_at_unigram_is_found_without_the_corpus(factory, tmp_path):
    run = copied(factory, tmp_path, "stuck at unigram")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(factory.corpus("chain").resolve()), str(tmp_path / "gone")))
    first = examine(run).findings[0]
    assert first.name == "stuck at unigram"
    assert first.sure.value == "likely"
    assert "bigram_loss" not in first.evidence                # it cannot be measured


def test_weights_changed_after_the_run_are_noted(factory, tmp_path):
    run = copied(factory, tmp_path)
    for place in (run / "checkpoints" / "step-240", run / "checkpoints" / "step-120"):
        model = MiniBERT.load(place)
        model.params["W2_0"][...] *= 0.5
        write_checkpoint(place, model, factory.tokenizer(), read_state(place))       # with correct checksums
    for name in ("final", "best"):
        shutil.rmtree(run / name)
    found = examine(run)
    assert found.measured["evaluation_differs_by"] > 0.001
    (note,) = found.notes
    assert "step-240 now has a held-out loss of" in note
    assert "have changed" in note
    assert "broken attention mask" not in [finding.name for finding in found.findings]


def test_a_checkpoint_without_checksums_is_not_examined(factory, tmp_path):
    run = copied(factory, tmp_path)
    for sums in run.glob("**/checksums.json"):
        sums.unlink()
    assert "not a whole checkpoint" in examine(run).left_out["dead units"]


def test_a_checkpoint_whose_state_is_not_an_object_is_skipped(factory, tmp_path):
    run = copied(factory, tmp_path)
    for state in run.glob("**/state.json"):
        if state.parent.name != "step-120":
            state.write_text("[1, 2]")
    log = run / "log.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if line["step"] == 120:
            del line["eval_loss"]                             # so that best/ is tried too
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = examine(run)
    assert "whose held-out loss is in the log" in found.left_out["broken attention mask"]
    with pytest.raises(CheckpointError, match="must contain JSON with an object"):
        read_state(run / "best")


def test_a_directory_without_a_run_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not a directory"):
        examine(tmp_path / "none")
    with pytest.raises(CheckpointError, match="not a run"):
        examine(tmp_path)


def test_a_run_without_held_out_text_is_judged_by_its_training_loss(factory, tmp_path):
    corpus = made_corpus(tmp_path / "all", sentences(400, 5), factory.tokenizer(), heldout=0.0)
    start_run(MODEL, replace(TRAINING, steps=120), corpus, tmp_path / "run").train()
    found = examine(tmp_path / "run")
    assert found.healthy
    assert found.says.startswith("Healthy: the training loss")
    assert "over-fitting" in found.left_out


def test_a_damaged_corpus_only_prevents_the_checks_that_need_it(factory, tmp_path):
    run, broken = copied(factory, tmp_path), tmp_path / "broken"
    shutil.copytree(factory.corpus("chain"), broken)
    tokens = np.fromfile(broken / "tokens.bin", np.uint16)
    np.full_like(tokens, 60000).tofile(broken / "tokens.bin")             # ids beyond the vocabulary
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(factory.corpus("chain").resolve()), str(broken)))
    found = examine(run)
    assert found.healthy
    assert found.baselines.bigram is None
    assert "damaged" in found.left_out["dead units"]
