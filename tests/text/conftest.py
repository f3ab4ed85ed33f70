"""A small text, with a tokenizer and a corpus made from it."""

from collections.abc import Callable

import numpy as np
import pytest

from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "unaffable", "master",
         "who", "ran", "away"]


def _make_text(documents: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)

    def sentence() -> str:
        return " ".join(rng.choice(WORDS, rng.integers(4, 12))).capitalize() + "."

    return "\n\n".join("\n".join(" ".join(sentence() for _ in range(rng.integers(1, 5)))
                                 for _ in range(rng.integers(1, 6))) for _ in range(documents)) + "\n"


@pytest.fixture(scope="session")
def make_text() -> Callable[..., str]:
    """make_text(documents, seed) -> a text of this many documents."""
    return _make_text


@pytest.fixture(scope="session")
def text() -> str:
    return _make_text(60)


@pytest.fixture(scope="session")
def tokenizer(text) -> WordPieceTokenizer:
    return WordPieceTokenizer(learn_vocabulary(count_words(text.splitlines()), 80))


@pytest.fixture(scope="session")
def corpus(text, tokenizer, tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "text.txt").write_text(text)
    prepare([str(folder / "text.txt")], tokenizer, folder / "made", heldout=0.2, workers=1)
    return Corpus(folder / "made")
