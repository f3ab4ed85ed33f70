"""Fine-tuning learns, keeps the best, stops early, and leaves alone what it should."""

import numpy as np
import pytest

from mini_bert import ConfigError, MiniBERT, ModelConfig
from mini_bert.core.task_model import TaskBatch, TaskModel
from mini_bert.errors import DataError, NumericalError
from mini_bert.training.finetune import FinetuneConfig, finetune

CONFIG = ModelConfig(num_layers=1, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=40, max_seq_length=16)
RNG = np.random.default_rng(0)
IDS = RNG.integers(5, 40, (240, 10))
LABELS = (IDS < 8).any(axis=1).astype(int)


def collate(numbers) -> TaskBatch:
    return TaskBatch(IDS[numbers], np.ones((len(numbers), 10), bool), LABELS[numbers])


def accuracy(model: TaskModel) -> float:
    return float((model.scores(collate(np.arange(240))).argmax(axis=1) == LABELS).mean())


def made(head: str = "plain") -> TaskModel:
    return TaskModel(MiniBERT(ModelConfig(**{**CONFIG.to_dict(), "mlm_head": head})), "sequence", 2)


@pytest.mark.parametrize("head", ["plain", "bert"])               # an untied and a tied MLM head
@pytest.mark.parametrize("threads", [1, 2])
def test_it_learns_and_any_number_of_threads_gives_the_same(head, threads):
    model = made(head)
    before = model.params["mlm_head_b"].copy()
    outcome = finetune(model, [10] * 240, collate, accuracy, FinetuneConfig(
        epochs=12, learning_rate=1e-2, threads=threads, patience=0, micro_batch_size=8))
    assert outcome.best == max(outcome.scores) == accuracy(model) > 0.9
    assert np.array_equal(model.params["mlm_head_b"], before)
    other = made(head)
    finetune(other, [10] * 240, collate, accuracy, FinetuneConfig(
        epochs=12, learning_rate=1e-2, threads=3 - threads, patience=0, micro_batch_size=8))
    assert np.array_equal(model.params.flat, other.params.flat)


def test_training_ends_when_nothing_gets_better():
    figures = iter([0.5, 0.7, 0.6, 0.6, 0.6, 0.9])
    states = []
    model = made()

    def score(network: TaskModel) -> float:
        states.append(network.params.flat.copy())
        return next(figures)

    outcome = finetune(model, [10] * 64, collate, score, FinetuneConfig(epochs=10, patience=2))
    assert (outcome.best, outcome.scores, outcome.stopped_early) == (0.7, [0.5, 0.7, 0.6, 0.6], True)
    assert np.array_equal(model.params.flat, states[1])           # the best, not the last


def test_with_lookahead_the_slow_weights_are_scored_and_kept():
    model = made()
    start, states = model.params.flat.copy(), []

    def score(network: TaskModel) -> float:
        states.append(network.params.flat.copy())
        return 1.0

    settings = FinetuneConfig(epochs=1, optimiser="lookahead(adamw, k=100)", patience=0)
    finetune(model, [10] * 64, collate, score, settings)              # two steps: the slow weights have not moved
    assert np.array_equal(states[0], start)
    assert np.array_equal(model.params.flat, start)


def test_frozen_parts_stay():
    model = made()
    before = {name: value.copy() for name, value in model.params.items()}
    finetune(model, [10] * 64, collate, accuracy, FinetuneConfig(epochs=2, freeze="embeddings layer_0"))
    moved = {name for name, value in model.params.items() if not np.array_equal(value, before[name])}
    assert moved == {"final_ln_gamma", "final_ln_beta", "task_W", "task_b"}


def test_examples_come_once_an_epoch_in_batches_of_similar_length():
    lengths = RNG.integers(2, 11, 240).tolist()
    seen: list[np.ndarray] = []

    def watched(numbers) -> TaskBatch:
        seen.append(numbers)
        return collate(numbers)

    finetune(made(), lengths, watched, lambda model: 0.0, FinetuneConfig(epochs=1, batch_size=16, micro_batch_size=16))
    assert sorted(np.concatenate(seen).tolist()) == list(range(240))
    assert max(np.ptp(np.array(lengths)[numbers]) for numbers in seen) <= 2


@pytest.mark.parametrize(("settings", "words"), [
    ({"epochs": 0}, "epochs must be at least 1"), ({"schedule": "steep"}, "is not a choice"),
    ({"dropout": 1.0}, "dropout"), ({"layer_decay": 0}, "layer_decay"), ({"rate": 1}, "nearest valid key")])
def test_wrong_settings_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        FinetuneConfig.from_dict(settings)


def test_nothing_to_learn_from_and_losses_that_burst_are_said():
    with pytest.raises(DataError, match="no examples"):
        finetune(made(), [], collate, accuracy, FinetuneConfig())
    model = made()
    model.params["task_b"][...] = np.inf
    with pytest.raises(NumericalError, match="lower learning rate"):
        finetune(model, [10] * 32, collate, accuracy, FinetuneConfig())
