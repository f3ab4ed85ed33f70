"""What the pages take as given: a folder of text, sentences, a prepared corpus, a short run, reviews with labels."""

import fcntl
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
               "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg", "COLUMNS": "100", "HF_HUB_OFFLINE": "1"}
SENTENCES = ["A dog barks at night.", "The cat sat on the mat.", "They met for the first time in Paris.",
             "The function returns the sum of two arrays.", "It was raining when the train arrived.",
             "The government announced a new law.", "She opened the old book and began to read.",
             "The file could not be opened.", "His brother plays the piano.", "The river flows into the sea."]
GOOD = ["a warm and funny film", "beautifully acted and well told", "a joy from start to end", "smart and moving"]
BAD = ["a dull and empty film", "badly acted and far too long", "a waste of time", "tired and without a plot"]


def make_given(folder: Path) -> None:
    from mini_bert.text.pydocs import pydocs

    (folder / "corpus").mkdir()
    (folder / "letters").mkdir()
    lines = list(itertools.islice(pydocs(), 4000))
    for name, part in (("corpus/a.txt", lines[:2000]), ("corpus/b.txt", lines[2000:]), ("letters/one.txt", lines[::2])):
        (folder / name).write_text("\n".join(part) + "\n", "utf-8")
    (folder / "sentences.txt").write_text("\n".join(SENTENCES) + "\n", "utf-8")
    (folder / "reviews").mkdir()
    rows = [f"{text}, said critic {n}\t{label}"
            for n in range(12) for texts, label in ((GOOD, 1), (BAD, 0)) for text in texts]
    for name, part in (("train", rows[16:]), ("dev", rows[:16])):
        (folder / "reviews" / f"{name}.tsv").write_text("\n".join(["sentence\tlabel", *part]) + "\n", "utf-8")
    for command in ("tokenizer train corpus/a.txt corpus/b.txt --vocab-size 1000 --out tokenizer",
                    "data prepare corpus/a.txt corpus/b.txt --tokenizer tokenizer --out corpus.mb",
                    "pretrain --config small --data corpus.mb --out runs/mine --steps 60 --threads 1 "
                    "--set model.vocab_size=1000 --set training.log_every=5 --set training.eval_every=20"):
        subprocess.run([sys.executable, "-m", "mini_bert", *command.split(), "--quiet"], cwd=folder, env=ENVIRONMENT,
                       check=True, capture_output=True)


@pytest.fixture(scope="session")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once for all workers of a parallel test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "given"
    with (folder.parent / "given.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            folder.mkdir()
            make_given(folder)
            (folder / "done").touch()
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**ENVIRONMENT, "MINI_BERT_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def scratch(given: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(given, tmp_path / "scratch"))
