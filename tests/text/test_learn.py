"""Learning a vocabulary: worked examples, and agreement with a slow reference implementation."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from larger_bert import LARGER_BERT_CONFIG
from larger_bert.train import LargerBERTTrainer
from mini_bert import MiniBERT, ModelFactory, VocabularyError
from mini_bert.text.corpora import pydocs
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary


def slow_reference(words: dict[str, int], vocab_size: int, min_frequency: int) -> list[str]:
    """By definition: count all pairs, merge the most frequent one, repeat."""
    letters = sorted({letter for word in words for letter in word})
    inside = sorted({letter for word in words for letter in word[1:]})
    pieces = [*SPECIAL_TOKENS, *letters, *("##" + letter for letter in inside)]
    spelled = {word: [word[0], *("##" + letter for letter in word[1:])] for word in words}
    while len(pieces) < vocab_size:
        pairs: Counter = Counter()
        for word, symbols in spelled.items():
            for pair in pairwise(symbols):
                pairs[pair] += words[word]
        if not pairs:
            break
        a, b = min(pairs, key=lambda pair: (-pairs[pair], pieces.index(pair[0]), pieces.index(pair[1])))
        if pairs[a, b] < min_frequency:
            break
        merged = a + b.removeprefix("##")
        if merged not in pieces:
            pieces.append(merged)
        for symbols in spelled.values():
            i = 0
            while i < len(symbols) - 1:
                if (symbols[i], symbols[i + 1]) == (a, b):
                    symbols[i : i + 2] = [merged]
                i += 1
    return pieces


@given(st.dictionaries(st.text("abc", min_size=1, max_size=8), st.integers(1, 20), min_size=1, max_size=12),
       st.integers(12, 60), st.integers(1, 4))
def test_it_agrees_with_the_slow_reference(words, vocab_size, min_frequency):
    assert list(learn_vocabulary(words, vocab_size, min_frequency=min_frequency)) == \
        slow_reference(words, vocab_size, min_frequency)


def test_the_most_frequent_pair_comes_first():
    vocabulary = learn_vocabulary({"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}, 19)
    assert list(vocabulary)[-4:] == ["##u", "##ug", "##un", "hug"]


def test_runs_of_one_letter_merge_from_the_left():
    vocabulary = learn_vocabulary({"aaaaa": 3}, 9, min_frequency=1)
    assert list(vocabulary)[5:] == ["a", "##a", "##aa", "aaa"]


def test_words_are_counted_after_normalisation():
    counts = count_words(["The cat, the CAT.", "Thé"])
    assert counts == {"the": 3, "cat": 2, ",": 1, ".": 1}
    assert count_words(["Thé cat"], lowercase=False) == {"Thé": 1, "cat": 1}


def test_memory_limits_do_not_change_the_counts(monkeypatch):
    texts = ["the cat sat on the mat " * 3, "a cat, a mat; the end " * 2]
    whole = count_words(texts)
    monkeypatch.setattr("mini_bert.text.wordpiece.learn._CHUNKS_IN_MEMORY", 2)
    assert count_words(texts) == whole


def test_rare_characters_are_left_out():
    words = {"cat": 5, "ca☃": 1}
    vocabulary = learn_vocabulary(words, 30, alphabet_limit=3)
    assert "☃" not in vocabulary.ids
    assert "cat" in vocabulary.ids


def test_the_order_of_the_text_does_not_matter():
    words = {f"{a}{b}{c}": 1 + (ord(a) * ord(b)) % 7 for a in "abcd" for b in "efgh" for c in "ijkl"}
    names = list(words)
    np.random.default_rng(0).shuffle(names)
    assert list(learn_vocabulary(words, 60)) == list(learn_vocabulary({name: words[name] for name in names}, 60))


def test_progress_is_reported():
    seen: list[int] = []
    learn_vocabulary({"abc": 5, "abd": 5}, 14, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] <= 14


def test_invalid_sizes_and_empty_texts_are_refused():
    with pytest.raises(VocabularyError, match="no words"):
        learn_vocabulary({}, 100)
    with pytest.raises(VocabularyError, match="too small"):
        learn_vocabulary({"abcdefgh": 5}, 10)


def test_a_vocabulary_that_the_text_is_too_short_for_is_said(monkeypatch):
    monkeypatch.setattr(pydocs, "pydocs", lambda: iter(["the cat sat on the mat"] * 3))
    with pytest.warns(UserWarning, match=r"words for 26 pieces, fewer than the 50,000 .* --vocab-size 50000"):
        made = LargerBERTTrainer(MiniBERT(LARGER_BERT_CONFIG, seed=None)).load_tokenizer()
    assert len(made) == 26
    assert len(ModelFactory.create_tokenizer(20)) == 20           # and no warning, which would be an error
