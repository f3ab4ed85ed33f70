"""mini-bert fit: from text to a model and a report, stopped and continued, from nothing or from a model."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mini_bert
from mini_bert.cli.app import app
from mini_bert.errors import CheckpointError, ConfigError
from mini_bert.fit import fit
from mini_bert.text.tokenizer import WordPieceTokenizer
from mini_bert.training.trainer import Listener

SMALL = ["model.num_layers=1", "model.num_heads=2", "model.hidden_size=16", "model.intermediate_size=32",
         "model.max_seq_length=16", "training.batch_size=8", "training.eval_sequences=32"]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away", "from",
         "home", "to", "see", "some", "distant", "town"]


def text_of(words: list[str], sentences: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    return " ".join(f"{' '.join(rng.choice(words, 12)).capitalize()}." for _ in range(sentences))


@pytest.fixture
def one_line(tmp_path) -> Path:
    """A text with neither paragraphs nor documents."""
    file = tmp_path / "text.txt"
    file.write_text(text_of(WORDS, 2000))
    return file


def test_any_text_becomes_a_model_and_a_report(one_line, tmp_path):
    said: list[str] = []
    out = tmp_path / "made"
    fitted = fit(one_line, out, budget="4s", changes=SMALL, say=said.append)
    assert fitted is not None
    assert fitted.heldout is not None                         # something was held out, of one document
    assert fitted.heldout.loss < fitted.heldout.baselines["uniform"]
    model, tokenizer = mini_bert.load(fitted.model), WordPieceTokenizer.load(fitted.model)
    assert len(tokenizer) <= model.config.vocab_size
    assert fitted.examples
    assert all(example.text.count("[MASK]") == 1 for example in fitted.examples)
    html = fitted.report.read_text("utf-8")
    assert "held-out loss" in html
    assert f"{fitted.heldout.loss:.3f}" in html
    result = json.loads((out / "fit.json").read_text("utf-8"))
    assert result["heldout"]["loss"] == fitted.heldout.loss
    assert any("held out" in sentence for sentence in said)
    records = [json.loads(line) for line in (out / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    assert sum("eval_loss" in record for record in records) > 3

    again = fit(one_line, out, budget="4s", changes=SMALL)    # nothing is left to do
    assert again is not None
    assert again.heldout == fitted.heldout
    with pytest.raises(CheckpointError, match="another budget"):
        fit(one_line, out, budget="5s", changes=SMALL)


def test_a_fit_from_a_model_keeps_its_words_and_adds_new_ones(one_line, tmp_path):
    first = fit(one_line, tmp_path / "first", budget="3s", changes=SMALL)
    assert first is not None
    field = tmp_path / "field.txt"
    field.write_text(text_of([*WORDS, "mastocarcinoma", "carcinogenic"], 1500, seed=1))
    training = [change for change in SMALL if change.startswith("training")]
    second = fit(field, tmp_path / "second", budget="3s", start=str(first.model), changes=training, new_words=7)
    assert second is not None
    old, new = WordPieceTokenizer.load(first.model), WordPieceTokenizer.load(second.model)
    assert new.vocabulary.pieces[: len(old)] == old.vocabulary.pieces
    assert {"mastocarcinoma", "carcinogenic"} <= set(new.vocabulary.pieces[len(old) :])
    assert second.before is not None
    assert second.heldout is not None
    assert second.before.masked == second.heldout.masked


def test_an_interrupted_fit_goes_on(one_line, tmp_path):
    import os
    import signal

    class Interrupts(Listener):
        def stepped(self, state, loss):
            if state.step == 3:
                os.kill(os.getpid(), signal.SIGINT)

    changes = [*SMALL, "training.checkpoint_every=1"]
    assert fit(one_line, tmp_path / "made", budget="3s", changes=changes, listener=Interrupts()) is None
    fitted = fit(one_line, tmp_path / "made", budget="3s", changes=changes)
    assert fitted is not None
    assert fitted.heldout is not None


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"budget": "soon"}, ConfigError, "not a length of time"),
    ({"changes": ["training.rate=1"]}, ConfigError, "nearest valid key"),
    ({"start": "mini", "vocab_size": 100}, ConfigError, "brings its vocabulary"),
    ({"start": "nowhere"}, mini_bert.VocabularyError, "no tokenizer at nowhere")])
def test_what_cannot_be_is_refused_before_anything_is_written(one_line, tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        fit(one_line, tmp_path / "made", **options)
    assert not (tmp_path / "made").exists()


def test_a_directory_with_other_things_is_left_alone(one_line, tmp_path):
    with pytest.raises(CheckpointError, match="not empty"):
        fit(one_line, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_the_command_prints_figures_and_where_things_are(one_line, tmp_path):
    sets = [part for change in SMALL for part in ("--set", change)]
    command = ["fit", str(one_line), "--out", str(tmp_path / "made"), "--budget", "3s", *sets]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "guessing: bigram" in done.stdout
    assert str(tmp_path / "made" / "report.html") in done.stdout
    assert "[MASK]" in done.stdout
    done = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(done.stdout)["heldout"]["masked"] > 0
