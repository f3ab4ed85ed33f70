"""The classes for scikit-learn inside its own pipelines and searches."""

import numpy as np
import pytest

from mini_bert import MiniBertClassifier, MiniBertVectorizer

pytest.importorskip("sklearn", reason="scikit-learn is not installed; `make parity` installs it")

from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

GOOD = ["a warm and funny film", "beautifully acted and well told", "a joy from start to end", "smart and moving"]
BAD = ["a dull and empty film", "badly acted and far too long", "a waste of time", "tired and without a plot"]
TEXTS = np.array([f"{text}, said critic {n}" for n in range(4) for text in GOOD + BAD])
LABELS = np.array(["pos"] * 4 + ["neg"] * 4)[np.arange(len(TEXTS)) % 8]


def test_a_classifier_is_cloned_searched_and_put_into_a_pipeline():
    made = MiniBertClassifier(epochs=1, learning_rate=2e-3, threads=1)
    assert is_classifier(made)
    assert clone(made).get_params() == made.get_params()
    found = GridSearchCV(make_pipeline(made), {"minibertclassifier__epochs": [3, 4]}, cv=2).fit(TEXTS, LABELS)
    assert found.best_params_["minibertclassifier__epochs"] in (3, 4)
    assert found.score(TEXTS, LABELS) > 0.8
    assert found.predict_proba(TEXTS[:2]).shape == (2, 2)
    assert set(found.predict(TEXTS)) <= {"pos", "neg"}
    assert "MiniBertClassifier" in estimator_html_repr(found)


def test_a_vectorizer_feeds_a_linear_model():
    line = make_pipeline(MiniBertVectorizer(), LogisticRegression())
    assert cross_val_score(line, TEXTS, LABELS, cv=2).mean() > 0.8
    assert line.fit(TEXTS, LABELS)[:-1].get_feature_names_out()[0] == "minibert0"
    found = GridSearchCV(line, {"minibertvectorizer__normalise": [True, False]}, cv=2).fit(TEXTS, LABELS)
    assert found.score(TEXTS, LABELS) > 0.8
