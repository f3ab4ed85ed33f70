"""The workshop in which the doctor's runs are made, once a session."""

import os

import pytest
from doctor_runs import Workshop

from mini_bert.text.corpora.corpus import Corpus


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Workshop:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent                    # one for all processes of the session
    return Workshop(folder / "doctor")


@pytest.fixture(scope="session")
def chain_corpus(shop) -> Corpus:
    return Corpus(shop.corpus("chain"))
