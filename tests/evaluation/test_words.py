"""Word vectors: pieces of words, windows, and quantisation."""

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.errors import DataError, InputError
from mini_bert.evaluation.formats.conllu import Sentence
from mini_bert.evaluation.probes.quantised_vectors import quantised_bytes
from mini_bert.evaluation.probes.sets import probe_sets
from mini_bert.evaluation.probes.word_vectors import align_words, layer_names
from mini_bert.text.vocabulary import SPECIAL_TOKENS
from mini_bert.workers import Workers

TOKENIZER = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b", "##c", "##d", "x", "-"])


@pytest.fixture(scope="module")
def model():
    made = MiniBERT(ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=11,
                                max_seq_length=12), dtype=np.float64)
    made.params.flat += 0.2 * np.random.default_rng(0).standard_normal(made.params.flat.size)
    return made


def ids_of(alignment, word):
    start = alignment.start[word]
    return alignment.windows[alignment.window[word]][start : start + alignment.pieces[word]]


def test_each_word_has_its_own_pieces():
    words = ["acd", "b", "x-a", "é"]
    found = align_words(TOKENIZER, [words, ["b"]], 12)
    assert [ids_of(found, i) for i in range(5)] == [TOKENIZER.ids(word) for word in [*words, "b"]]
    assert [len(TOKENIZER.ids(word)) for word in words] == [3, 1, 3, 1]
    assert found.windows[0] == TOKENIZER.with_special([i for word in words for i in TOKENIZER.ids(word)])
    assert found.offsets.tolist() == [0, 4, 5]
    assert found.report.unknown_words == 1


def test_words_without_pieces_or_with_too_many_are_counted():
    found = align_words(TOKENIZER, [["\u200b", "a" + "c" * 20, "b"]], 12)
    assert ids_of(found, 0) == [TOKENIZER.vocabulary.unk]
    assert found.pieces.tolist() == [1, 10, 1]
    assert (found.report.empty_words, found.report.cut_words, found.report.windowed_sentences) == (1, 1, 1)


@pytest.mark.parametrize("seed", range(5))
def test_long_sentences_are_windowed_and_no_word_is_lost(seed):
    rng = np.random.default_rng(seed)
    words = rng.choice(["a", "ac", "bcd", "x-a", "acdcdcdcdcd"], 60).tolist()
    found = align_words(TOKENIZER, [["a"], words, ["b"]], 12)
    assert [ids_of(found, i) for i in range(62)] == [TOKENIZER.ids(word)[:10] for word in ["a", *words, "b"]]
    assert max(map(len, found.windows)) <= 12
    assert found.report.windowed_sentences == 1
    assert (np.diff(found.window) >= 0).all()


def test_a_windowed_word_has_context_on_both_sides():
    found = align_words(TOKENIZER, [["a"] * 40], 12)
    inner = slice(10, 30)
    length = np.array([len(found.windows[i]) for i in found.window])
    assert (np.minimum(found.start, length - 1 - found.start)[inner] >= 3).all()


def vectors_of_the_model(model, sentences, pooling):
    """By layer, the vector of each word, from one pass per sentence."""
    found = {name: [] for name in layer_names(model)}
    for words in sentences:
        pieces = [TOKENIZER.ids(word) for word in words]
        _, cache = model.encode(np.array([TOKENIZER.with_special([i for ids in pieces for i in ids])]))
        place = 1
        for ids in pieces:
            for name, vectors in found.items():
                rows = cache[name][0, place : place + len(ids)]
                vectors.append({"mean": rows.mean(axis=0), "first": rows[0], "last": rows[-1],
                                "ends": np.concatenate([rows[0], rows[-1]])}[pooling])
            place += len(ids)
    return {name: np.array(vectors) for name, vectors in found.items()}


def test_invalid_layers_poolings_and_vocabularies_are_refused(model):
    sets = probe_sets(model, TOKENIZER, *[[Sentence(("a",))]] * 3)
    with pytest.raises(InputError, match="no layer 'hidden_7'; this model has embeddings, hidden_0"):
        sets.vectors(model, TOKENIZER, layers=["hidden_7"])
    with pytest.raises(InputError, match="pooling must be one of mean, first, last, ends"):
        sets.vectors(model, TOKENIZER, pooling="median")
    with pytest.raises(InputError, match="12 pieces"):
        sets.vectors(model, WordPieceTokenizer([*TOKENIZER.vocabulary.pieces, "more"]))
    with pytest.raises(InputError, match="no room"):
        align_words(TOKENIZER, [["a"]], 3)


def test_sets_are_disjoint_and_samples_are_noted(model):
    train = [Sentence((word,) * 3) for word in ["a", "b", "x", "ac"] * 5]
    sets = probe_sets(model, TOKENIZER, train, [Sentence(("a",))], seed=1)
    assert [len(sets.sentences[split]) for split in ("train", "dev", "test")] == [18, 2, 1]
    assert any("dev: 2 sentences of the training set" in note for note in sets.notes)
    few = probe_sets(model, TOKENIZER, train, train, train, max_samples=5)
    assert [len(few.sentences[split]) for split in ("train", "dev", "test")] == [5, 5, 20]      # whole
    assert "train: 5 of 20 sentences were drawn" in few.notes
    with pytest.raises(DataError, match="test set has no sentence"):
        probe_sets(model, TOKENIZER, train, [])
    with pytest.raises(DataError, match="training set has only one sentence"):
        probe_sets(model, TOKENIZER, train[:1], train)


@pytest.mark.parametrize("pooling", ["mean", "first", "last", "ends"])
def test_quantised_vectors_match_the_model_in_less_memory(model, pooling):
    train = [Sentence(("acd", "b", "x-a")), Sentence(("a", "ac"))]
    sets = probe_sets(model, TOKENIZER, train, train, train)
    held = sets.vectors(model, TOKENIZER, pooling=pooling, team=Workers(2))
    assert list(held) == layer_names(model) == ["embeddings", "hidden_0", "hidden_1", "final_hidden"]
    for name, vectors in vectors_of_the_model(model, [sentence.words for sentence in train], pooling).items():
        found = held[name]["train"]
        assert found.shape == vectors.shape
        np.testing.assert_allclose(found[:], vectors, atol=np.abs(vectors).max() / 60_000)
        assert (found[np.array([[4, 0], [1, 1]])] == found[:][[[4, 0], [1, 1]]]).all()
        shift, deviation = vectors.mean(axis=0), vectors.std(axis=0) + 1
        np.testing.assert_allclose(found.standardised(shift, deviation)[:], (vectors - shift) / deviation, atol=1e-3)
        assert (found[:] == held[name]["train"][:]).all()             # the stored rows do not change
    rows = 5 + 3 if pooling == "ends" else 5                          # three words have several pieces, so two ends
    assert quantised_bytes(sets.alignments["train"], pooling, 8) == rows * 8 * 2


def test_the_size_of_the_model_does_not_change_the_sentences(model):
    train = [Sentence((word, "ac")) for word in ["a", "b", "x", "acd"] * 5]
    whole = probe_sets(model, TOKENIZER, train, train[:4], train[:4])
    one_layer = sum(quantised_bytes(alignment, "ends", 8) for alignment in whole.alignments.values())
    models = 2 * model.params.flat.nbytes
    for layers, groups in ((1, 4), (2, 2), (3, 2), (4, 1)):
        sets = probe_sets(model, TOKENIZER, train, train[:4], train[:4], max_bytes=models + layers * one_layer)
        assert sets.sentences == whole.sentences
        assert len(sets.layer_groups(model)) == groups
        assert [name for group in sets.layer_groups(model) for name in group] == layer_names(model)
        assert sets.layer_groups(model, ["hidden_1"]) == [["hidden_1"]]       # only the requested layers count
    mean = sum(quantised_bytes(alignment, "mean", 8) for alignment in whole.alignments.values())
    assert mean < one_layer                                                   # two ends take more memory than a mean
    tight = probe_sets(model, TOKENIZER, train, train[:4], train[:4], max_bytes=models + mean)
    assert len(tight.layer_groups(model, pooling="mean")) == 4
    with pytest.raises(DataError, match=r"at one layer take .* GB, but next to the model .* fewer sentences"):
        tight.layer_groups(model, pooling="ends")
    with pytest.raises(InputError, match="pooling must be one of"):
        tight.layer_groups(model, pooling="median")
