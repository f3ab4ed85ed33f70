"""Texts longer than a model reads at once: the windows, and what commands make of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.inference.embed import embed
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.inference.score import score
from mini_bert.inference.windows import mean_of_windows, pair_parts, text_parts, windows
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = [f"w{i}" for i in range(40)]
TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])
MODEL = MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=16, vocab_size=45,
                             max_seq_length=12), seed=3)
LONG = " ".join(WORDS[:27])


@given(st.lists(st.integers(1, 5), max_size=60), st.integers(5, 12))
def test_every_unit_is_answered_for_once_by_a_window_that_shows_it(lengths, room):
    found = windows(lengths, room)
    assert [unit for window in found for unit in range(window.begin, window.end)] == list(range(len(lengths)))
    for window in found:
        assert window.first <= window.begin <= window.end <= window.last
        assert sum(lengths[window.first : window.last]) <= room
    assert (len(found) == 1) == (sum(lengths) <= room)


def test_a_unit_is_answered_for_where_it_is_further_from_the_edge():
    first, second = windows([1] * 15, 10)
    assert (first, second) == ((0, 10, 0, 7), (5, 15, 7, 15))


def test_parts_of_a_text_have_the_special_tokens_and_its_own_in_order():
    ids = TOKENIZER.ids(LONG)
    parts, cut = text_parts(ids, TOKENIZER, 12)
    assert not cut
    assert all(part.ids[0] == 2 and part.ids[-1] == 3 and len(part.ids) <= 12 for part in parts)
    owned = [part.ids[1 + part.window.begin - part.window.first : 1 + part.window.end - part.window.first]
             for part in parts]
    assert [i for some in owned for i in some] == ids
    assert [part.weight for part in parts] == [len(some) for some in owned]
    assert [part.ids for part in text_parts(ids[:10], TOKENIZER, 12).parts] == [TOKENIZER.encode(" ".join(WORDS[:10]))]
    assert [part.weight for part in text_parts([], TOKENIZER, 12).parts] == [1]


def test_of_a_pair_the_longer_text_is_in_windows_and_the_shorter_is_in_all_of_them():
    short, long = TOKENIZER.ids("w30 w31"), TOKENIZER.ids(LONG)
    for pair, place in (((short, long), slice(1, 3)), ((long, short), slice(-3, -1))):
        parts, cut = pair_parts(*pair, TOKENIZER, 12)
        assert not cut
        assert len(parts) > 1
        assert all(len(part.ids) <= 12 and part.ids[place] == short for part in parts)
        assert {i for part in parts for i in part.ids} >= set(long)
    parts, cut = pair_parts(long, long, TOKENIZER, 12)
    assert cut
    assert max(len(part.ids) for part in parts) <= 12


def test_the_mean_is_weighted_and_that_of_one_window_is_the_window_itself(rng):
    rows = rng.standard_normal((4, 3)).astype(np.float32)
    found = mean_of_windows(rows, [0, 1, 1, 2], [7, 3, 1, 11])
    assert np.array_equal(found[[0, 2]], rows[[0, 3]])
    np.testing.assert_allclose(found[1], (3 * rows[1] + rows[2]) / 4, rtol=1e-6)


def test_the_vector_of_a_long_text_is_the_weighted_mean_of_its_windows():
    parts = text_parts(TOKENIZER.ids(LONG), TOKENIZER, 12).parts
    each = np.stack([MODEL.encode(np.array([part.ids]))[0][0].mean(axis=0) for part in parts])
    expected = np.average(each, axis=0, weights=[part.weight for part in parts])
    found = embed(MODEL, TOKENIZER, ["w1 w2", LONG, "w3"], batch_size=2, normalise=False)
    np.testing.assert_allclose(found[1], expected, rtol=1e-5, atol=1e-6)
    done: list[int] = []
    embed(MODEL, TOKENIZER, ["w1 w2", LONG, "w3"], batch_size=2, progress=done.append)
    assert done == sorted(done)
    assert done[-1] == 3                                      # of the texts, not of the windows


def test_each_token_of_a_long_text_is_scored_in_its_window():
    (found,) = score(MODEL, TOKENIZER, [LONG])
    assert found.tokens == WORDS[:27]
    assert len(found.log_probabilities) == 27
    (beginning,) = score(MODEL, TOKENIZER, [" ".join(WORDS[:10])])
    assert found.log_probabilities[:7] == pytest.approx(beginning.log_probabilities[:7], rel=1e-5)


def test_each_mask_of_a_long_text_is_filled_in_its_window():
    words = [*WORDS[:26], "[MASK]"]
    words[3] = "[MASK]"
    first, last = fill_mask(MODEL, TOKENIZER, " ".join(words))
    (near,) = fill_mask(MODEL, TOKENIZER, " ".join(words[:10]))
    assert [c.token for c in first] == [c.token for c in near]
    assert [c.probability for c in first] == pytest.approx([c.probability for c in near], rel=1e-5)
    assert last[0].text == " ".join([*words[:26], last[0].token])
