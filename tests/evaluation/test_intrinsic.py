"""The intrinsic evaluation: exact values on models with known behaviour."""

import json
from math import log

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, MiniBERTGradients, ModelConfig, WordPieceTokenizer
from mini_bert.evaluation.metrics import compute_gradient_norm
from mini_bert.evaluation.representations import intrinsic as module
from mini_bert.evaluation.representations.geometry import compute_effective_dimensionality, compute_token_diversity
from mini_bert.evaluation.representations.intrinsic import intrinsic
from mini_bert.text.batches import MLMBatches
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = ["a", "b", "c", "d", "e", "f"]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_size": 8, "intermediate_size": 16, "vocab_size": 11,
         "max_seq_length": 16}
LAYERS = ["embeddings", "hidden_0", "hidden_1", "final_hidden"]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture(scope="module")
def model() -> MiniBERT:
    made = MiniBERT(ModelConfig(**SIZES), dtype=np.float64)
    made.params.flat[...] += 0.3 * np.random.default_rng(0).standard_normal(made.params.flat.size)
    return made


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, rng.integers(2, 25))) for _ in range(40)]


@pytest.fixture(scope="module")
def corpus(tokenizer, texts, tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("intrinsic")
    (folder / "text.txt").write_text("\n\n".join(texts))
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", heldout=0, workers=1)
    return Corpus(folder / "corpus")


def test_the_metrics_match_the_sample(model, tokenizer, corpus):
    report = intrinsic(model, tokenizer, corpus, split="train", max_sequences=1000, threads=1)
    batches = MLMBatches(corpus, "train", max_seq_length=16, batch_size=8, seed=0)
    gradients, loss, count = MiniBERTGradients(model), 0.0, 0
    for step in range(len(batches)):
        batch = batches[step]
        part = gradients.accumulate_mlm(batch.input_ids, batch.target_ids, batch.mask_positions, batch.attention_mask)
        loss, count = loss + part[0], count + part[1]
    gradients.gradients.flat[...] /= count
    masked = report.model.masked
    assert report.masked == masked.accuracy[1].values == masked.calibration.count == count
    assert masked.loss == pytest.approx(loss / count)
    assert masked.perplexity == pytest.approx(np.exp(loss / count))
    assert masked.gradient_norm == pytest.approx(compute_gradient_norm(gradients.gradients))
    assert sum(norm**2 for norm in masked.gradient_norm_by_part.values()) == pytest.approx(masked.gradient_norm**2)
    assert list(masked.gradient_norm_by_part) == ["embeddings", "layer_0", "layer_1", "top"]
    assert masked.accuracy[1].mean <= masked.accuracy[5].mean <= masked.accuracy[10].mean
    assert report.sequences == len(batches.sequences)
    assert report.left_out == 0
    assert report.tokens == report.tokens_compared == report.model.geometry["hidden_0"].tokens


def test_a_constant_prediction_gets_the_frequency_of_its_word(tokenizer, texts):
    model = MiniBERT(ModelConfig(**SIZES))
    model.params["mlm_head_W"][...] = 0
    model.params["mlm_head_b"][...] = np.log([1e-9] * 5 + [0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    report = intrinsic(model, tokenizer, texts, threads=1)
    share = report.model.masked.accuracy[1].mean
    assert report.model.masked.calibration.error == pytest.approx(abs(0.5 - share), abs=1e-6)
    assert report.model.masked.loss == pytest.approx(-share * log(0.5) - (1 - share) * log(0.1), abs=1e-5)
    assert report.model.masked.accuracy[10].mean == pytest.approx(1)          # only the six words have high scores
    assert share <= report.most_frequent[1] <= report.most_frequent[5] <= report.most_frequent[10] == 1


def test_a_random_model_equals_its_own_baseline(tokenizer, texts):
    report = intrinsic(MiniBERT(ModelConfig(**SIZES), seed=3), tokenizer, texts, seed=3, threads=1)
    assert report.model == report.random_init
    assert intrinsic(MiniBERT(ModelConfig(**SIZES), seed=4), tokenizer, texts, seed=3, threads=1).model \
        != report.random_init


def test_threads_change_nothing_and_training_mode_is_restored(model, tokenizer, texts):
    before = model.params.flat.copy()
    one, two = (intrinsic(model, tokenizer, texts, threads=threads).to_dict() for threads in (1, 2))
    assert json.dumps(one) == json.dumps(two)
    np.testing.assert_array_equal(model.params.flat, before)
    assert one["model"]["masked"]["accuracy"]["5"]["values"] == one["masked"]


def test_every_layer_has_geometry(model, tokenizer, texts):
    report = intrinsic(model, tokenizer, texts, threads=1)
    for figures in (report.model, report.random_init):
        assert list(figures.geometry) == LAYERS
        similarity = np.array(figures.layer_similarity)
        np.testing.assert_allclose(similarity, similarity.T)
        np.testing.assert_allclose(similarity.diagonal(), 1)
        for entropies, most in ((figures.attention_entropy, log(16)), (figures.attention_entropy_normalised, 1)):
            assert np.shape(entropies) == (2, 2)
            assert (np.array(entropies) >= 0).all()
            assert (np.array(entropies) <= most + 1e-9).all()
        assert set(figures.effective_rank) == {f"{name}_{i}" for name in ("W_Q", "W_K", "W_V", "W_O", "W1", "W2")
                                               for i in (0, 1)}
        assert all(0 < rank <= 8 for rank in figures.effective_rank.values())
    # attention of a new model is nearly uniform
    np.testing.assert_allclose(report.random_init.attention_entropy_normalised, 1, atol=0.01)


def test_the_geometry_uses_the_unmasked_text_without_special_tokens(model, tokenizer, texts):
    found = intrinsic(model, tokenizer, texts, threads=1).model
    rows, diversity, entropies = [], [], []
    for text in texts:
        ids = tokenizer.encode(text, max_length=16)
        _, cache = model.encode(np.array([ids]))
        rows.append(cache["hidden_0"][0, 1:-1])
        diversity.append(compute_token_diversity(rows[-1]))
        weights = cache["attention_weights_1"][0, :, 1:-1]
        entropies.append(-(weights * np.log(weights)).sum(axis=2))
    geometry = found.geometry["hidden_0"]
    assert geometry.mean_norm == pytest.approx(np.linalg.norm(np.concatenate(rows), axis=1).mean())
    assert geometry.effective_dimensionality == pytest.approx(compute_effective_dimensionality(np.concatenate(rows)))
    assert geometry.token_diversity == pytest.approx(np.mean(diversity))
    np.testing.assert_allclose(found.attention_entropy[1], np.concatenate(entropies, axis=1).mean(axis=1))


def test_kept_vectors_are_limited_and_left_out_sequences_counted(model, tokenizer, texts, monkeypatch):
    everything = intrinsic(model, tokenizer, [*texts, ""], threads=1)
    assert (everything.sequences, everything.left_out, everything.empty) == (40, 0, 1)
    assert everything.cut == sum(len(text.split()) > 14 for text in texts)
    some = intrinsic(model, tokenizer, texts, max_sequences=10, threads=1)
    assert (some.sequences, some.left_out) == (10, 30)
    monkeypatch.setattr(module, "MOST_TOKENS", 50)
    few = intrinsic(model, tokenizer, texts, threads=1)
    assert few.tokens_compared == few.model.geometry["hidden_1"].tokens == 50
    assert few.model.masked == intrinsic(model, tokenizer, texts, threads=1).model.masked
    short = intrinsic(model, tokenizer, texts, length=8, threads=1)
    assert short.length == 8
    assert short.cut == sum(len(text.split()) > 6 for text in texts)


def test_a_sample_of_a_corpus_has_the_requested_size(model, tokenizer, corpus):
    report = intrinsic(model, tokenizer, corpus, split="train", max_sequences=11, threads=1)
    assert report.sequences == 11
    assert report.left_out > 0


def test_a_model_without_a_head_has_only_geometry(tokenizer, texts):
    report = intrinsic(MiniBERT(ModelConfig(**SIZES, mlm_head="none")), tokenizer, texts, threads=1)
    assert report.model.masked is None
    assert report.to_dict()["model"]["masked"] is None
    assert list(report.model.geometry) == LAYERS


@pytest.mark.parametrize(("data", "options", "words"), [
    ("a text", {}, "put a single text"), ([], {}, "no text"), (["", " "], {}, "no text"), (["a b"], {}, "too few"),
    (["a b c d"], {"length": 17}, "between 3 and the model's 16"), (["a b c d"], {"length": 2}, "between 3"),
    (["a b c d"], {"max_sequences": 0}, "max_sequences")])
def test_invalid_input_is_refused(model, tokenizer, data, options, words):
    with pytest.raises(InputError, match=words):
        intrinsic(model, tokenizer, data, **options)


def test_a_tokenizer_of_another_model_is_refused(model, texts):
    with pytest.raises(InputError, match="only 11"):
        intrinsic(model, WordPieceTokenizer([*SPECIAL_TOKENS, *(f"w{i}" for i in range(20))]), texts)
