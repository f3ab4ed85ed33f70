"""What the pages take as given: a folder of text, sentences, a prepared corpus, a short run, reviews with labels."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from run_page import blocks_of

ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
               "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg", "COLUMNS": "100", "HF_HUB_OFFLINE": "1"}
ROOT = Path(__file__).parents[2]


def make_given(folder: Path) -> None:
    """By the command that the guide gives its readers; it makes the folder `my-guide`."""
    block, = (block for block in blocks_of(ROOT / "docs" / "guide" / "README.md") if "practice my-guide" in block.body)
    subprocess.run(["bash", "-euo", "pipefail", "-c", block.body], cwd=folder, env=ENVIRONMENT, check=True,
                   capture_output=True)


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
    return folder / "my-guide"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**ENVIRONMENT, "MINI_BERT_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def scratch(given: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(given, tmp_path / "scratch"))
