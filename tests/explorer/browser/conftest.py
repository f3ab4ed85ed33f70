"""One browser and one server with the shipped model for all tests of the page; a small model beside it."""

import pytest

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.explorer.session import Session

pytest.register_assert_rewrite("browsing")


@pytest.fixture(scope="session")
def driver():
    from browsing import start_browser

    browser = start_browser()
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def model():
    return mini_bert.load("mini")


@pytest.fixture(scope="session")
def words():
    return WordPieceTokenizer.load("mini")


@pytest.fixture(scope="session")
def shown(words):
    """The session that the server shows."""
    return Session(mini_bert.load("mini"), words, name="mini")


@pytest.fixture(scope="session")
def address(shown):
    from mini_bert.explorer.server import serving

    with serving(shown) as found:
        yield found


@pytest.fixture
def page(driver, address, shown):
    """A page 1300 pixels wide; afterwards the console is empty and the model as it was."""
    from browsing import Page

    made = Page(driver, address)
    made.width(1300)
    yield made
    shown.reset()
    made.check_quiet()
