"""mini-bert doctor: its output and exit code."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mini_bert import ModelConfig
from mini_bert.cli.look.doctor import doctor_command
from mini_bert.cli.shared_options import with_shared_options
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import start_run

APP = typer.Typer()
APP.command()(with_shared_options(doctor_command, imports=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A short run on words in random order, and a long one on sentences that repeat one sequence of words."""
    made = tmp_path_factory.mktemp("doctor")
    words, rng = [f"{a}{b}" for a in "bdfg" for b in "aeiou"], np.random.default_rng(0)
    lengths = rng.integers(5, 30, 400).tolist()
    texts = {"short": [" ".join(rng.choice(words, n)) for n in lengths],
             "long": [" ".join((words * 3)[first : first + n]) for first, n
                      in zip(rng.integers(0, 20, 400).tolist(), lengths, strict=True)]}
    tokenizer = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *words]))
    model = ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=len(tokenizer),
                        max_seq_length=16)
    for name, steps in (("long", 120), ("short", 8)):
        (made / f"{name}.txt").write_text("\n\n".join(texts[name]))
        corpus = made / f"{name}-corpus"
        prepare([str(made / f"{name}.txt")], tokenizer, corpus, heldout=0.1, workers=1, deduplicate=False)
        training = TrainingConfig(steps=steps, batch_size=16, learning_rate=1e-2, warmup_steps=4, log_every=4,
                                  eval_every=20, eval_sequences=32, init="local", frequency_bias=True, threads=1)
        start_run(model, training, corpus, made / name).train()
    return made


def test_a_run_that_is_too_short_exits_with_0(folder):
    done = CliRunner().invoke(APP, [str(folder / "short")])
    assert done.exit_code == 0
    assert "too short to tell (possible)" in done.stdout
    assert "evidence: " in done.stdout
    assert "try: " in done.stdout
    assert "Not examined: over-fitting" in done.stdout


def test_json_is_one_object_with_the_same_exit_code(folder):
    done = CliRunner().invoke(APP, [str(folder / "short"), "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["verdict"] == "unclear"
    assert found["findings"][0].keys() == {"name", "sure", "says", "evidence", "advice"}


def test_duplicate_data_is_found_and_exits_with_1(folder):
    done = CliRunner().invoke(APP, [str(folder / "long"), "--json"])
    found = json.loads(done.stdout)
    assert done.exit_code == 1                                # not healthy
    assert [finding["name"] for finding in found["findings"]] == ["duplicate data"]
    assert found["loss"] < found["levels"]["bigram"] + 0.3


def test_a_moved_corpus_can_be_named(folder):
    done = CliRunner().invoke(APP, [str(folder / "short"), "--corpus", str(folder / "short-corpus"), "--quiet"])
    assert done.exit_code == 0
    assert "Measured" not in done.stdout
