"""Pseudo-log-likelihoods against a direct computation, and with known models."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import ConfigError, InputError
from mini_bert.evaluation.zero_shot.pseudo_likelihood import (
    pseudo_log_likelihoods,
    read_sequences,
    single_piece,
    window,
)
from mini_bert.inference.score import score
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.workers import Workers

WORDS = ["the", "cat", "sat", "on", "mat", "un", "##aff", "##able", "."]
TEXTS = ["the cat sat on the mat.", "the cat", "unaffable cat.", "the cat sat.", "the cat", "the mat sat.", "mat"]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def model() -> MiniBERT:
    made = MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=14,
                                max_seq_length=10), dtype=np.float64)
    made.params.flat += 0.3 * np.random.default_rng(1).standard_normal(made.params.flat.size)
    return made


def log_probability(model: MiniBERT, tokenizer: WordPieceTokenizer, ids: list[int], masked: list[int], place: int):
    row = np.array([ids])
    row[0, masked] = tokenizer.vocabulary.mask
    logits = model.forward(row)[0][0, place]
    return logits[ids[place]] - np.log(np.exp(logits).sum())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_token_variant_equals_the_score_of_inference(model, tokenizer, threads):
    found = pseudo_log_likelihoods(model, tokenizer, TEXTS, threads=threads)
    expected = score(model, tokenizer, TEXTS)
    assert found.totals["token"] == pytest.approx([one.total for one in expected], abs=1e-9)
    assert found.pieces.tolist() == [len(one.tokens) for one in expected]
    assert (found.windowed, found.unknown) == (0, 0)


def test_a_model_that_only_knows_frequencies_gives_the_sum_of_their_logs(tokenizer):
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=14,
                                 max_seq_length=10), seed=None)               # all zeros but the bias
    probabilities = np.arange(1, 15) / 105
    model.params["mlm_head_b"][...] = np.log(probabilities)
    found = pseudo_log_likelihoods(model, tokenizer, TEXTS, variants=("token", "word"))
    expected = [np.log(probabilities[tokenizer.ids(text)]).sum() for text in TEXTS]
    assert found.totals["token"] == pytest.approx(expected, rel=1e-5)
    assert found.totals["word"].tolist() == found.totals["token"].tolist()


def test_the_word_variant_also_masks_the_later_pieces_of_the_word(model, tokenizer):
    text = "the unaffable cat"
    ids = tokenizer.encode(text)                              # [CLS] the un ##aff ##able cat [SEP]
    hidden = {1: [1], 2: [2, 3, 4], 3: [3, 4], 4: [4], 5: [5]}
    expected = sum(log_probability(model, tokenizer, ids, masked, place) for place, masked in hidden.items())
    found = pseudo_log_likelihoods(model, tokenizer, [text, "the cat"], variants=("word", "token"))
    assert found.totals["word"][0] == pytest.approx(expected)
    assert found.totals["word"][0] != pytest.approx(found.totals["token"][0])
    assert found.totals["word"][1] == found.totals["token"][1]
    assert found.rows == 5 + 2 + 2                            # two of the word's three rows differ


def test_equal_rows_are_computed_once(model, tokenizer):
    found = pseudo_log_likelihoods(model, tokenizer, ["the cat sat", "the mat sat", "the cat sat"])
    assert found.rows == 5                                    # both texts share the row the [MASK] sat
    assert found.totals["token"][0] == found.totals["token"][2]


def test_a_long_text_is_scored_in_windows(model, tokenizer):
    text = "the cat sat on the mat. the unaffable cat sat on the mat."
    ids, room = tokenizer.ids(text), 8
    expected = 0.0
    for place in range(len(ids)):
        start = min(max(place - 4, 0), len(ids) - room)
        part = tokenizer.with_special(ids[start : start + room])
        expected += log_probability(model, tokenizer, part, [place - start + 1], place - start + 1)
    found = pseudo_log_likelihoods(model, tokenizer, ["the cat", text, text])
    assert found.totals["token"][1:] == pytest.approx([expected] * 2)
    assert found.windowed == 2


def test_unknown_words_and_empty_texts_are_handled(model, tokenizer):
    found = pseudo_log_likelihoods(model, tokenizer, ["the zebra", "", "zebra zebra", "the"])
    assert found.unknown == 2
    assert found.totals["token"][1] == 0
    assert pseudo_log_likelihoods(model, tokenizer, []).totals["token"].tolist() == []


def test_progress_reaches_the_total(model, tokenizer):
    told = []
    pseudo_log_likelihoods(model, tokenizer, TEXTS, variants=("token", "word"),
                           progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (2 * sum(len(tokenizer.ids(text)) for text in set(TEXTS)),) * 2


def test_invalid_texts_and_variants_are_refused(model, tokenizer):
    with pytest.raises(InputError, match="put a single text into a list"):
        pseudo_log_likelihoods(model, tokenizer, "the cat")
    with pytest.raises(ConfigError, match=r"'words'.*token, word"):
        pseudo_log_likelihoods(model, tokenizer, TEXTS, variants=("words",))
    with pytest.raises(InputError, match="only 14"):
        pseudo_log_likelihoods(model, WordPieceTokenizer([*SPECIAL_TOKENS, *"abcdefghijkl"]), ["a"])


def test_masks_of_sequences_of_different_lengths_are_read_by_index(model, tokenizer):
    sequences = [tokenizer.encode(text) for text in TEXTS]
    found = {}

    def read(logits, numbers):
        found.update(zip(numbers.tolist(), logits, strict=True))

    read_sequences(model, sequences, [1] * len(sequences), read, Workers(1))
    for number, ids in enumerate(sequences):
        assert found[number] == pytest.approx(model.forward(np.array([ids]))[0][0, 1])


def test_windows_and_single_pieces(tokenizer):
    assert window([1, 2, 3], 1, 5) == ([1, 2, 3], 1)
    assert window(range(10), 0, 4) == ([0, 1, 2, 3], 0)
    assert window(range(10), 5, 4) == ([3, 4, 5, 6], 2)
    assert window(range(10), 9, 4) == ([6, 7, 8, 9], 3)
    assert single_piece(tokenizer, "Cat") == tokenizer.vocabulary.ids["cat"]
    assert [single_piece(tokenizer, word) for word in ("unaffable", "zebra", "", "[MASK]", "the cat")] == [None] * 5
