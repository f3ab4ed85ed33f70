"""Whatever takes the steps: a run that is killed, or has other threads, ends with the same bytes, and it can learn."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import MiniBERT
from mini_bert.objectives.masked import MaskedLM
from mini_bert.training.config import make_optimiser
from mini_bert.training.overfit import overfit
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.trainer import Trainer
from mini_bert.training.update import Update
from mini_bert.workers import workers

# (word, how moments and activations are stored), with a learning rate that suits it
OPTIMISERS = {("adamw", "float32"): 1e-2, ("lion", "float32"): 2e-3, ("muon", "float32"): 1e-2,
              ("sgd(momentum=0.9)", "bfloat16"): 0.1, ("lookahead(adamw, k=5)", "float32"): 1e-2,
              ("lookahead(muon, k=3)", "bfloat16"): 1e-2, ("ema(lion, decay=0.9)", "float32"): 2e-3,
              ("ema(adamw, decay=0.9)", "bfloat16"): 1e-2}


@pytest.fixture(params=OPTIMISERS, ids="-".join)
def config(request, settings):
    word, stored = request.param
    return replace(settings, optimiser=word, moments=stored, activations=stored,
                   learning_rate=OPTIMISERS[request.param])


def arrays(trainer: Trainer) -> dict[str, np.ndarray]:
    return {"weights": trainer.model.params.flat, **trainer.optimiser.state}


def assert_same(one: Trainer, other: Trainer) -> None:
    assert arrays(one).keys() == arrays(other).keys()
    for name, array in arrays(one).items():
        np.testing.assert_array_equal(array, arrays(other)[name], err_msg=name)


def test_a_killed_run_ends_with_the_same_bytes(model_config, config, corpus, tmp_path):
    config = replace(config, steps=7, eval_every=0)
    whole = start_run(model_config, config, corpus.directory, tmp_path / "whole")
    whole.train()
    killed = start_run(model_config, config, corpus.directory, tmp_path / "killed")
    with killed._loop() as loop:
        for _ in range(6):
            killed._advance(loop)
    killed.lock.release()
    resumed = resume_run(tmp_path / "killed", threads=1)
    assert resumed.state.step == 4
    resumed.train()
    assert_same(whole, resumed)
    finals = [MiniBERT.load(tmp_path / name / "final").params.flat for name in ("whole", "killed")]
    np.testing.assert_array_equal(*finals)
    with whole.optimiser.evaluation_weights():
        np.testing.assert_array_equal(finals[0], whole.model.params.flat)


def test_the_number_of_threads_changes_no_bit(model_config, config, corpus):
    trained = []
    for threads in (1, 2, 4):
        model = MiniBERT(model_config)
        trainer = Trainer(model, MaskedLM(model).batches(corpus, config.resolved(model_config)),
                          replace(config, threads=threads, steps=5))
        trainer.train()
        trained.append(trainer)
    assert_same(trained[0], trained[1])
    assert_same(trained[0], trained[2])


def test_one_batch_is_learned_by_heart(model_config, config, corpus):
    model = MiniBERT(replace(model_config, dropout=0.0))
    batch = MaskedLM(model).batches(corpus, replace(config, batch_size=4).resolved(model_config))[0]
    loss, _ = overfit(model, batch, replace(config, steps=400, weight_decay=0.0))
    assert loss < 0.05


def test_what_is_frozen_keeps_its_bits_and_lower_layers_move_less(model_config, config, corpus):
    """One step from zero moments: with half the rate from each layer to the one below it, half the change."""
    changes = {}
    for layer_decay in (1.0, 0.5):
        model = MiniBERT(model_config, dtype=np.float64)
        before = {name: value.copy() for name, value in model.params.items()}
        objective = MaskedLM(model)
        chosen = replace(config, layer_decay=layer_decay, freeze="embeddings W1_1", weight_decay=0.1)
        with workers(2) as team:
            update = Update(objective, make_optimiser(chosen, model.params), team)
            update.step(objective.batches(corpus, config.resolved(model_config))[0], (0, 0), 1e-2)
        for name in ("token_embeddings", "position_embeddings", "W1_1"):
            np.testing.assert_array_equal(model.params[name], before[name])
        changes[layer_decay] = {name: model.params[name] - before[name] for name in before}
    for name, factor in (("W_Q_0", 0.25), ("b1_0", 0.25), ("W_Q_1", 0.5), ("ln1_gamma_1", 0.5), ("mlm_head_W", 1.0)):
        assert changes[1.0][name].any()
        np.testing.assert_allclose(changes[0.5][name], factor * changes[1.0][name], rtol=1e-9, atol=1e-15)
