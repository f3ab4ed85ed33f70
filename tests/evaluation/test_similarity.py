"""Similarity and analogies of hand-made vectors."""

from pathlib import Path

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import DataError, InputError
from mini_bert.evaluation.formats.words import Analogies, Similarity, read_words
from mini_bert.evaluation.ranking import ranks
from mini_bert.evaluation.ranking import spearman_interval as spearman
from mini_bert.evaluation.representations.similarity import (
    STATIC,
    analogy_answers,
    contextual_vectors,
    probe_semantic_knowledge,
    static_vectors,
    words_alone,
    words_in_text,
)
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.workers import Workers

WORDSIM = Path(__file__).parents[3] / "shared" / "data" / "eval" / "wordsim"
WORDS = ["man", "woman", "king", "queen", "boy", "girl", "sun", "##day", "the", "runs", "."]
ANALOGY = ": family\nman woman king queen\nman woman boy girl\n: days\nMan Woman Sunday zebra\n"


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def model(tokenizer) -> MiniBERT:
    made = MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=16,
                                max_seq_length=8))
    for word, vector in {"man": [1, 0, 0], "woman": [1, 1, 0], "king": [1, 0, 3], "queen": [1, 1, 3],
                         "boy": [3, 0, 1], "girl": [3, 1, 1], "sun": [0, 0, 1], "##day": [0, 5, 0]}.items():
        made.token_embeddings[tokenizer.vocabulary.ids[word]] = [*vector, 0, 0, 0, 0, 0]
    return made


def test_ranks_and_spearman_with_ties():
    assert ranks(np.array([10, 30, 20, 20])).tolist() == [1, 4, 2.5, 2.5]
    assert spearman([1, 2, 3, 4], [1, 3, 2, 4]).mean == pytest.approx(0.8)
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]).mean == pytest.approx(4.5 / np.sqrt(4.5 * 5))
    assert spearman([1, 2, 3], [9, 4, 1]).mean == -1
    assert spearman([1, 1, 1], [1, 2, 3]) is None
    found = spearman(np.arange(100), np.roll(np.arange(100), 10))
    assert -1 < found.low < found.mean < found.high < 1
    with pytest.raises(InputError, match="3 values cannot be correlated with 2"):
        spearman([1, 2, 3], [1, 2])


def test_analogies_never_answer_with_a_word_of_the_question():
    vectors = np.array([[1, 0.1, 0], [1, 1, 0], [1, 0, 3], [1, 1, 3], [1, 0, 2.9]])
    answer, nearest = analogy_answers(vectors, np.array([[0, 1, 2]]))
    assert (answer.tolist(), nearest.tolist()) == ([3], [4])


def test_the_static_vector_is_the_mean_of_the_pieces(model, tokenizer):
    found = static_vectors(model, [tuple(tokenizer.ids("sunday")), tuple(tokenizer.ids("man"))])
    assert found[:, :3].tolist() == [[0, 2.5, 0.5], [1, 0, 0]]


def test_contextual_vectors_are_means_over_pieces_and_contexts(model, tokenizer):
    text = ["The man runs. The sunday man. SUNDAY runs. The sundays.", "man the woman the king the queen the boy."]
    words = [tuple(tokenizer.ids(word)) for word in ("sunday", "man", "girl")]
    where = words_in_text(text, tokenizer, words, model.config.max_seq_length)
    assert [tokenizer.decode(ids, skip_special_tokens=True) for ids in where.sequences] == [
        "the sunday man.", "sunday runs.", "the man runs.", "the sunday man.", "man the woman the king the"]
    assert where.places == [(2, 4), (1, 3), (2, 3), (4, 5), (1, 2)]
    found = contextual_vectors(model, where, 3, [0, 1, 2], Workers(2))
    parts = []
    for ids, (start, end) in zip(where.sequences[:2], where.places[:2], strict=True):
        hidden, cache = model.encode(np.array([ids]))
        parts.append([layer[0, start:end].mean(axis=0) for layer in (cache["embeddings"], cache["hidden_0"], hidden)])
    for layer in range(3):
        assert found[str(layer)][0] == pytest.approx(np.mean([part[layer] for part in parts], axis=0), abs=1e-5)
    assert not found["1"][2].any()                            # girl is not in the text


def test_contexts_are_drawn_by_the_seed(tokenizer):
    words = [tuple(tokenizer.ids("man"))]
    text = [f"The man runs {'the ' * n}." for n in range(5)] * 3
    first, again, other = (words_in_text(text, tokenizer, words, 20, most=4, seed=seed) for seed in (0, 0, 1))
    assert first.sequences == again.sequences != other.sequences
    assert len(first.sequences) == 4


def test_a_word_alone_is_a_sentence(model, tokenizer):
    where = words_alone(tokenizer, [tuple(tokenizer.ids("sunday"))], 8)
    found = contextual_vectors(model, where, 1, [2], Workers(1))
    hidden, _ = model.encode(np.array([tokenizer.encode("sunday")]))
    assert found["2"][0] == pytest.approx(hidden[0, 1:3].mean(axis=0), abs=1e-5)


def test_the_semantic_probe(model, tokenizer, tmp_path):
    (tmp_path / "pairs.txt").write_text("man\twoman\t9\nking\tqueen\t10\nsun\tking\t5\nsunday\tman\t1\nzebra\tman\t3\n")
    (tmp_path / "questions.txt").write_text(ANALOGY)
    (tmp_path / "text.txt").write_text("The man runs. The woman runs.\nThe king, the queen. Sunday.\n")
    names = [tmp_path / "pairs.txt", tmp_path / "questions.txt"]
    found = probe_semantic_knowledge(model, tokenizer, names)
    static = found.similarity[0]
    # cosines 0.707, 0.953, 0.949 and 0 against 9, 10, 5 and 1: two neighbours of four change places
    assert static.spearman.mean == pytest.approx(0.8)
    assert (static.layer, static.pairs, static.left_out, static.several_pieces) == (STATIC, 4, 1, 1)
    assert [score.layer for score in found.similarity] == [STATIC, "0", "1", "2"]
    family = next(score for score in found.analogies if score.section == "family" and score.layer == STATIC)
    total = next(score for score in found.analogies if score.section is None and score.layer == STATIC)
    assert (family.accuracy.mean, family.questions, family.left_out) == (1, 2, 0)
    assert (total.accuracy.mean, total.questions, total.left_out) == (1, 2, 1)
    assert total.candidates == family.candidates == 7             # zebra is unknown, Man is man
    assert found.to_dict()["analogies"][0]["candidates"] == 7
    assert (found.words, found.without_context, found.sentences) == (12, 0, 0)            # Man is another spelling
    read = probe_semantic_knowledge(model, tokenizer, names, text=[str(tmp_path / "text.txt")], layers=[2])
    assert [score.layer for score in read.similarity] == [STATIC, "2"]
    assert read.similarity[0] == static
    assert (read.similarity[1].pairs, read.similarity[1].left_out) == (3, 2)  # the sun is not in the text
    assert (read.sentences, read.without_context) == (5, 3)
    assert probe_semantic_knowledge(model, tokenizer, names, max_samples=2, seed=4) == \
        probe_semantic_knowledge(model, tokenizer, names, max_samples=2, seed=4)


def test_files_are_read_by_their_format(tmp_path):
    (tmp_path / "a.txt").write_text("old\tnew\t1.5\n\n")
    (tmp_path / "b.txt").write_text("old new 1.5\n")
    (tmp_path / "c.txt").write_text(ANALOGY)
    assert read_words(tmp_path / "a.txt") == Similarity("a", [("old", "new")], [1.5])
    assert read_words(tmp_path / "b.txt").scores == [1.5]
    found = read_words(tmp_path / "c.txt")
    assert isinstance(found, Analogies)
    assert found.sections == ["family", "family", "days"]


@pytest.mark.parametrize(("text", "words"), [
    ("old new 1\nold new\n", "line 2: it has 2 columns, not 3"),
    ("old new high\n", "line 1: the score is 'high', not a number"),
    ("old new nan\n", "line 1: the score is 'nan'"),
    (": a\none two three\n", "line 2: it has 3 words, not 4"),
    (": a\n", "no analogies"),
    ("", "no words"),
])
def test_malformed_files_are_refused_with_the_line_number(tmp_path, text, words):
    (tmp_path / "words.txt").write_text(text)
    with pytest.raises(DataError, match=words):
        read_words(tmp_path / "words.txt")


def test_invalid_similarity_requests_are_refused(model, tokenizer, tmp_path):
    (tmp_path / "words.txt").write_text("zebra gnu 1\n")
    with pytest.raises(DataError, match="knows none of the words"):
        probe_semantic_knowledge(model, tokenizer, [tmp_path / "words.txt"])
    with pytest.raises(InputError, match="no layer 3; this model has 0 to 2"):
        probe_semantic_knowledge(model, tokenizer, [tmp_path / "words.txt"], layers=[3])
    with pytest.raises(DataError, match="No file"):
        probe_semantic_knowledge(model, tokenizer, [])


@pytest.mark.skipif(not WORDSIM.is_dir(), reason=f"there is no {WORDSIM}")
def test_the_usual_files_are_read():
    assert len(read_words(WORDSIM / "EN-SIMLEX-999.txt").pairs) == 999
    assert len(read_words(WORDSIM / "EN-WS-353-ALL.txt").pairs) == 353
    assert len(read_words(WORDSIM / "questions-words.txt").questions) == 19_544
