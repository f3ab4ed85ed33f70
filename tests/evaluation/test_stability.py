"""Stability under perturbations, on models with and without context."""

import json

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.evaluation.representations.stability import PERTURBATIONS, measure_representation_stability
from mini_bert.text.vocabulary import SPECIAL_TOKENS

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["the", "cat", "dog", "sat", "on", "mat", "and", "looked", "The", "Cat", ".", ","]
PIECES = [*SPECIAL_TOKENS, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
TEXTS = ["The cat sat on the mat.", "the dog looked, and sat.", "the cat and the dog looked on the mat",
         "on the mat sat the dog."]


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer(PIECES)


def made(**options) -> MiniBERT:
    config = {"num_layers": 2, "num_heads": 2, "hidden_size": 16, "intermediate_size": 32, "vocab_size": len(PIECES),
              "max_seq_length": 24, **options}
    return MiniBERT(ModelConfig(**config), dtype=np.float64)


@pytest.fixture(scope="module")
def contextual() -> MiniBERT:
    model = made()
    model.params.flat[...] += 0.2 * np.random.default_rng(0).standard_normal(model.params.flat.size)
    return model


@pytest.fixture(scope="module")
def context_free() -> MiniBERT:
    """Attention and feed-forward add nothing, and there are no positions: vectors do not depend on context."""
    model = made(position_embeddings="none")
    for name in model.params:
        if name.startswith(("W_", "W1", "W2")):
            model.params[name][...] = 0
    return model


# -------------------------------------------------------------------- perturbations

@pytest.mark.parametrize("name", PERTURBATIONS)
def test_a_perturbation_is_keyed_by_its_generator(name):
    text = "The quick brown fox, it is said, jumped over the lazy dog."
    one, again, *others = (PERTURBATIONS[name](text, np.random.default_rng(seed)) for seed in (0, 0, 1, 2, 3, 4))
    assert one == again != text
    assert len({one, *others}) > 1


def test_perturbations_change_the_text_as_described(rng):
    text = "one two three four, five."
    for _ in range(50):
        changed = PERTURBATIONS["typo"](text, rng)
        assert sorted(changed) == sorted(text)
        assert [word[0] for word in changed.split()] == [word[0] for word in text.split()]
        assert sum(a != b for a, b in zip(changed, text, strict=True)) == 2
        assert len(PERTURBATIONS["dropped word"](text, rng).split()) == 4
        swapped = PERTURBATIONS["swapped words"](text, rng).split()
        assert sorted(swapped) == sorted(text.split())
        assert sum(a != b for a, b in zip(swapped, text.split(), strict=True)) == 2
        assert PERTURBATIONS["changed case"](text, rng).lower() == text
        assert PERTURBATIONS["doubled space"](text, rng).split() == text.split()
        assert PERTURBATIONS["doubled punctuation"](text, rng) in ("one two three four,, five.",
                                                                   "one two three four, five..")


@pytest.mark.parametrize(("name", "text"), [("typo", "a bb xoo"), ("dropped word", "one"), ("swapped words", "so so"),
                                            ("changed case", "1 2"), ("doubled space", "one"),
                                            ("doubled punctuation", "one two")])
def test_a_perturbation_that_does_not_apply_returns_none(name, text, rng):
    assert PERTURBATIONS[name](text, rng) is None


# -------------------------------------------------------------------- measuring

def test_a_context_free_model_moves_no_token(context_free, tokenizer):
    found = measure_representation_stability(context_free, tokenizer, TEXTS, ["dropped word", "swapped words"])
    for layer, base in found.baseline.items():
        assert base.same_token == pytest.approx(1)
        assert found.perturbations["dropped word"].layers[layer].token.mean == pytest.approx(1)
        assert found.perturbations["dropped word"].layers[layer].token_kept is None      # the baseline is 1
        assert found.perturbations["dropped word"].layers[layer].sentence.mean < 1 - 1e-4
        assert found.perturbations["swapped words"].layers[layer].sentence.mean == pytest.approx(1)
        assert found.perturbations["swapped words"].layers[layer].kept == pytest.approx(1)


def test_a_contextual_model_moves_tokens_from_the_first_layer_on(contextual, tokenizer):
    found = measure_representation_stability(contextual, tokenizer, TEXTS, {"end": lambda text, rng: text + " dog"})
    token = {layer: movement.token.mean for layer, movement in found.perturbations["end"].layers.items()}
    assert token["embeddings"] == pytest.approx(1)        # same tokens at the same positions
    assert token["hidden_0"] < 1 - 1e-5
    assert found.perturbations["end"].changed == len(TEXTS) * 3
    last, base = found.perturbations["end"].layers["final_hidden"], found.baseline["final_hidden"]
    assert last.kept == pytest.approx((last.sentence.mean - base.sentences) / (1 - base.sentences))
    assert last.token_kept == pytest.approx((last.token.mean - base.same_token) / (1 - base.same_token))


def test_the_baseline_is_the_mean_over_all_pairs_of_different_texts(contextual, tokenizer):
    found = measure_representation_stability(contextual, tokenizer, TEXTS, [], batch_size=3)
    ids, vectors, sentences = [], [], []
    for text in TEXTS:
        row = tokenizer.encode(text)
        hidden, _ = contextual.encode(np.array([row]))
        ids.append(row[1:-1])
        vectors.append(hidden[0, 1:-1])
        sentences.append(hidden[0, 1:-1].mean(axis=0))

    def cosine(x, y):
        return x @ y / np.linalg.norm(x) / np.linalg.norm(y)

    unlike = [(a, b) for a in range(len(TEXTS)) for b in range(len(TEXTS)) if a != b]
    assert found.baseline["final_hidden"].sentences == pytest.approx(
        np.mean([cosine(sentences[a], sentences[b]) for a, b in unlike]))
    pairs = [(ids[a][i], ids[b][j], cosine(vectors[a][i], vectors[b][j])) for a, b in unlike
             for i in range(len(ids[a])) for j in range(len(ids[b]))]
    assert found.baseline["final_hidden"].tokens == pytest.approx(np.mean([value for *_, value in pairs]))
    everything = [token for row in ids for token in row]
    same = {token: np.mean(values) for token in set(everything)
            if (values := [value for x, y, value in pairs if x == y == token])}
    assert found.baseline["final_hidden"].same_token == pytest.approx(
        np.average(list(same.values()), weights=[everything.count(token) for token in same]))


def test_changes_that_the_tokenizer_drops_are_not_counted(contextual, tokenizer):
    cased = WordPieceTokenizer(PIECES, lowercase=False)
    for which, changed in ((tokenizer, False), (cased, True)):
        found = measure_representation_stability(contextual, which, TEXTS).perturbations
        assert (found["changed case"].changed > 0) == changed
        assert bool(found["changed case"].layers) == changed
        assert (found["doubled space"].changed, found["doubled space"].unseen) == (0, 3 * len(TEXTS))
        assert found["doubled punctuation"].impossible == 3            # one text has none, for three seeds
        for one in found.values():
            assert one.changed + one.unseen + one.impossible == 3 * len(TEXTS)


def test_left_out_texts_are_counted_and_results_depend_on_the_seeds(contextual, tokenizer):
    texts = [*TEXTS, TEXTS[0], "", "the cat " * 30]
    found = measure_representation_stability(contextual, tokenizer, texts, seeds=(5, 6))
    assert (found.texts, found.duplicates, found.empty, found.cut) == (5, 1, 1, 1)
    again = measure_representation_stability(contextual, tokenizer, texts, seeds=(5, 6))
    assert json.dumps(found.to_dict()) == json.dumps(again.to_dict())
    assert found.to_dict()["perturbations"]["typo"]["layers"]["hidden_0"]["sentence"]["values"] == 2
    assert measure_representation_stability(contextual, tokenizer, texts, seeds=(7,)).perturbations != \
        found.perturbations


def test_invalid_input_is_refused(contextual, tokenizer):
    for texts, options, words in (("a text", {}, "put a single text"), (["the cat"] * 3, {}, "at least two different"),
                                  (TEXTS, {"perturbations": ["typos"]}, "choose some of typo, dropped word"),
                                  (TEXTS, {"seeds": ()}, "at least one seed")):
        with pytest.raises(InputError, match=words):
            measure_representation_stability(contextual, tokenizer, texts, **options)
