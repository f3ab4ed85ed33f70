"""pretrain, resume, find-lr, overfit, memory and bench."""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest
from typer.testing import CliRunner

from mini_bert import CheckpointError, ConfigError
from mini_bert.bench.contest import BenchError
from mini_bert.cli.app import app

runner = CliRunner()
SMALL = ["--config", "debug", "--set", "model.vocab_size=60"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text("\n\n".join(f"The cat sat on mat {i} and looked at its {i % 7} masters."
                                                 for i in range(80)))
    for command in (["tokenizer", "train", "text.txt", "--vocab-size", "60", "--out", "tokenizer"],
                    ["data", "prepare", "text.txt", "--tokenizer", "tokenizer", "--out", "made"]):
        where = [str(folder / word) if word in ("text.txt", "tokenizer", "made") and number > 1 else word
                 for number, word in enumerate(command)]
        assert runner.invoke(app, [*where, "--quiet"]).exit_code == 0
    return folder / "made"


def run(*arguments: object) -> dict:
    result = runner.invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_pretrain_resume_and_load(corpus, tmp_path):
    done = run("pretrain", *SMALL, "--data", corpus, "--out", tmp_path / "run", "--steps", 20, "--seed", 3)
    assert (done["step"], done["interrupted"]) == (20, False)
    assert run("resume", tmp_path / "run")["step"] == 20
    again = run("pretrain", "--from", tmp_path / "run" / "final", "--data", corpus, "--out", tmp_path / "next",
                "--steps", 5, "--quiet")
    assert again["step"] == 5


def test_plain_lines_show_loss_baselines_and_speed(corpus, tmp_path):
    command = [sys.executable, "-m", "mini_bert", "pretrain", *SMALL, "--data", str(corpus), "--out",
               str(tmp_path / "run"), "--steps", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "ln V" in done.stderr
    assert "tokens/s" in done.stderr
    assert "held-out" in done.stderr
    assert "\x1b" not in done.stderr
    assert str(tmp_path / "run" / "final") in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_and_says_how_to_continue(corpus, tmp_path, number):
    command = [sys.executable, "-m", "mini_bert", "pretrain", *SMALL, "--data", str(corpus), "--out",
               str(tmp_path / "run"), "--steps", "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run" / "log.jsonl").exists() and process.poll() is None:
        time.sleep(0.05)
    os.kill(process.pid, number)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert f"mini-bert resume {tmp_path / 'run'}" in out
    newest = max(int(path.name[5:]) for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert f"step {newest:,}" in out


def test_find_lr_and_overfit(corpus):
    search = run("find-lr", *SMALL, "--data", corpus, "--steps", 30)
    assert 1e-5 < search["suggestion"] < 1
    assert len(search["rates"]) == len(search["losses"]) == len(search["steps"])
    assert max(search["steps"]) == 30
    shown = runner.invoke(app, ["find-lr", *SMALL, "--data", str(corpus), "--steps", "10", "--low", "1e-3", "--high",
                                "1e-2", "--quiet"])
    assert "The best rate is" in shown.output
    learned = run("overfit", *SMALL, "--data", corpus, "--set", "training.learning_rate=1e-2", "--quiet")
    assert learned["reached"]
    failed = runner.invoke(app, ["overfit", *SMALL, "--data", str(corpus), "--steps", "2", "--quiet"])
    assert failed.exit_code == 1


def test_memory_is_predicted_and_measured():
    found = run("memory", "debug", "--batch-size", 4)
    assert 0 < found["predicted_total"] < found["measured"]


def test_bench_reports_times_and_the_share_of_the_floor():
    found = run("bench", "train", "--config", "debug", "--batch-size", 4, "--steps", 5, "--quiet")
    assert found["contestants"]["mini-bert"]["steps"] == 5
    assert found["share_of_floor"] > 0


def test_bench_profile_reports_operations_and_draws_them(tmp_path):
    found = run("bench", "profile", "--config", "debug", "--batch-size", 2, "--steps", 1, "--picture",
                tmp_path / "step.svg")
    assert {"linear, forward", "attention, backward", "optimiser"} <= {row["name"] for row in found["rows"]}
    assert 0 < found["floor_seconds"] < found["watched_seconds"]
    assert "linear, forward" in (tmp_path / "step.svg").read_text("utf-8")


@pytest.mark.skipif(find_spec("torch") is not None, reason="PyTorch is installed, so its absence cannot be tested")
def test_a_missing_library_is_one_sentence():
    result = runner.invoke(app, ["bench", "train", "--config", "debug", "--against", "torch", "--quiet"])
    assert isinstance(result.exception, BenchError)
    assert "torch is not installed" in str(result.exception)


def test_invalid_calls_are_refused_before_anything_is_written(corpus, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("x")
    for arguments, kind, words in [
            (["pretrain", *SMALL, "--data", corpus, "--out", tmp_path / "there"], CheckpointError, "exists already"),
            (["pretrain", "--config", "debug", "--set", "model.vocab_size=30", "--data", corpus, "--out",
              tmp_path / "new"], ConfigError, "vocab_size"),
            (["pretrain", *SMALL, "--data", corpus, "--out", tmp_path / "new", "--budget", "soon"], ConfigError, "30m"),
            (["pretrain", *SMALL, "--data", corpus, "--out", tmp_path / "new", "--budget", "1m", "--steps", 3],
             ConfigError, "one of them"),
            (["resume", tmp_path / "nowhere"], CheckpointError, "not a run")]:
        result = runner.invoke(app, [*map(str, arguments)])
        assert isinstance(result.exception, kind)
        assert words in str(result.exception)
    assert not (tmp_path / "new").exists()


def test_the_live_display_and_the_bench_work_at_a_terminal(corpus, tmp_path):
    for command in (["pretrain", *SMALL, "--data", str(corpus), "--out", str(tmp_path / "run"), "--steps", "10"],
                    ["bench", "train", "--config", "debug", "--batch-size", "4", "--steps", "5"]):
        master, slave = os.openpty()
        process = subprocess.Popen([sys.executable, "-m", "mini_bert", *command], stdin=slave, stdout=slave,
                                   stderr=slave, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"})
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:                               # raised when the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(master)
        assert process.wait() == 0, shown.decode()
        assert b"Traceback" not in shown
        assert b"loss" in shown or b"contestant" in shown
