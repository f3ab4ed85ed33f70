"""Fixtures for the doctor's tests: training runs, made once per session."""

import os

import pytest
from doctor_runs import RunFactory

from mini_bert.text.corpora.corpus import Corpus


@pytest.fixture(scope="session")
def factory(tmp_path_factory) -> RunFactory:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent                    # shared by all processes of the session
    return RunFactory(folder / "doctor")


@pytest.fixture(scope="session")
def chain_corpus(factory) -> Corpus:
    return Corpus(factory.corpus("chain"))
