"""Every objective, and sums of them: a rate is found for it, and it learns one batch."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig
from mini_bert.core.registry import find, parse_sum
from mini_bert.core.registry import words as known
from mini_bert.training.config import TrainingConfig, make_objective
from mini_bert.training.finder import find_learning_rate
from mini_bert.training.overfit import overfit

OPTIONS = {"distil": "distil(teacher='{}', layers=even)", "sentence_vectors": "sentence_vectors(teacher='{}', group=4)",
           "hybrid": "hybrid(causal=0.3)"}
SUMS = ["masked + 0.5 token_order", "masked + 0.5 sentence_order", "masked + next_sentence",
        "masked + 0.5 contrastive(group=4)"]


@pytest.fixture(scope="module")
def teacher(pair_corpus, model_config, tmp_path_factory):
    made = tmp_path_factory.mktemp("teacher") / "model"
    MiniBERT(replace(model_config, hidden_size=24, init_std=0.3), seed=5).save(made)
    pair_corpus.tokenizer.save(made)
    return made


@pytest.fixture(params=[*known("objective"), *SUMS])
def prepared(request, teacher, pair_corpus, model_config, tmp_path, monkeypatch):
    """A model that can learn it, the settings of its training, its objective and its batches."""
    monkeypatch.setenv("MINI_BERT_CACHE", str(tmp_path / "cache"))
    text = OPTIONS.get(request.param, request.param).format(teacher)
    config = model_config.to_dict()
    for _, word in parse_sum(text):
        config |= find("objective", word.name).named.needs
    model = MiniBERT(ModelConfig.from_dict(config), seed=0)
    settings = TrainingConfig(objective=text, batch_size=8, micro_batch_size=3, steps=15, warmup_steps=3, threads=1,
                              learning_rate=1e-2,
                              sequences="pairs" if "sentence_order" in text else "packed").resolved(model.config)
    objective = make_objective(settings, model)
    return model, settings, objective, objective.batches(pair_corpus, settings)


def test_find_lr_measures_what_the_steps_of_any_objective_minimise(prepared):
    model, settings, objective, batches = prepared
    before = objective.params.flat.copy()
    search = find_learning_rate(model, batches, settings, low=1e-3, high=1e-2, steps=10, objective=objective)
    assert np.isfinite([search.start, *search.losses]).all()
    assert min(search.losses) < search.start
    assert np.array_equal(objective.params.flat, before)


def test_one_batch_of_any_objective_is_learned(prepared):
    model, settings, objective, batches = prepared
    first, _ = overfit(model, batches[0], replace(settings, steps=1), objective=objective)
    last, steps = overfit(model, batches[0], settings, target=0.0, objective=objective)
    assert steps == 15
    assert last < first
