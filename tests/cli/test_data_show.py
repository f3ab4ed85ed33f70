"""mini-bert data show with a config or of a run: what training sees at a step."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from mini_bert import MiniBERT
from mini_bert.cli.app import app
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.schedule import Step
from mini_bert.training.config import load_run_config, make_objective
from mini_bert.training.runs.run import start_run

runner = CliRunner()
CURRICULUM = "training.curriculum=rarity(pacing=root, start=0.2, until=0.5)"
SETS = ["model.vocab_size=60", "training.steps=100", "training.threads=1", CURRICULUM,
        "training.masking_rate=0.4 -> 0.2",
        "training.sequences=sentences until 0.6, packed", "training.masking_weights=adaptive(every=3)"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text("\n\n".join(f"The cat sat on mat {i}. It looked at its {i % 7} masters."
                                                 for i in range(80)))
    for command in (["tokenizer", "train", folder / "text.txt", "--vocab-size", "60", "--out", folder / "tokenizer"],
                    ["data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "--out", folder / "made"]):
        assert runner.invoke(app, [*map(str, command), "--quiet"]).exit_code == 0
    return folder / "made"


def run(*arguments):
    result = runner.invoke(app, ["data", "show", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def sets(changes):
    return [word for change in changes for word in ("--set", change)]


def test_a_config_shows_the_batch_that_a_run_would_see(corpus):
    shown = run(corpus, "--config", "debug", *sets(SETS), "--step", 20, "--rows", 2)
    model, training = load_run_config("debug", SETS)
    training = training.resolved(model)
    batches = make_objective(training, MiniBERT(model, seed=None)).batches(Corpus(corpus), training)
    batch, pieces = batches[Step(20, 100)], Corpus(corpus).tokenizer.vocabulary
    own, = shown["batches"]
    assert (own["objective"], own["kind"], own["sequences"]) == ("masked", "sentences", len(batch.input_ids))
    assert own["tokens"] == batch.attention_mask.sum()
    assert own["asked_for"] == batch.mask_positions.sum()
    assert len(own["rows"]) == 2
    for row, found in enumerate(own["rows"]):
        there = batch.attention_mask[row]
        assert found["tokens"] == [pieces[i] for i in batch.input_ids[row][there]]
        assert found["targets"] == {str(place): pieces[batch.target_ids[row][place]]
                                    for place in np.flatnonzero(batch.mask_positions[row])}
    assert shown["masking_rate"] == pytest.approx(0.36)
    assert shown["curriculum"]["share"] == pytest.approx(0.2 + 0.8 * 0.4**0.5)
    assert shown["curriculum"]["open"] == batches.stage(Step(20, 100)).pool(Step(20, 100)) < shown["curriculum"]["all"]
    assert shown["masking_weights"]["highest"][0]["weight"] == 1
    later = run(corpus, "--config", "debug", *sets(SETS), "--step", 80)
    assert (later["batches"][0]["kind"], later["curriculum"]["share"]) == ("packed", 1.0)


def test_a_run_shows_the_weights_that_it_has_learned(corpus, tmp_path):
    model, training = load_run_config("debug", [*SETS, "training.steps=12", "training.checkpoint_every=4"])
    trainer = start_run(model, training, corpus, tmp_path / "run")
    trainer.train()
    shown = run(tmp_path / "run", "--most", 3)
    assert (shown["step"], shown["total_steps"], shown["masking_weights"]["learned_to_step"]) == (11, 12, 12)
    table = trainer.objective.masking_weights.at(Step(11, 12))
    assert shown["masking_weights"]["highest"][0]["weight"] == pytest.approx(table[5:].max())
    assert shown["masking_weights"]["lowest"][0]["weight"] == pytest.approx(table[5:].min())
    assert sum(token["asked"] for token in shown["masking_weights"]["lowest"]) > 0
    assert run(tmp_path / "run", "--step", 3, "--data", corpus)["step"] == 3


@pytest.mark.parametrize(("objective", "more", "said"), [
    ("masked + 0.5 token_order", [], "batch of token_order"),
    ("causal", ["model.score_terms=causal"], "one position earlier"),
    ("hybrid(causal=0.9)", ["model.score_terms=causal_rows"], "batch"), ("contrastive", [], "nothing is masked")])
def test_every_objective_can_be_looked_at_in_a_terminal_of_a_hundred_columns(corpus, objective, more, said):
    changes = [f"training.objective={objective}", "model.vocab_size=60", "model.max_seq_length=16", *more]
    result = runner.invoke(app, ["data", "show", str(corpus), "--config", "debug", *sets(changes)],
                           env={"FORCE_COLOR": "1", "COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    assert said in plain
    assert max(map(len, plain.splitlines())) <= 100


@pytest.mark.parametrize(("arguments", "said"), [
    (["--step", "3"], "--step needs --config, or the directory of a run"),
    (["--set", "training.steps=5"], "--set needs --config"),
    (["--config", "debug", "--mode", "pairs"], "--mode cannot be combined with --config"),
    (["--config", "debug", "--set", "model.vocab_size=60", "--step", "1000000"], "There is no step 1000000"),
    (["--config", "debug", "--set", "model.vocab_size=60", "--set", "training.budget=1h"], "training.budget= and"),
    (["--config", "debug", "--set", "model.vocab_size=6"], "set model.vocab_size"),
    (["--config", "nowhere"], "nowhere")])
def test_what_cannot_be_shown_is_refused_in_a_sentence(corpus, arguments, said):
    result = runner.invoke(app, ["data", "show", str(corpus), *arguments])
    assert result.exit_code != 0
    assert said in str(result.exception) + result.output


def test_an_option_that_a_run_has_already_is_refused(corpus, tmp_path):
    start_run(*load_run_config("debug", SETS), corpus, tmp_path / "run").lock.release()
    result = runner.invoke(app, ["data", "show", str(tmp_path / "run"), "--config", "debug"])
    assert "--config does not apply to" in str(result.exception)
