"""The workshop in which the doctor's runs are made, once a session."""

import pytest
from doctor_runs import Workshop

from mini_bert.text.corpus import Corpus


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("doctor"))


@pytest.fixture(scope="session")
def chain_corpus(shop) -> Corpus:
    return Corpus(shop.corpus("chain"))
