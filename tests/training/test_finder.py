"""The search for a learning rate, against real runs."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, ModelConfig
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig, make_objective
from mini_bert.training.finder import find_learning_rate
from mini_bert.training.initial_model import new_model
from mini_bert.training.trainer import Trainer
from mini_bert.workers import workers

MODEL = ModelConfig(num_layers=2, num_heads=2, hidden_size=32, intermediate_size=64, vocab_size=120, max_seq_length=32)
RECIPE = TrainingConfig(batch_size=8, masking_rate=0.3, init="local", frequency_bias=True, threads=1)


@pytest.fixture(scope="module")
def chains(tmp_path_factory) -> Corpus:
    """Seventy words, frequent and rare; six of ten times a word is followed by the one that belongs to it."""
    rng = np.random.default_rng(0)
    words = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    shares, follower = 1 / np.arange(1, 71), rng.permutation(70)
    drawn = rng.choice(70, (300, 120), p=shares / shares.sum())
    for place in range(1, 120):
        drawn[:, place] = np.where(rng.random(300) < 0.6, follower[drawn[:, place - 1]], drawn[:, place])
    text = "\n\n".join(" ".join(words[number] for number in row) + "." for row in drawn)
    folder = tmp_path_factory.mktemp("chains")
    (folder / "text.txt").write_text(text)
    prepare([str(folder / "text.txt")], WordPieceTokenizer(learn_vocabulary(count_words([text]), 120)),
            folder / "made", heldout=0.1, workers=1)
    return Corpus(folder / "made")


def started(corpus, config):
    """A new model by the recipe, its objective and its batches."""
    config = config.resolved(MODEL)
    model = new_model(MODEL, config, corpus)
    objective = make_objective(config, model)
    return model, objective, objective.batches(corpus, config)


def heldout_loss_of_a_run(corpus, rate, steps):
    config = replace(RECIPE, learning_rate=rate, steps=steps, warmup_steps=steps // 10)
    model, objective, batches = started(corpus, config)
    list(Trainer(model, batches, config, objective=objective).steps())
    with workers(1) as team:
        return objective.evaluate(objective.heldout(corpus, config.resolved(MODEL)), team)[objective.main]


def test_the_suggestion_is_near_the_best_rate_of_real_runs_from_the_recipes_start(chains):
    model, objective, batches = started(chains, RECIPE)
    search = find_learning_rate(model, batches, RECIPE, low=1e-5, high=1.0, steps=40, objective=objective)
    losses = {rate: heldout_loss_of_a_run(chains, rate, 80) for rate in (1e-4, 1e-3, 1e-2, 1e-1)}
    best = min(losses, key=losses.__getitem__)
    assert best / 3.3 < search.suggestion < best * 3.3
    assert search.burst is not None
    assert search.suggestion < search.burst


def test_a_search_leaves_model_and_objective_as_they_were_and_is_the_same_again(chains):
    model, objective, batches = started(chains, RECIPE)
    before = model.params.flat.copy()
    first, again = (find_learning_rate(model, batches, RECIPE, low=1e-3, high=1e-1, steps=10, objective=objective)
                    for _ in range(2))
    assert first == again
    assert np.array_equal(model.params.flat, before)
    assert len(first.rates) == len(first.losses) == len(first.steps) == 5
    assert sorted(set(first.steps)) == [5, 10]            # five rates, then the three best for twice as long


def test_a_rate_at_which_training_breaks_off_has_an_infinite_loss_and_is_not_suggested(chains):
    model, objective, batches = started(chains, RECIPE)
    search = find_learning_rate(model, batches, RECIPE, low=1e-2, high=1e30, steps=10, objective=objective)
    assert search.losses[-1] == float("inf")
    assert search.suggestion < 1 < search.rates[-1]
    assert np.isfinite(model.params.flat).all()


@pytest.mark.parametrize("wrong", [{"low": 0.0}, {"low": 1e-2, "high": 1e-3}, {"steps": 5}])
def test_a_range_or_length_that_cannot_be_searched_is_refused(chains, wrong):
    model, objective, batches = started(chains, RECIPE)
    with pytest.raises(ConfigError, match="A search needs"):
        find_learning_rate(model, batches, RECIPE, objective=objective, **wrong)
