"""Compositional tests on predictors with known behaviour."""

import json

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import DataError
from mini_bert.evaluation.representations.composition import (
    Contrast,
    Phrase,
    built_in_cases,
    measure_compositional_understanding,
)
from mini_bert.text.vocabulary import SPECIAL_TOKENS

CASES = built_in_cases()
TEXTS = [text for case in CASES for text in (case[1:] if isinstance(case, Contrast) else case[:2])]
WORDS = sorted({word for text in TEXTS for word in text.lower().replace("[mask]", "").replace(".", " ").split()})
PIECES = [*SPECIAL_TOKENS, ".", *WORDS]
SIZES = {"num_layers": 1, "num_heads": 1, "hidden_size": 16, "intermediate_size": 16, "vocab_size": len(PIECES),
         "max_seq_length": 24}
CONTRASTS = [case for case in CASES if isinstance(case, Contrast)]
PHRASES = [case for case in CASES if isinstance(case, Phrase)]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(PIECES)


class Rule(MiniBERT):
    """Not a network: `answer(words)` returns the words with a high score at the mask."""

    answer = None

    def forward(self, ids, mask=None, *, positions, **_):
        logits = np.zeros((len(ids), self.config.vocab_size))
        for row, numbers in enumerate(ids):
            for word in self.answer([PIECES[i] for i in numbers]):
                logits[row, PIECES.index(word)] = 50
        return logits, None


def scores(answer, tokenizer, cases=CONTRASTS):
    model = Rule(ModelConfig(**SIZES))
    model.answer = answer
    return measure_compositional_understanding(model, tokenizer, cases).categories


OPPOSITE = {(case.first_answer, case.second_answer) for case in CONTRASTS if case.category == "negation"}


def negates(words):
    said = words[words.index(".") - 1]
    return {a for a, b in OPPOSITE if b == said} if "not" in words else {said}


def any_adverb_negates(words):
    said = words[words.index(".") - 1]
    return {a for a, b in OPPOSITE if b == said} if {"not", "still"} & set(words) else {said}


def parses(words):
    words = words[1 : words.index(".")]
    if "and" in words:
        return set()
    return {words[1]} if "by" in words else {words[-1]}


def copies_the_last_noun(words):
    end = words.index(".")
    return {words[end - 2] if "came" in words else words[end - 1]}


def test_a_predictor_that_negates_scores_one_and_its_control_one_half(tokenizer):
    found = scores(negates, tokenizer)["negation"]
    assert (found.score.mean, found.chance, found.control) == (1, 0.5, 0.5)
    assert found.change > 0.5
    assert found.control_change == pytest.approx(0, abs=1e-6)
    assert found.cases == sum(case.category == "negation" for case in CASES)


def test_a_predictor_that_any_adverb_negates_fails_the_control(tokenizer):
    found = scores(any_adverb_negates, tokenizer)["negation"]
    assert (found.score.mean, found.control) == (0.5, 1)


def test_a_parser_solves_word_order_and_a_copier_gets_chance(tokenizer):
    found = scores(parses, tokenizer)["word order"]
    assert (found.score.mean, found.control) == (1, 0.5)
    assert found.change > found.control_change == pytest.approx(0, abs=1e-6)
    copied = scores(copies_the_last_noun, tokenizer)["word order"]
    assert (copied.score.mean, copied.control) == (0.5, 1)
    first = scores(lambda words: {words[2]}, tokenizer)["word order"]
    assert (first.score.mean, first.control) == (0.5, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bag_of_words_gets_exactly_one_half_for_word_order(tokenizer, dtype):
    model = MiniBERT(ModelConfig(**{**SIZES, "position_embeddings": "none"}), dtype=dtype)
    found = measure_compositional_understanding(model, tokenizer).categories["word order"]
    assert found.score.mean == found.random_init == found.control == 0.5
    assert found.change == pytest.approx(0, abs=1e-5)


def test_the_built_in_cases_are_balanced():
    """Both texts of a word-order case have the same words, and each noun is the answer as often as the other."""
    for case in CONTRASTS:
        assert case.first != case.second
        assert case.first_answer != case.second_answer
        assert all(text.count("[MASK]") == 1 for text in case[1:3] + case[5:7])
        if case.category == "word order":
            assert sorted(case.first.replace(".", " ").split()) == sorted(case.second.replace(".", " ").split())
    answers = [case.first_answer for case in CONTRASTS if case.category == "word order"]
    others = [case.second_answer for case in CONTRASTS if case.category == "word order"]
    assert sorted(answers) == sorted(others)
    assert len(set(PHRASES)) == len(PHRASES)


def phrase_model(attends: bool) -> MiniBERT:
    """Every token has its own direction; with attention, each also gets the mean of all tokens."""
    V = len(PIECES)
    model = MiniBERT(ModelConfig(**{**SIZES, "hidden_size": V, "position_embeddings": "none"}), dtype=np.float64)
    for name in model.params:
        if name.startswith(("W_", "W1", "W2")):
            model.params[name][...] = 0
    model.params["token_embeddings"][...] = np.eye(V)
    if attends:
        model.params["W_V_0"][...] = model.params["W_O_0"][...] = np.eye(V)
    return model


def test_a_noun_contains_its_adjective_only_through_attention(tokenizer):
    without = measure_compositional_understanding(phrase_model(False), tokenizer, PHRASES).categories
    assert without["phrases"].score.mean == 1         # which is why this score says little
    assert without["phrases, noun alone"].score.mean == 0.5
    attending = measure_compositional_understanding(phrase_model(True), tokenizer, PHRASES).categories
    found = attending["phrases, noun alone"]
    assert found.by_layer == {"embeddings": 0.5, "hidden_0": 1, "final_hidden": 1}
    assert found.cases == len(PHRASES)


def test_phrases_that_share_a_word_are_not_controls_of_each_other(tokenizer):
    shared = [Phrase("old", "house"), Phrase("old", "man"), Phrase("young", "house"), Phrase("red", "flower")]
    found = measure_compositional_understanding(phrase_model(True), tokenizer, shared).categories
    assert found["phrases"].score.mean == found["phrases, noun alone"].score.mean == 1


def test_words_missing_from_the_vocabulary_are_left_out_and_listed(tokenizer):
    fewer = WordPieceTokenizer([piece for piece in PIECES if piece not in ("closed", "widow")])
    model = MiniBERT(ModelConfig(**SIZES))
    found = measure_compositional_understanding(model, fewer)
    assert found.categories["negation"].left_out == ["closed/open"]
    assert found.categories["phrases"].left_out == ["poor widow"]
    everything = measure_compositional_understanding(model, tokenizer).categories
    assert found.categories["negation"].cases == everything["negation"].cases - 1
    assert list(json.loads(json.dumps(found.to_dict()))["categories"]) == \
        ["negation", "word order", "phrases", "phrases, noun alone"]


def test_built_in_categories_that_cannot_be_tested_are_left_out_with_the_reason(tokenizer):
    headless = MiniBERT(ModelConfig(**SIZES, mlm_head="none"))
    found = measure_compositional_understanding(headless, tokenizer)
    assert list(found.categories) == ["phrases", "phrases, noun alone"]
    assert list(found.left_out) == ["negation", "word order"]
    assert "no MLM head" in found.left_out["negation"]
    with pytest.raises(DataError, match="no MLM head"):
        measure_compositional_understanding(headless, tokenizer, CONTRASTS)
    with pytest.raises(DataError, match="No built-in case can be tested"):
        measure_compositional_understanding(headless, WordPieceTokenizer([*SPECIAL_TOKENS, "unheard"]))


def test_cases_that_cannot_be_used_are_refused(tokenizer):
    model = MiniBERT(ModelConfig(**SIZES))
    case = CONTRASTS[0]
    for cases, error, words in (
            ([], InputError, "test_cases must be"), (["text"], InputError, "test_cases must be"),
            ([case._replace(first="no mask")], DataError, "exactly one"),
            ([case._replace(first="the " * 30 + "[MASK]")], DataError, "the model takes 24"),
            ([case._replace(first_answer="unheard")], DataError, "No case of 'negation'"),
            ([PHRASES[0]], DataError, "two adjectives"),
            ([case, PHRASES[0]._replace(category="negation")], InputError, "both contrasts and phrases")):
        with pytest.raises(error, match=words):
            measure_compositional_understanding(model, tokenizer, cases)
