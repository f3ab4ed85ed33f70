"""What the tests of evaluation share."""

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
    """Results are cached_result for one module of tests alone, and not among the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINI_BERT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
