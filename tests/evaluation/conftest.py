"""Fixtures for the tests of evaluation."""

import pytest
from suite_folder import make_model, make_tasks, make_text


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, tasks and a text."""
    made = tmp_path_factory.mktemp("suite")
    make_model(made / "model")
    make_tasks(made / "tasks")
    make_text(made / "text.txt")
    return made


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A cache of results for each module of tests, separate from the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINI_BERT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
