"""mini-bert fit: from text to a model and a report, interrupted and continued, with and without an initial model."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import mini_bert
from mini_bert.cli.app import app
from mini_bert.errors import CheckpointError, ConfigError, CorpusError, VocabularyError
from mini_bert.evaluation.masked_lm import MaskedReport, evaluate_corpus
from mini_bert.fit import FitResult, Stopped, fit
from mini_bert.fit.request import FitRequest
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.grow import grow_model
from mini_bert.training.loop import Listener
from mini_bert.training.runs.checkpoints import newest_checkpoint, read_state

SMALL = ["model.num_layers=1", "model.num_heads=2", "model.hidden_size=16", "model.intermediate_size=32",
         "model.max_seq_length=16", "training.batch_size=8", "training.eval_sequences=32"]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away", "from",
         "home", "to", "see", "some", "distant", "town"]


class Said(Listener):
    """Notes every sentence for a person."""

    def __init__(self, sentences: list[str]):
        self.said = sentences.append


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
    fitted = fit(one_line, out, budget="4s", changes=SMALL, listener=Said(said))
    assert fitted is not None
    assert fitted.heldout is not None                         # part of the only document was held out
    assert fitted.heldout.loss < fitted.heldout.baselines["uniform"]
    model, tokenizer = mini_bert.load(fitted.model), WordPieceTokenizer.load(fitted.model)
    assert len(tokenizer) <= model.config.vocab_size
    assert fitted.examples
    assert all(example.text.count("[MASK]") == 1 for example in fitted.examples)
    html = fitted.report.read_text("utf-8")
    assert "held-out loss" in html
    assert f"{fitted.heldout.loss:.3f}" in html
    assert fitted.verdict in html
    assert repr(fitted).startswith(fitted.verdict)
    result = json.loads((out / "fit.json").read_text("utf-8"))
    assert result["heldout"]["loss"] == fitted.heldout.loss
    assert any("held out" in sentence for sentence in said)
    records = [json.loads(line) for line in (out / "run" / "log.jsonl").read_text("utf-8").splitlines()]
    evaluated = [record["step"] / record["total_steps"] for record in records if "eval_loss" in record]
    assert 1 <= len(evaluated) <= 25                          # of twenty, fewer where the machine is suddenly slow
    assert evaluated[-1] == 1

    again = fit(one_line, out, budget="4s", changes=SMALL)    # nothing left to do
    assert again is not None
    assert again.heldout == fitted.heldout
    assert mini_bert.load(out).config == model.config         # the directory of a fit names its model
    with pytest.raises(CheckpointError, match="another fit: its seed was 0, not 1"):
        fit(one_line, out, budget="4s", changes=SMALL, seed=1)
    one_line.write_text(text_of(WORDS, 2001))
    with pytest.raises(CheckpointError, match="text has changed"):
        fit(one_line, out, budget="4s", changes=SMALL)
    (out / "fit.json").write_text("[1")
    with pytest.raises(CheckpointError, match=r"fit\.json is damaged"):
        fit(one_line, out, budget="4s", changes=SMALL)


def test_another_budget_goes_on_with_the_same_fit(one_line, tmp_path):
    class Stops(Listener):
        def stepped(self, state, loss):
            return state.step >= first["step"] + 5

    def state():
        return read_state(newest_checkpoint(out / "run" / "checkpoints")[0])

    out, said = tmp_path / "made", list[str]()
    one_line.write_text(text_of(WORDS, 50))
    assert not isinstance(fit(one_line, out, budget="0.1s", changes=SMALL), Stopped)
    first = state()
    fit(one_line, out, budget="1h", changes=SMALL, listener=[Said(said), Stops()])
    assert state()["step"] == first["step"] + 5 < state()["total_steps"]
    assert f"The budget was 0.1s and is now 1h: training continues from step {first['step']:,}." in said
    assert any(sentence.startswith("The learning rate rises from ") for sentence in said)
    assert json.loads((out / "fit.json").read_text())["request"]["budget"] == "1h"
    fit(one_line, out, budget="0.1s", changes=SMALL)          # less than it has had: one step ends the schedule
    assert state()["step"] == first["step"] + 6 == state()["total_steps"]


def test_a_folder_of_all_kinds_of_files_is_fitted_and_what_was_skipped_is_listed(tmp_path):
    folder, said = tmp_path / "texts", list[str]()
    folder.mkdir()
    (folder / "a.txt").write_text(text_of(WORDS[:10], 9))
    (folder / "b.html").write_text(f"<p>{text_of(WORDS[:12], 9, 1)}</p><script>banana</script>")
    (folder / "c.csv").write_text("id,comment\n" + "".join(f'{i},"{text_of(WORDS[:14], 3, i)}"\n' for i in range(9)))
    (folder / "d.txt").write_bytes(text_of(WORDS, 9, 3).encode("utf-16"))
    (folder / "e.png").write_bytes(b"\x89PNG\0\0")
    small = [*SMALL, "model.hidden_size=4", "model.intermediate_size=4", "model.num_heads=1"]
    fitted = fit(folder, tmp_path / "made", budget="0.1s", changes=small, listener=Said(said))
    skipped = "1 of 5 files cannot be read and were skipped: e.png (is a binary file: byte 4 is zero)."
    assert skipped in said
    assert skipped in fitted.facts["left out"]
    assert "e.png" in fitted.report.read_text()
    assert set(WordPieceTokenizer.load(fitted.model).vocabulary.pieces) >= {"master", "distant"}
    assert "banana" not in " ".join(WordPieceTokenizer.load(fitted.model).vocabulary.pieces)
    with pytest.raises(CorpusError, match=r"e\.png is a binary file"):
        fit(folder, tmp_path / "strict", budget="0.1s", changes=small, strict=True)
    only = FitRequest((str(folder),), include=("*.csv",), text_column="comment")
    assert [source.name for source in only.text()] == [str(folder / "c.csv")]


def test_too_little_text_for_the_model_is_said(tmp_path):
    (tmp_path / "a.txt").write_text(text_of(WORDS, 12))
    said: list[str] = []
    fitted = fit(tmp_path / "a.txt", tmp_path / "made", budget="0.1s", changes=SMALL, listener=Said(said))
    caution = fitted.facts["caution"]
    assert caution in said
    assert fitted.heldout is None
    assert "Evaluating on the held-out text." not in said     # which there is not
    assert any(sentence.endswith(" tokens in 1 document, too few to hold any out, so nothing can measure the model on "
                                 "text that it has not seen.") for sentence in said)
    assert "tokens, few for a model of" in caution
    assert caution in fitted.report.read_text()


def test_the_directory_of_a_fit_is_resumed_as_its_run(one_line, tmp_path):
    one_line.write_text(text_of(WORDS, 50))
    fit(one_line, tmp_path / "made", budget="0.1s", changes=SMALL)
    done = CliRunner().invoke(app, ["resume", str(tmp_path / "made"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["run"] == str(tmp_path / "made" / "run")


@pytest.mark.parametrize(("loss", "said"), [(4.0, "better than guessing by the previous word (5.00)."),
                                            (4.95, "previous word (5.00), but only slightly. Train it for longer"),
                                            (5.2, "(6.20), but not better than by the previous word (5.00). Train it"),
                                            (6.15, "but only slightly, and not better than by the previous word")])
def test_the_verdict_compares_with_bigrams(tmp_path, loss, said):
    report = MaskedReport(loss, 0.3, 100, [], [], {"uniform": 9.0, "unigram": 6.2, "bigram": 5.0})
    fitted = FitResult(tmp_path, tmp_path / "report.html", report, None, [], {})
    assert said in fitted.verdict
    assert f"{loss:.2f}" in fitted.verdict
    assert ("larger budget" in fitted.verdict) == (loss > 4.9)
    assert "too little text" in FitResult(tmp_path, tmp_path, None, None, [], {}).verdict


def test_a_fit_from_a_model_keeps_its_vocabulary_and_adds_words(one_line, tmp_path):
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
    corpus = Corpus(tmp_path / "second" / "corpus")
    grown = grow_model(mini_bert.load(first.model), old, new)
    assert second.before == evaluate_corpus(grown, corpus, length=16)      # before training
    assert second.heldout is not None
    assert second.heldout.loss < second.before.loss


def test_the_corpus_is_opened_once(one_line, tmp_path, monkeypatch):
    opened, init = [], Corpus.__init__

    def recorded(self, directory):
        opened.append(directory)
        init(self, directory)

    monkeypatch.setattr(Corpus, "__init__", recorded)
    for _ in range(2):                                        # a new fit, then one that resumes its run
        fit(one_line, tmp_path / "made", budget="1s", changes=SMALL)
    assert opened == [tmp_path / "made" / "corpus"] * 2


def test_an_interrupted_fit_continues(one_line, tmp_path):
    class Interrupts(Listener):
        def stepped(self, state, loss):
            if state.step == 3:
                os.kill(os.getpid(), signal.SIGINT)

    changes = [*SMALL, "training.checkpoint_every=1"]
    stopped = fit(one_line, tmp_path / "made", budget="3s", changes=changes, listener=Interrupts())
    assert stopped == Stopped(signal.SIGINT, saved=True)
    fitted = fit(one_line, tmp_path / "made", budget="3s", changes=changes)
    assert not isinstance(fitted, Stopped)
    assert fitted.heldout is not None


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"budget": "soon"}, ConfigError, "not a length of time"),
    ({"changes": ["training.rate=1"]}, ConfigError, "nearest valid key"),
    ({"start": "mini", "vocab_size": 100}, ConfigError, "has its own vocabulary"),
    ({"start": "nowhere"}, CheckpointError, "no directory nowhere"),
    ({"start": "mini", "cased": True}, ConfigError, "determines the casing"),
    ({"start": "mini", "changes": ["model.num_layers=2"]}, ConfigError, "cannot be changed"),
    ({"new_words": 5}, ConfigError, "needs an initial model"),
    ({"seed": -1}, ConfigError, "seed must be at least 0"),
    ({"vocab_size": 3}, ConfigError, "at least 10"),
    ({"changes": ["training.steps=3"]}, ConfigError, "give budget instead"),
    ({"changes": ["training.max_seq_length=128"]}, ConfigError, "more than the model takes"),
    ({"changes": ["model.position_embeddings=none"]}, ConfigError, "training.init=normal"),
    ({"changes": ["model.mlm_head=none"]}, ConfigError, "a bias for each word"),
    ({"sources": "-"}, CorpusError, "more than once"),
    ({"sources": "nothing.txt"}, CorpusError, "no file or folder")])
def test_invalid_arguments_are_refused_before_anything_is_written(one_line, tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        fit(**{"sources": one_line, "out": tmp_path / "made", **options})
    assert not (tmp_path / "made").exists()


def test_a_directory_inside_the_text_is_refused(one_line):
    with pytest.raises(CorpusError, match="is inside"):
        fit(one_line.parent, one_line.parent / "made")


def test_an_initial_model_without_a_head_is_refused(one_line, tmp_path):
    model = mini_bert.MiniBERT(mini_bert.ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4,
                                                     vocab_size=60, mlm_head="none"))
    model.save(tmp_path / "headless")
    WordPieceTokenizer([*SPECIAL_TOKENS, "the", "cat"]).save(tmp_path / "headless")
    with pytest.raises(ConfigError, match="no head"):
        fit(one_line, tmp_path / "made", start=str(tmp_path / "headless"))


def test_text_without_known_words_is_refused(tmp_path):
    (tmp_path / "masks.txt").write_text("".join("[MASK] " * n + "\n" for n in range(3, 60)))
    with pytest.raises(CorpusError, match="nothing to learn"):
        fit(tmp_path / "masks.txt", tmp_path / "made", budget="3s", changes=SMALL)
    assert not (tmp_path / "made" / "run").exists()


def test_a_text_without_words_leaves_nothing_behind(tmp_path):
    (tmp_path / "blank.txt").write_text(" \n\n")
    with pytest.raises(VocabularyError, match="no words to learn"):
        fit(tmp_path / "blank.txt", tmp_path / "made", budget="3s")
    assert not (tmp_path / "made").exists()


def test_a_directory_with_other_files_is_not_touched(one_line, tmp_path):
    with pytest.raises(CheckpointError, match="not empty"):
        fit(one_line, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_the_command_prints_losses_and_paths(one_line, tmp_path):
    sets = [part for change in SMALL for part in ("--set", change)]
    command = ["fit", str(one_line), "--out", str(tmp_path / "made"), "--budget", "3s", *sets]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "baseline: bigram" in done.stdout
    assert str(tmp_path / "made" / "report.html") in done.stdout
    assert "[MASK]" in done.stdout
    done = CliRunner().invoke(app, [*command, "--json"])
    assert json.loads(done.stdout)["heldout"]["masked"] > 0
