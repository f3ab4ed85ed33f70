"""Extending a vocabulary, and a model with it."""

import numpy as np
import pytest

from mini_bert import ConfigError, MiniBERT, ModelConfig, VocabularyError
from mini_bert.text.wordpiece.grow import grow_vocabulary
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.grow import grow_model

TEXT = ["the cat sat on the mat and ran to the castle"] * 10


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(learn_vocabulary(count_words(TEXT), 60))


def test_frequent_words_of_several_pieces_become_one_piece(tokenizer):
    words = {"castlemat": 30, "homoeopathy": 25, "castlemats": 100, "cat": 500, "meadow": 3}
    grown = grow_vocabulary(tokenizer, words, 3)
    assert grown.vocabulary.pieces[: len(tokenizer)] == tokenizer.vocabulary.pieces
    assert set(grown.vocabulary.pieces[len(tokenizer) :]) == {"castlemats", "homoeopathy", "castlemat"}
    assert grown.tokenize("The castlemats") == ["the", "castlemats"]
    assert tokenizer.tokenize("homoeopathy") == ["[UNK]"]              # it has unknown letters
    assert grown.tokenize("homoeopathy") == ["homoeopathy"]
    assert len(grow_vocabulary(tokenizer, words, 1)) == len(tokenizer) + 1
    assert len(grow_vocabulary(tokenizer, words, 0)) == len(tokenizer)


def test_a_negative_number_of_words_is_refused(tokenizer):
    with pytest.raises(VocabularyError, match="at least 0"):
        grow_vocabulary(tokenizer, {}, -1)


@pytest.mark.parametrize("head", ["plain", "bert"])
def test_a_grown_model_gives_the_same_logits_for_old_words(tokenizer, head, rng):
    config = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=len(tokenizer),
                         max_seq_length=12, mlm_head=head, init_std=0.3)
    model = MiniBERT(config, seed=1)
    model.params["mlm_head_b"][...] = rng.standard_normal(len(tokenizer))
    grown_tokenizer = grow_vocabulary(tokenizer, {"castlemats": 30}, 5)
    grown = grow_model(model, tokenizer, grown_tokenizer)
    ids = rng.integers(5, len(tokenizer), (2, 10))
    np.testing.assert_allclose(grown.forward(ids)[0][..., :-1], model.forward(ids)[0], atol=1e-6)
    pieces = tokenizer.ids("castlemats")
    np.testing.assert_allclose(grown.params["token_embeddings"][-1],
                               model.params["token_embeddings"][pieces].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(grown.params["mlm_head_b"][-1], model.params["mlm_head_b"][pieces].mean(), rtol=1e-4)


def test_a_vocabulary_with_another_order_is_refused(tokenizer):
    model = MiniBERT(ModelConfig(num_layers=1, num_heads=1, hidden_size=4, intermediate_size=4, vocab_size=60))
    other = WordPieceTokenizer([*reversed(tokenizer.vocabulary.pieces)])
    with pytest.raises(ConfigError, match="does not begin with the old one"):
        grow_model(model, tokenizer, other)
