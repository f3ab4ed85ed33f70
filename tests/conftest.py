"""What several tests share."""

import os

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, load_preset


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk():
    """A sync checks its file and returns: the tests write fifty thousand files, none of which must outlive the machine.

    Tests of what happens when a sync fails replace it by their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def debug() -> ModelConfig:
    return load_preset("debug")


@pytest.fixture
def model(debug: ModelConfig) -> MiniBERT:
    """A small model in float64 whose weights are large enough that everything matters."""
    made = MiniBERT(debug, dtype=np.float64)
    made.params.flat += 0.2 * np.random.default_rng(1).standard_normal(made.params.flat.size)
    return made
