"""Heads that follow dependency relations: built by hand, and against a slow definition."""

import numpy as np
import pytest
from hand_built_models import VARIANTS, build, pattern_model, small, tokenizer

from mini_bert import InputError
from mini_bert.analysis.attention.relations import (
    DIRECTIONS,
    attended_words,
    most_attended,
    relation_heads,
    word_attention,
)
from mini_bert.core.cache import of_every_layer
from mini_bert.errors import DataError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.probes.word_vectors import align_words

# "mats" is two pieces. `case` follows its head at once, `nsubj` is the word before its head, `det` is two before it.
SENTENCES = [Sentence(("the", "big", "mats", "sat", "on"), heads=(3, 3, 4, 0, 4),
                      relations=("det", "amod", "nsubj", "root", "case")),
             Sentence(("a", "red", "cat", "ran", "on"), heads=(3, 3, 4, 0, 4),
                      relations=("det:x", "amod", "nsubj:pass", "root", "case"))] * 4


def test_a_head_that_attends_to_the_word_before_follows_what_stands_there():
    report = relation_heads(pattern_model(), tokenizer(), SENTENCES, threads=1)
    assert (report.sentences, report.left_out) == (8, 0)
    found = {(one.relation, one.direction): one for one in report.heads}
    assert found.keys() == {(name, way) for name in ("det", "amod", "nsubj", "case") for way in DIRECTIONS}
    case = found["case", DIRECTIONS[0]]                       # its head is the word before
    assert (case.layer, case.head, case.accuracy.mean, case.accuracy.values) == (0, 0, 1.0, 4)
    assert (case.offset, case.baseline.mean) == (-1, 1.0)
    nsubj = found["nsubj", DIRECTIONS[1]]                     # and the verb's subject is the word before the verb
    assert (nsubj.layer, nsubj.head, nsubj.accuracy.mean, nsubj.offset) == (0, 0, 1.0, -1)
    assert found["amod", DIRECTIONS[0]].every_head[0, 0] == 0         # whose head is the word behind
    assert found["det", DIRECTIONS[0]].offset == 2
    head, place = report.best("case")
    assert head is place is case
    with pytest.raises(InputError, match="no relation 'obj'"):
        report.best("obj")


def test_the_head_is_chosen_on_one_half_and_measured_on_the_other():
    sentences = [Sentence(("the", "cat", "sat", "."), heads=(2, 3, 0, 3), relations=("det", "nsubj", "root", "punct")),
                 Sentence((".", "mat", "a"), heads=(2, 0, 2), relations=("punct", "root", "det"))] * 10
    report = relation_heads(small(), tokenizer(), sentences, seed=3, threads=1)
    for one in report.heads:
        assert one.accuracy.mean == pytest.approx(one.every_head[one.layer, one.head])
    det = next(one for one in report.heads if (one.relation, one.direction) == ("det", DIRECTIONS[0]))
    assert det.accuracy.values == 10
    assert det.offset in (1, -1)
    assert det.baseline.mean == pytest.approx(1 - det.offset_chosen)      # 20 words, 10 of them at each place
    again = relation_heads(small(), tokenizer(), sentences, seed=3, threads=2)
    assert [one.accuracy for one in again.heads] == [one.accuracy for one in report.heads]
    others = [relation_heads(small(), tokenizer(), sentences, seed=other, threads=1) for other in range(4)]
    assert len({found.heads[0].baseline for found in others}) > 1             # another seed, other halves


def test_attention_of_words_is_that_of_their_pieces_by_definition():
    model, words = small(), tokenizer()
    sentences = [["the", "mats", "sat"], ["cats", "ran", "on", "dogs"], ["a"]]
    alignment = align_words(words, sentences, 16)
    found = attended_words(model, words, alignment, threads=1)
    first = 0
    for sentence in sentences:
        ids = [words.word_ids(word) for word in sentence]
        _, cache = model.encode(np.array([words.with_special([piece for word in ids for piece in word])]))
        starts = 1 + np.cumsum([0, *map(len, ids)])
        for layer, weights in enumerate(of_every_layer(cache, "attention_weights", 2)):
            for u in range(len(ids)):
                given = np.array([[weights[0, head, starts[u] : starts[u + 1], starts[v] : starts[v + 1]].sum()
                                   / len(ids[u]) if u != v else -1 for v in range(len(ids))] for head in range(2)])
                expected = given.argmax(axis=1) + first if len(ids) > 1 else -1
                assert np.array_equal(found[first + u, layer], np.broadcast_to(expected, 2))
        first += len(ids)


def test_a_words_attention_adds_up_to_one_and_itself_is_no_answer():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(5), (1, 2, 5))
    pieces = np.array([[[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]]], float)
    assert np.allclose(word_attention(weights, pieces).sum(axis=-1), 1)
    assert most_attended(np.array([[[[0.9, 0.1], [0.0, 1.0]]]])).tolist() == [[[1, -1]]]


@pytest.mark.parametrize("name", sorted(VARIANTS)[::3])
def test_every_model_with_attention_answers(name):
    config = VARIANTS[name]
    model = build(config, np.float32)
    names = [f"attention_weights_{layer}" for layer in range(config.num_layers)]
    alignment = align_words(tokenizer(), [["the", "cat"], ["a", "mats"]], config.max_seq_length)
    if all(known in model.encode(np.array([[2, 5, 6, 3]]))[1] for known in names):
        found = attended_words(model, tokenizer(), alignment, threads=1)
        assert found.shape == (4, config.num_layers, config.num_heads)
        assert found.max() < 4
    else:
        with pytest.raises(InputError, match="no attention of this kind"):
            attended_words(model, tokenizer(), alignment, threads=1)


def test_sentences_that_do_not_fit_are_left_out_and_others_are_refused():
    long = Sentence(("the",) * 20, heads=(0, *[1] * 19), relations=("root", *["det"] * 19))
    report = relation_heads(pattern_model(), tokenizer(), [*SENTENCES, long], threads=1)
    assert (report.sentences, report.left_out) == (8, 1)
    with pytest.raises(DataError, match=r"0 of 1 sentences fit into the model's 8 tokens"):
        relation_heads(pattern_model(), tokenizer(), [long])
    with pytest.raises(DataError, match="no heads or no relations"):
        relation_heads(small(), tokenizer(), [Sentence(("the", "cat"))] * 2)
