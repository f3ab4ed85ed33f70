"""Wrappers of optimisers: their formulas, what they save, and what reaches the optimiser inside."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, MiniBERT, load_preset
from mini_bert.core.params import Parameters, ParamSpec
from mini_bert.training.config import TrainingConfig, make_optimiser
from mini_bert.training.memory import training_memory
from mini_bert.training.optimisers.adamw import AdamW
from mini_bert.training.optimisers.ema import ExponentialAverage
from mini_bert.training.optimisers.lookahead import Lookahead
from mini_bert.training.optimisers.sgd import SGD
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import start_run
from mini_bert.workers import Workers

LAYOUT = [ParamSpec("W", (30, 40), 1.0), ParamSpec("b", (40,), 1.0)]


def made() -> Parameters:
    params = Parameters(LAYOUT, np.float64)
    params.initialise(0)
    return params


def gradients(step: int) -> Parameters:
    grads = Parameters(LAYOUT, np.float64)
    grads.flat[...] = np.random.default_rng(step).standard_normal(grads.flat.size)
    return grads


@pytest.mark.parametrize(("k", "alpha"), [(6, 0.5), (1, 0.3), (5, 1.0)])
def test_a_hundred_steps_are_those_of_the_formula(k, alpha):
    params = made()
    lookahead = Lookahead(SGD(params, 0.1, momentum=0.9, weight_decay=0.0), k=k, alpha=alpha)
    fast, slow, b = params.flat.copy(), params.flat.copy(), 0.0
    for t in range(1, 101):
        lookahead.step(gradients(t))
        b = 0.9 * b + gradients(t).flat
        fast = fast - 0.1 * b
        if t % k == 0:
            slow = slow + alpha * (fast - slow)
            fast = slow
        np.testing.assert_allclose(params.flat, fast, rtol=0, atol=1e-12)
        with lookahead.evaluation_weights():
            np.testing.assert_allclose(params.flat, slow, rtol=0, atol=1e-12)
    assert lookahead.t == 100


@pytest.mark.parametrize("decay", [0.0, 0.9, 0.999])
def test_the_average_is_that_of_all_weights_so_far_and_changes_no_step(decay):
    """sum_s d^(t-s) w_s / sum_s d^(t-s) over the steps s = 1 ... t: the weights of step 0 are not in it."""
    params, plain = made(), made()
    average, alone = ExponentialAverage(AdamW(params, 0.1), decay=decay), AdamW(plain, 0.1)
    total, count = np.zeros_like(params.flat), 0.0
    for t in range(1, 101):
        average.step(gradients(t))
        alone.step(gradients(t))
        total, count = decay * total + plain.flat, decay * count + 1
        np.testing.assert_array_equal(params.flat, plain.flat)
        with average.evaluation_weights():
            np.testing.assert_allclose(params.flat, total / count, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(params.flat, plain.flat)


def test_wrappers_nest_and_settings_reach_the_one_inside():
    config = TrainingConfig(optimiser="lookahead(lookahead(adamw(beta2=0.95), k=2), k=3, alpha=0.8)", beta1=0.7,
                            weight_decay=0.3, freeze="b")
    params = made()
    outer = make_optimiser(config, params)
    inner = outer.inner.inner
    assert (outer.k, outer.alpha, outer.inner.k, outer.inner.alpha) == (3, 0.8, 2, 0.5)
    assert (inner.beta1, inner.beta2, inner.weight_decay) == (0.7, 0.95, 0.3)
    assert isinstance(inner, AdamW)
    assert set(outer.state) == {"slow", "inner.slow", "inner.inner.m", "inner.inner.v"}
    before = params["b"].copy()
    for t in range(1, 8):
        outer.step(gradients(t))
    assert np.array_equal(params["b"], before)
    again = make_optimiser(config, made())
    again.restore({name: array.copy() for name, array in outer.state.items()}, outer.t)
    again.params.flat[...] = params.flat
    for t in range(8, 20):
        for optimiser in (outer, again):
            optimiser.step(gradients(t))
    assert again.inner.inner.t == outer.t == 19
    np.testing.assert_array_equal(again.params.flat, params.flat)


@pytest.mark.parametrize("word", ["lookahead(adamw, k=5)", "ema(adamw, decay=0.9)", "ema(lookahead(adamw))"])
def test_the_averaged_weights_are_what_is_evaluated_and_saved(word, model_config, settings, corpus, run):
    config = replace(settings, optimiser=word, freeze="layer_0")           # the last step is no multiple of k
    trainer = start_run(model_config, config, corpus.directory, run)
    before = trainer.model.params.flat.copy()
    trainer.train()
    weights, average = trainer.model.params, trainer.optimiser.average
    assert not np.array_equal(weights.flat, average)
    for name, model in (("final", average), ("checkpoints/step-12", weights.flat)):
        np.testing.assert_array_equal(MiniBERT.load(run / name).params.flat, model)
    np.testing.assert_array_equal(average[weights.slices["W_Q_0"]], before[weights.slices["W_Q_0"]])
    with trainer.optimiser.evaluation_weights():
        loss = trainer.objective.evaluate(trainer.heldout, Workers(1))["masked"]
    assert list(read_log(run))[-1]["eval_loss"] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize(("word", "said"), [
    ("lookahead", r"wraps one other optimiser; write lookahead\(adamw\)"), ("lookahead(6)", "wraps one other"),
    ("lookahead(adamw, sgd)", "wraps one other"), ("adamw(sgd)", "adamw wraps no other"),
    ("lookahead(newton)", "'newton' is not a choice"), ("lookahead(adamw, k=0)", "k must be a whole number"),
    ("lookahead(adamw, k=2.5)", "k must be a whole number"), ("lookahead(adamw, alpha=2)", "alpha must be above 0"),
    ("lookahead(adamw(k=2))", r"adamw\(k=2\) cannot be made"), ("lookahead(adamw, m=2)", "its options are k, alpha"),
    ("ema", r"write ema\(adamw\)"), ("ema(adamw, decay=1)", r"decay must be in \[0, 1\)"),
    ("lookahead(adamw(learning_rate=3))", "takes its learning rate from the schedule"),
    ("lion(beta3=1)", r"it has no option beta3; its options are beta1, beta2, weight_decay\.$"),
    ("lion(factors=3)", "it has no option factors"), ("lion(1e-3)", "each option needs its name"),
    ("lookahead(sgd)", "beta1 is set, but the optimiser")])
def test_wrong_words_are_answered_in_a_sentence(word, said):
    with pytest.raises(ConfigError, match=said):
        make_optimiser(TrainingConfig(optimiser=word, beta1=0.5), made())


def test_an_optimiser_without_weight_decay_is_one_whose_decay_is_zero():
    assert make_optimiser(TrainingConfig(optimiser="sgd", weight_decay=0.0, beta1=0.0), made()).weight_decay == 0


def test_moments_are_stored_as_the_config_says_and_averages_of_weights_are_not():
    config = TrainingConfig(optimiser="ema(lookahead(adamw))", moments="bfloat16")
    optimiser, params = make_optimiser(config, made()), made()
    kinds = {name: array.dtype.name for name, array in optimiser.state.items()}
    assert kinds == {"average": "float64", "inner.slow": "float64",
                     "inner.inner.m": "uint16", "inner.inner.v": "uint16"}
    optimiser.step(gradients(1))
    assert optimiser.state["inner.inner.m"] is optimiser.inner.inner.m
    assert optimiser.inner.inner.m.any()
    assert not np.array_equal(optimiser.params.flat, params.flat)
    with pytest.raises(ConfigError, match="moments: 'float16' is not a choice"):
        TrainingConfig(moments="float16")


def test_the_forecast_counts_what_each_optimiser_keeps():
    config = load_preset("mini")
    n = 4 * MiniBERT(config, seed=None).get_parameter_count()
    kept = {word: training_memory(config, 8, optimiser=word).optimiser / n
            for word in ("adamw", "sgd", "lion", "muon", "lookahead(adamw)", "ema(lookahead(sgd))")}
    halves = training_memory(config, 8, optimiser="ema(adamw)", moments="bfloat16").optimiser
    assert halves == 2 * n                # two moments of half the size, and the average
    assert kept == {"adamw": 2, "sgd": 1, "lion": 1, "muon": 2, "lookahead(adamw)": 3, "ema(lookahead(sgd))": 3}
