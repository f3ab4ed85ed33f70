"""Heads built by hand get the right type and statistics."""

from math import log

import numpy as np
import pytest
from hand_built_models import pattern_model, small, tokenizer

from mini_bert import InputError
from mini_bert.analysis.attention.heads import (
    explore_attention_heads,
    head_type,
    punctuation_ids,
    query_key_terms,
)

TEXT = "the cat sat ."                    # six tokens with [CLS] and [SEP]; the queries are the four between


def test_hand_built_heads_get_their_types():
    report = explore_attention_heads(pattern_model(), tokenizer(), TEXT)
    assert [head.type for head in report.heads] == ["previous", "delimiter", "broad", "broad"]
    previous = report.head(0, 0)
    assert previous.previous == pytest.approx(1, abs=1e-9)
    assert previous.distance == pytest.approx(1, abs=1e-8)
    assert previous.entropy == pytest.approx(0, abs=1e-8)
    assert previous.cls == pytest.approx(1 / 4)           # the token before the first word
    to_sep = report.head(0, 1)
    assert [to_sep.sep, to_sep.delimiter] == pytest.approx([1, 1], abs=1e-9)
    assert to_sep.distance == pytest.approx((4 + 3 + 2 + 1) / 4)
    assert to_sep.next == pytest.approx(1 / 4)            # [SEP] follows the last word


def test_a_head_with_uniform_attention():
    head = explore_attention_heads(pattern_model(), tokenizer(), TEXT).head(1, 0)
    assert head.entropy == pytest.approx(log(6))
    assert head.normalised_entropy == pytest.approx(1)
    for figure in (head.diagonal, head.previous, head.next, head.cls, head.sep, head.punctuation):
        assert figure == pytest.approx(1 / 6)
    assert head.delimiter == pytest.approx(3 / 6)
    assert head.distance == pytest.approx(np.mean([np.abs(np.arange(6) - q).mean() for q in range(1, 5)]))
    # half of its weight is on delimiters, as for every head with uniform attention
    assert head.type == "broad"


def test_weight_on_the_same_word_elsewhere():
    head = explore_attention_heads(pattern_model(), tokenizer(), "the cat the").head(1, 1)
    assert head.same_word == pytest.approx((1 / 5 + 0 + 1 / 5) / 3)


def test_texts_are_weighted_by_their_queries():
    model, words = small(), tokenizer()
    texts = ["the cat sat on a mat .", "dog", "a big red dog , ran"]
    together = explore_attention_heads(model, words, [*texts, ""])
    alone = [explore_attention_heads(model, words, text) for text in texts]
    assert (together.queries, together.texts, together.empty, together.cut) == (14, 3, 1, 0)
    assert together.weights is None
    for figure in ("entropy", "distance", "previous", "punctuation", "sep"):
        got = [getattr(head, figure) for head in together.heads]
        mean = sum(np.array([getattr(head, figure) for head in one.heads]) * one.queries for one in alone) / 14
        np.testing.assert_allclose(got, mean, rtol=1e-9, atol=1e-12)


def test_one_text_comes_with_its_weights():
    report = explore_attention_heads(small(), tokenizer(), TEXT)
    assert report.tokens == ["[CLS]", "the", "cat", "sat", ".", "[SEP]"]
    assert report.weights.shape == (2, 2, 6, 6)
    np.testing.assert_allclose(report.weights.sum(axis=-1), 1)
    assert report.to_dict()["heads"][0]["type"] == report.heads[0].type


def test_a_text_can_be_masked():
    report = explore_attention_heads(small(), tokenizer(), TEXT, mask=[2])
    assert report.tokens[2] == "[MASK]"
    assert report.queries == 4            # [MASK] is a query like an ordinary token
    with pytest.raises(InputError, match="single text"):
        explore_attention_heads(small(), tokenizer(), [TEXT], mask=[2])


def test_long_texts_are_truncated_and_counted():
    report = explore_attention_heads(small(), tokenizer(), ["the cat " * 20])
    assert (report.cut, report.queries) == (1, 14)


def test_head_types_by_thresholds():
    figures = {"previous": 0.5, "next": 0.1, "diagonal": 0.6, "delimiter": 0.2, "normalised_entropy": 0.3}
    assert head_type(figures) == "diagonal"
    assert head_type({**figures, "diagonal": 0.1}) == "previous"
    assert head_type({**figures, "diagonal": 0.1, "previous": 0.499}) == "mixed"


def test_punctuation_is_found_by_unicode_category():
    vocabulary = tokenizer().vocabulary
    assert [vocabulary[i] for i in np.flatnonzero(punctuation_ids(vocabulary))] == [",", "."]


def test_a_score_by_dimension():
    found = query_key_terms(pattern_model(), tokenizer(), TEXT, 0, 0, query=3, key=2)
    assert (found.query, found.key) == ("sat", "cat")
    expected = np.zeros(8)
    expected[2] = 100 / np.sqrt(8)        # position 3 queries the unit vector of position 2
    np.testing.assert_allclose(found.terms, expected)
    assert found.score == pytest.approx(100 / np.sqrt(8))
    assert found.weight == pytest.approx(1)


def test_the_terms_add_up_to_the_models_score():
    model, words = small(), tokenizer()
    found = query_key_terms(model, words, TEXT, 1, 1, query=4, key=0)
    _, cache = model.encode(np.array([words.encode(TEXT)]))
    assert found.terms.sum() == pytest.approx(cache["scores_1"][0, 1, 4, 0])
    assert len(found.to_dict()["terms"]) == 8


@pytest.mark.parametrize("terms", ["rotary", "relative_keys(reach=3)", "t5_bias", "alibi", "segments + relative",
                                   "disentangled(reach=4, share=true, norm=true)", "rotary + causal"])
def test_the_terms_and_what_score_terms_add_are_the_models_score(terms):
    model, words = small(score_terms=terms), tokenizer()
    _, cache = model.encode(np.array([words.encode(TEXT)]))
    for key in (0, 3, 5):
        found = query_key_terms(model, words, TEXT, 1, 1, query=3, key=key)
        assert found.score == pytest.approx(cache["scores_1"][0, 1, 3, key])
        assert found.weight == cache["attention_weights_1"][0, 1, 3, key]
        if np.isfinite(found.score):
            assert found.terms.sum() + sum(found.biases.values()) == pytest.approx(found.score)
        else:
            assert key > 3
            assert found.weight == 0


def test_bad_input_is_refused():
    model, words = small(), tokenizer()
    with pytest.raises(InputError, match="no text with tokens"):
        explore_attention_heads(model, words, ["", ""])
    with pytest.raises(InputError, match="no head 2; choose 0 to 1"):
        query_key_terms(model, words, TEXT, 0, 2, 0, 0)
    with pytest.raises(InputError, match="no head 5"):
        explore_attention_heads(model, words, TEXT).head(0, 5)
