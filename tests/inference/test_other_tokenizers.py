"""Masks, vectors and scores with a tokenizer whose special tokens are not BERT's."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.inference.embed import embed
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.inference.score import score
from mini_bert.text.byte_bpe.learn import count_words, learn_tokenizer

TEXTS = ["the other mother bathes", "the brother is not the other"]


@pytest.fixture(scope="module")
def tokenizer():
    return learn_tokenizer(count_words(TEXTS * 3), 290, layout="roberta")


@pytest.fixture(scope="module")
def model(tokenizer):
    return MiniBERT(ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=8,
                                vocab_size=len(tokenizer), max_seq_length=16))


@pytest.mark.parametrize("name", ["[MASK]", "<mask>"])
def test_a_mask_is_filled_under_either_name(model, tokenizer, name):
    found = fill_mask(model, tokenizer, f"the {name} is", top=3)
    assert [len(candidates) for candidates in found] == [3]
    for candidate in found[0]:
        assert tokenizer.vocabulary.ordinary[candidate.id]
        assert "<" not in candidate.text.replace(candidate.token, "")


def test_texts_have_vectors_and_scores(model, tokenizer):
    assert embed(model, tokenizer, [*TEXTS, "the " * 40]).shape == (3, 8)
    scores = score(model, tokenizer, ["the other"])
    assert scores[0].tokens == tokenizer.tokenize("the other")
    assert np.isfinite(scores[0].total)
