"""A small model, models with heads, and the model that ships."""

import pytest

import mini_bert
from mini_bert import WordPieceTokenizer
from mini_bert.api.pipeline import Pipeline
from mini_bert.text.vocabulary import SPECIAL_TOKENS

# the helpers need starlette, without which each test that uses them is skipped, and says why


@pytest.fixture(scope="session")
def tokenizer():
    from asking import WORDS

    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="session")
def small(tokenizer):
    from asking import small_model

    return Pipeline("small", small_model(), tokenizer, threads=1)


@pytest.fixture(scope="session")
def films(tokenizer):
    from asking import with_head

    return with_head("films", tokenizer, ["bad", "fair", "good"], pairs=False)


@pytest.fixture(scope="session")
def ranker(tokenizer):
    from asking import with_head

    return with_head("ranker", tokenizer, ["relevance"], pairs=True)


@pytest.fixture
def ask(small):
    from asking import asked_of

    with asked_of(small) as asked:
        yield asked


@pytest.fixture(scope="session")
def mini():
    return mini_bert.pipeline("mini", threads=1)
