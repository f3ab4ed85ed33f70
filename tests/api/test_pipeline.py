"""mini_bert.pipeline: three lines from a name to results, with every kind of model, and a sentence where it cannot."""

import subprocess
import sys

import numpy as np
import pytest

import mini_bert
from mini_bert import InputError, MiniBERT, ModelConfig, WordPieceTokenizer
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.storage import save_task
from mini_bert.inference.embed import embed
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.text.vocabulary import SPECIAL_TOKENS

SMALL = ModelConfig(num_layers=1, num_heads=2, hidden_size=8, intermediate_size=16, vocab_size=9, max_seq_length=12)
WORDS = ["good", "bad", "film", "plot"]


@pytest.fixture(scope="module")
def mini() -> mini_bert.Pipeline:
    return mini_bert.pipeline("mini")


@pytest.fixture
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS])


@pytest.fixture
def classifier(tmp_path, tokenizer):
    """A fine-tuned model in a directory, which looks for the word `good`."""
    model = TaskModel(MiniBERT(SMALL), "first_token", 2, seed=1)
    model.params.flat += 0.3 * np.random.default_rng(0).standard_normal(model.params.flat.size)
    save_task(tmp_path / "films.model", model, tokenizer, "classification", ["no", "yes"], {})
    return tmp_path / "films.model"


def test_the_names_of_the_package_are_those_that_dir_shows():
    assert dir(mini_bert) == sorted(mini_bert.__all__)
    for name in mini_bert.__all__:
        assert getattr(mini_bert, name) is not None
    assert callable(mini_bert.fit)
    assert mini_bert.fit.fit.__module__ == "mini_bert.fit.pipeline"       # it is a package, too


def test_the_model_says_what_it_is(mini):
    shown = repr(mini)
    assert shown.startswith("<mini: 4,498,880 parameters, 3 layers of 192, 8,192 pieces, texts of 64 tokens; ")
    assert shown.endswith("fill_mask, embed, similar, score, explain>")


def test_masks_are_filled_and_printed(mini):
    text = "They met for the first [MASK] in Paris."
    found = mini.fill_mask(text, top=2)
    assert found.candidates == fill_mask(mini.model, mini.tokenizer, text, 2)[0]
    assert found.words == [found.candidates[0].token] == ["time"]
    first, second, _ = str(found).splitlines()
    assert first == text
    assert second.split() == [f"{found.candidates[0].probability:.1%}", "time"]
    both = mini.fill_mask(["A [MASK] and a [MASK].", text], top=1)
    assert [len(one.masks) for one in both] == [2, 1]
    assert repr(both) == "\n".join(map(str, both))
    with pytest.raises(InputError, match="has 2 masks"):
        both[0].candidates  # noqa: B018
    with pytest.raises(InputError, match=r"Text 2: The text has no \[MASK\]"):
        mini.fill_mask([text, "None."])


def test_vectors_neighbours_and_scores(mini):
    texts = ["A dog barks.", "The cat sat on the mat.", "No."]
    vectors = mini.embed(texts)
    assert np.array_equal(vectors, embed(mini.model, mini.tokenizer, texts))
    assert np.allclose(mini.embed(texts[1]), vectors[1], atol=1e-6)
    nearest = mini.similar("A dog barks.", texts, top=2)
    assert nearest[0].text == "A dog barks."
    assert nearest[0].cosine == pytest.approx(1, abs=1e-5)
    assert str(nearest).splitlines()[1].split(maxsplit=1) == ["1.000", "A dog barks."]
    one, other = mini.score(["The cat sat.", "The cat sats."])
    assert one.total > other.total
    assert one.per_token == pytest.approx(one.total / 4)
    assert one.measure == "pseudo-log-likelihood"
    assert mini.score("The cat sat.").total == pytest.approx(one.total)
    assert mini.score("").per_token is None


def test_an_explanation_adds_up_to_the_logit(mini):
    text = "They met for the first [MASK] in Paris."
    found = mini.explain(text)
    assert (found.prediction, found.tokens[0], len(found.tokens)) == ("time", "[CLS]", len(found.attributions))
    assert found.probability == pytest.approx(mini.fill_mask(text).candidates[0].probability, abs=1e-3)
    ids = np.array([mini.tokenizer.encode(text)])
    blank = np.full_like(ids, mini.tokenizer.vocabulary.mask)
    place, word = int(np.flatnonzero(ids[0] == mini.tokenizer.vocabulary.mask)[0]), mini.tokenizer.word_ids("time")[0]
    logit, without = (float(mini.model.forward(some)[0][0, place, word]) for some in (ids, blank))
    assert sum(found.attributions) == pytest.approx(logit - without, abs=0.05)
    assert mini.explain(text, "day").probability < found.probability
    for wrong, said in (("None.", "no \\[MASK\\]"), ("[MASK] [MASK]", "2 masks")):
        with pytest.raises(InputError, match=said):
            mini.explain(wrong)
    with pytest.raises(InputError, match="not one piece"):
        mini.explain(text, "gobbledygook")


def test_what_a_model_cannot_do_is_one_sentence(mini):
    with pytest.raises(InputError, match=r"^mini cannot predict: it has no head for a task; .*finetune trains one\.$"):
        mini.predict("A text.")
    with pytest.raises(InputError, match=r"^mini cannot generate text: it is not causal; .*\.$"):
        mini.generate("A text.")
    headless = mini_bert.pipeline(MiniBERT(ModelConfig(**{**SMALL.to_dict(), "mlm_head": "none"})),
                                  WordPieceTokenizer([*SPECIAL_TOKENS, *WORDS]))
    assert repr(headless).endswith("; embed, similar>")
    for refused, said in ((headless.score, "cannot score texts: it has no head"),
                          (headless.fill_mask, "cannot fill masks: it has no head for words"),
                          (headless.explain, "cannot explain a prediction: it has no head for words")):
        with pytest.raises(InputError, match=said):
            refused("a [MASK]")


def test_a_causal_model_continues_and_scores_but_fills_no_mask(tokenizer):
    model = mini_bert.pipeline(MiniBERT(ModelConfig(**{**SMALL.to_dict(), "score_terms": "causal"})), tokenizer)
    heard: list[str] = []
    found = model.generate("good film", 5, seed=1, listener=heard.append)
    assert str(found) == "good film" + "".join(heard)
    assert found == model.generate("good film", 5, seed=1)
    assert model.score("good film").measure == "log-likelihood"
    with pytest.raises(InputError, match="do not see later ones"):
        model.fill_mask("good [MASK]")


def test_a_fine_tuned_directory_predicts_and_explains_labels(classifier):
    model = mini_bert.pipeline(classifier)
    assert repr(model).startswith("<films.model: ")
    assert "2 labels" in repr(model)
    one, other = model.predict(["good film", "bad plot"])
    assert one.answer in ("no", "yes")
    assert one.probabilities[one.answer] == one.probability > 0.5
    assert str(other) == f"{other.answer}  {other.probability:.1%}  bad plot"
    found = model.explain("good film", "yes")
    assert found.probability == pytest.approx(one.probabilities["yes"], abs=1e-5)
    assert found.tokens == ["[CLS]", "good", "film", "[SEP]"]
    scores = [float(model.model.forward(np.array([ids]))[0][0, 1]) for ids in ([2, 5, 7, 3], [4, 4, 4, 4])]
    assert sum(found.attributions) == pytest.approx(scores[0] - scores[1], abs=0.02)
    assert model.explain("good film").prediction == one.answer
    assert len(model.fill_mask("good [MASK]").candidates) == 4            # its head for words is still there
    with pytest.raises(InputError, match=r"'maybe' is not a label of films\.model; it has no, yes"):
        model.explain("good film", "maybe")


def test_pairs_are_tuples(tmp_path, tokenizer):
    save_task(tmp_path / "pairs", TaskModel(MiniBERT(SMALL), "sequence", 2), tokenizer, "pair", ["no", "yes"], {},
              pairs=True)
    model = mini_bert.pipeline(tmp_path / "pairs")
    (found,) = model.predict([("good film", "bad plot")])
    assert str(found).endswith("good film | bad plot")
    assert model.predict(("good film", "bad plot")).answer == found.answer


def test_a_model_in_memory_needs_its_tokenizer(tokenizer, mini):
    assert mini_bert.pipeline(mini) is mini
    assert mini_bert.pipeline(mini_bert.load("mini")).name == "mini"
    with pytest.raises(InputError, match="needs its tokenizer"):
        mini_bert.pipeline(MiniBERT(SMALL))
    with pytest.raises(InputError, match="has its own tokenizer"):
        mini_bert.pipeline("mini", tokenizer)
    with pytest.raises(InputError, match="does not belong to the model"):
        mini_bert.pipeline(MiniBERT(ModelConfig(**{**SMALL.to_dict(), "vocab_size": 4000})), tokenizer)


def test_a_pipeline_imports_nothing_of_training():
    program = """
import sys, mini_bert
model = mini_bert.pipeline("mini")
model.fill_mask("A [MASK].")
model.embed("A text.")
print(*sorted(name for name in sys.modules if name.startswith(("mini_bert.training", "mini_bert.evaluation.suite"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
