"""Splitting paragraphs into sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert.text.corpora.sentences import split_sentences


@pytest.mark.parametrize(("paragraph", "expected"), [
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("He met Dr. Smith of the U.S. Army. It rained.", ["He met Dr. Smith of the U.S. Army.", "It rained."]),
    ("J. R. Tolkien wrote it. Yes.", ["J. R. Tolkien wrote it.", "Yes."]),
    ('"Really?" she said. "No." He left.', ['"Really?" she said.', '"No."', "He left."]),
    ("It cost 3.5 million. 200 came.", ["It cost 3.5 million.", "200 came."]),
    ("see e.g. this one. and that", ["see e.g. this one. and that"]),
    ("", [""]),
])
def test_examples(paragraph, expected):
    assert split_sentences(paragraph) == expected


@given(st.text())
def test_only_spaces_are_lost(paragraph):
    assert "".join("".join(split_sentences(paragraph)).split()) == "".join(paragraph.split())
