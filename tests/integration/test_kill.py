"""A run that is killed at random moments ends with the same bytes as an uninterrupted one."""

import signal
import time
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from killed_training import STEPS, train

from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

KILLS = 20


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


@pytest.fixture(scope="module")
def start():
    """Starts the run in a process forked from one that has imported the package, which takes longer than a kill."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["killed_training"])

    def started(run: Path, corpus: Path) -> BaseProcess:
        process = context.Process(target=train, args=(run, corpus))
        process.start()
        return process

    return started


def test_twenty_kills_do_not_change_the_result(tmp_path, corpus, start):
    def finished(run: str) -> None:
        process = start(tmp_path / run, corpus)
        process.join()
        assert process.exitcode == 0

    finished("another")                                # the first one waits for the imports
    begin = time.monotonic()
    finished("whole")
    length = time.monotonic() - begin
    rng = np.random.default_rng()
    kills = 0
    while kills < KILLS:
        process = start(tmp_path / "killed", corpus)
        time.sleep(rng.uniform(0, length / 6))
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            kills += 1
        else:
            assert process.exitcode == 0
            (tmp_path / "killed").rename(tmp_path / f"finished-{kills}")      # it had finished: start another one
    finished("killed")
    for name in ("final", "best", f"checkpoints/step-{STEPS}"):
        whole, killed = (tmp_path / run / name / "model.safetensors" for run in ("whole", "killed"))
        assert whole.read_bytes() == killed.read_bytes()
