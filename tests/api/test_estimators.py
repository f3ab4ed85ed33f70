"""MiniBertClassifier and MiniBertVectorizer, by the conventions of scikit-learn, without scikit-learn."""

import inspect
import pickle

import numpy as np
import pytest

import mini_bert
from mini_bert import ConfigError, InputError, MiniBertClassifier, MiniBertVectorizer
from mini_bert.errors import DataError

GOOD = ["a warm and funny film", "beautifully acted and well told", "a joy from start to end", "smart and moving"]
BAD = ["a dull and empty film", "badly acted and far too long", "a waste of time", "tired and without a plot"]
TEXTS = [f"{text}, said critic {n}" for n in range(3) for text in GOOD + BAD]
LABELS = [label for _ in range(3) for label in [1] * 4 + [0] * 4]


@pytest.fixture(scope="module")
def fitted() -> MiniBertClassifier:
    return MiniBertClassifier(epochs=3, learning_rate=2e-3, threads=1).fit(TEXTS, LABELS)


def test_parameters_are_those_of_init_and_can_be_changed():
    made = MiniBertClassifier(epochs=2)
    assert made.get_params()["epochs"] == 2
    assert set(made.get_params()) == set(inspect.signature(MiniBertClassifier).parameters)
    assert made.set_params(epochs=7, seed=1) is made
    assert repr(made) == "MiniBertClassifier(epochs=7, seed=1)"
    with pytest.raises(ConfigError, match="has no parameter 'epoch'; it has model, epochs"):
        made.set_params(epoch=1)
    assert not made.__sklearn_is_fitted__()
    with pytest.raises(InputError, match="has not been fitted"):
        made.predict(["a text"])


def test_a_classifier_learns_and_gives_the_labels_that_it_was_given(fitted):
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.score(TEXTS, LABELS) > 0.8
    probabilities = fitted.predict_proba(TEXTS)
    assert probabilities.shape == (24, 2)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert np.array_equal(fitted.predict(np.array(TEXTS)), fitted.classes_[probabilities.argmax(axis=1)])
    assert fitted.predict_proba([]).shape == (0, 2)
    again = MiniBertClassifier(epochs=3, learning_rate=2e-3, threads=2).fit(TEXTS, LABELS)
    assert np.array_equal(again.predict_proba(TEXTS), probabilities)      # on any number of threads


def test_a_fitted_classifier_can_be_copied_and_saved(fitted, tmp_path):
    copy = pickle.loads(pickle.dumps(fitted))  # as scikit-learn's workers copy it
    assert np.array_equal(copy.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    fitted.save(tmp_path / "films")
    model = mini_bert.pipeline(tmp_path / "films")
    assert [found.answer for found in model.predict(TEXTS[:8])] == [str(label) for label in fitted.predict(TEXTS[:8])]
    assert model.explain(TEXTS[0]).prediction in ("0", "1")


def test_what_is_no_list_of_texts_is_refused():
    made = MiniBertClassifier()
    for X, y, said in (("one text", ["a"], "put it into a list"), (["a", "b"], [1], "2 texts and 1 labels"),
                       (["a", 3], [0, 1], "Example 1 is '3', not a text"), (["a", "b"], [0, 0], "only the label '0'"),
                       (["a", "b"], [0.5, 1], "a number on a scale")):
        with pytest.raises((InputError, DataError), match=said):
            made.fit(X, y)


def test_a_vectorizer_gives_the_vectors_of_the_pipeline():
    made = MiniBertVectorizer()
    vectors = made.fit_transform(TEXTS[:3])
    assert np.array_equal(vectors, mini_bert.pipeline("mini").embed(TEXTS[:3]))
    assert np.array_equal(MiniBertVectorizer().transform(TEXTS[:3]), vectors)         # it learns nothing
    assert made.get_feature_names_out().tolist()[:2] == ["minibert0", "minibert1"]
    assert len(made.get_feature_names_out()) == vectors.shape[1]
    with pytest.raises(InputError, match="not a text"):
        made.transform([("a", "pair")])
