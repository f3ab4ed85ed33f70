"""How a new model begins by its training config."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, MiniBERT
from mini_bert.text.batches import MLMBatches
from mini_bert.training.config import TrainingConfig
from mini_bert.training.initial_model import new_model
from mini_bert.training.loop import Listener
from mini_bert.training.trainer import Trainer


def test_a_normal_model_is_as_drawn(corpus, model_config):
    made = new_model(model_config, TrainingConfig(seed=3), corpus)
    assert np.array_equal(made.params.flat, MiniBERT(model_config, seed=3).params.flat)


def test_the_bias_gives_the_frequencies_of_the_text_for_training(corpus, model_config):
    made = new_model(model_config, TrainingConfig(frequency_bias=True), corpus)
    tokens = np.concatenate([corpus.document(number) for number in corpus.split("train")])
    counts = np.bincount(tokens, minlength=model_config.vocab_size) + 1
    np.testing.assert_allclose(np.exp(made.params["mlm_head_b"]), counts / counts.sum(), rtol=1e-5)


def test_local_changes_the_beginning(corpus, model_config):
    made = new_model(model_config, TrainingConfig(init="local"), corpus)
    assert made.params["token_embeddings"].std() > 0.2


@pytest.mark.parametrize(("changes", "settings", "words"), [
    ({"position_embeddings": "none"}, {"init": "local"}, "set training.init=normal"),
    ({"mlm_head": "none"}, {"frequency_bias": True}, "a bias for each word")])
def test_what_does_not_suit_is_refused(corpus, model_config, changes, settings, words):
    with pytest.raises(ConfigError, match=words):
        new_model(replace(model_config, **changes), TrainingConfig(**settings), corpus)


@pytest.mark.parametrize(("steps", "evaluations", "expected"), [(12, 4, [3, 6, 9, 12]), (10, 3, [4, 7, 10]),
                                                                (3, 5, [1, 2, 3])])
def test_so_many_evaluations_are_spread_evenly(corpus, model_config, steps, evaluations, expected):
    seen = []

    class Watches(Listener):
        def logged(self, record):
            if "eval_loss" in record:
                seen.append(record["step"])

    batches = MLMBatches(corpus, max_seq_length=16, batch_size=4)
    config = TrainingConfig(steps=steps, evaluations=evaluations, batch_size=4, threads=1)
    Trainer(MiniBERT(model_config), batches, config, heldout=[batches[0]], listener=Watches()).train()
    assert seen == expected


def test_words_begin_as_those_of_a_trained_model(corpus, model_config, tmp_path):
    trained = MiniBERT(replace(model_config, num_layers=1), seed=9)
    trained.save(tmp_path)
    corpus.tokenizer.save(tmp_path)
    drawn = MiniBERT(model_config, seed=0).params
    made = new_model(model_config, TrainingConfig(init=f"words(of='{tmp_path}')"), corpus).params
    theirs = trained.params["mlm_head_W"].T
    table = made["token_embeddings"]
    cosines = np.corrcoef((theirs - theirs.mean(axis=0)).ravel(), table.ravel())
    np.testing.assert_allclose(cosines, 1, atol=1e-6)
    np.testing.assert_allclose(table.std(), model_config.init_std, rtol=1e-4)
    for name in made:
        assert name == "token_embeddings" or np.array_equal(made[name], drawn[name])


def test_words_of_another_width_are_refused(corpus, model_config, tmp_path):
    MiniBERT(replace(model_config, hidden_size=2 * model_config.hidden_size), seed=9).save(tmp_path)
    corpus.tokenizer.save(tmp_path)
    with pytest.raises(ConfigError, match="choose a model of the same width"):
        new_model(model_config, TrainingConfig(init=f"words(of='{tmp_path}')"), corpus)
