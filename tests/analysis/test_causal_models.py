"""What the analyses ask of a causal model: a word is found in the row before its own, and nothing is masked."""

import numpy as np
import pytest
from hand_built_models import small, tokenizer

from mini_bert import InputError
from mini_bert.analysis import explain_prediction, lens_of_text, step_through_backward_pass
from mini_bert.analysis.passes.sequences import masked_sentence, read_sentence
from mini_bert.core.ops.softmax import softmax_forward
from mini_bert.text.byte_bpe.learn import count_words, learn_tokenizer

TEXT = "the cat sat on the mat ."


@pytest.fixture(scope="module")
def model():
    return small(score_terms="causal", max_seq_length=32)


def test_a_word_is_found_in_the_row_before_it(model):
    words = tokenizer()
    ids = words.encode(TEXT)
    passed = step_through_backward_pass(model, words, TEXT, mask=[3])
    assert passed.forward.ids.tolist() == ids                              # it cannot see the word, so it stays
    assert passed.targets == {2: ids[3]}
    expected = softmax_forward(model.forward(np.array([ids]))[0][0, 2])[0][ids[3]]
    assert passed.loss == pytest.approx(-np.log(expected))
    assert not passed["dhidden_0"].array[3:].any()                         # nothing flows back from what comes later


def test_words_to_find_are_chosen_with_something_before_them(model):
    words = tokenizer()
    assert set(masked_sentence(model, words, TEXT).targets.items()) < set(enumerate(words.encode(TEXT)[1:]))
    with pytest.raises(InputError, match="nothing comes before it"):
        read_sentence(model, words, TEXT, targets={0: "cat"})


def test_a_prediction_is_explained_by_what_comes_before_alone(model):
    found = explain_prediction(model, tokenizer(), TEXT, 3, "sat")
    assert found.position == 3
    assert found.attributions[:3].any()
    assert not found.attributions[3:].any()
    assert lens_of_text(model, tokenizer(), TEXT, mask=[3]).positions == [2]


def test_a_vocabulary_without_a_mask_is_enough():
    words = learn_tokenizer(count_words([TEXT] * 3), 262, layout="gpt2")
    model = small(score_terms="causal", vocab_size=len(words), max_seq_length=32)
    ids = words.encode(TEXT)
    assert step_through_backward_pass(model, words, TEXT, mask=[1]).targets == {0: ids[1]}
    found = explain_prediction(model, words, TEXT, 2, ids[2])
    assert found.attributions[:2].any()
    assert not found.attributions[2:].any()
