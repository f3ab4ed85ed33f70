"""A run that is killed at random moments ends with the same bytes as an uninterrupted one."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

KILLS = 20
PROGRAM = """
import sys
from pathlib import Path
from mini_bert import ModelConfig
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import resume_run, start_run

run, corpus = sys.argv[1:]
print("ready", flush=True)
if (Path(run) / "config.yaml").exists():
    trainer = resume_run(run)
else:
    config = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=60,
                         max_seq_length=16, dropout=0.1)
    trainer = start_run(config, TrainingConfig(steps=STEPS, batch_size=8, micro_batch_size=4, learning_rate=1e-2,
                        warmup_steps=5, log_every=5, eval_every=10, eval_sequences=16, checkpoint_every=5,
                        threads=2), corpus, run)
trainer.train()
print("done", flush=True)
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng = np.random.default_rng(0)
    text = "\n\n".join(" ".join(rng.choice(["the", "cat", "sat", "on", "a", "mat", "and", "ran"], 40)) + "."
                       for _ in range(60))
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text(text)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([text]), 60))
    prepare([str(folder / "text.txt")], tokenizer, folder / "made", heldout=0.1, workers=1)
    return folder / "made"


def start(run, corpus) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM.replace("STEPS", "300"), str(run), str(corpus)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def test_twenty_kills_do_not_change_the_result(tmp_path, corpus):
    begin = time.monotonic()
    assert start(tmp_path / "whole", corpus).communicate()[0] == "done\n"
    length = time.monotonic() - begin
    rng = np.random.default_rng()
    kills = 0
    while kills < KILLS:
        process = start(tmp_path / "killed", corpus)
        time.sleep(rng.uniform(0, length / 6))
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
        if process.returncode == -signal.SIGKILL:
            kills += 1
        else:
            assert (process.returncode, output) == (0, "done\n")
            (tmp_path / "killed").rename(tmp_path / f"finished-{kills}")      # it had finished: start another one
    assert start(tmp_path / "killed", corpus).communicate()[0] == "done\n"
    for name in ("final", "best", "checkpoints/step-300"):
        whole, killed = (tmp_path / run / name / "model.safetensors" for run in ("whole", "killed"))
        assert whole.read_bytes() == killed.read_bytes()
