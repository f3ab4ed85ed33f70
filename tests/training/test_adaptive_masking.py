"""Adaptive masking: the rule, its guards, what is counted, and runs that are resumed bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from killed_runs import assert_same, whole_and_resumed

from mini_bert import CheckpointError, ConfigError, MiniBERT, register
from mini_bert.core.registry import restored_registry
from mini_bert.objectives.masked import MaskedLM, cut
from mini_bert.objectives.objective import PassOptions
from mini_bert.text.schedule import Step
from mini_bert.training.config import TrainingConfig, make_objective
from mini_bert.training.curricula.adaptive import AdaptiveWeights, next_weights
from mini_bert.training.overfit import overfit
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.trainer import Trainer
from mini_bert.training.update import BatchGradients
from mini_bert.workers import workers

ADAPTIVE = "adaptive(every=2)"
ORDINARY = np.arange(30) > 4


def learned(rounds, every=1, rate=0.15, **options):
    """Weights that have heard of these counts (asked, found), one pair a step."""
    weights = AdaptiveWeights(ORDINARY, every=every, **options)
    for step, counts in enumerate(rounds, 1):
        weights.learn(step, np.asarray(counts), rate)
    return weights


def some_counts(rng, rounds, most=20):
    asked = rng.integers(0, most, (rounds, 30)) * ORDINARY
    return [np.stack([a, rng.binomial(a, rng.random(30))]) for a in asked]


# -------------------------------------------------------------------- the rule


def test_the_weights_are_those_of_the_rule_written_as_a_loop():
    rates, every = [0.4, 0.3, 0.15, 0.15, 0.15, 0.15], 2
    rounds = some_counts(np.random.default_rng(0), len(rates))
    weights = AdaptiveWeights(ORDINARY, every=every)
    for step, (counts, rate) in enumerate(zip(rounds, rates, strict=True), 1):
        weights.learn(step, counts, rate)
    share = dict.fromkeys(range(5, 30), 1.0)                        # w / p
    for last in range(every, len(rates) + 1, every):
        p, new = rates[last - 1], {}
        for token, old in share.items():
            asked = sum(int(rounds[step][0][token]) for step in range(last - every, last))
            found = sum(int(rounds[step][1][token]) for step in range(last - every, last))
            accuracy = (found + 0.5) / (asked + 1)
            new[token] = max(0.2 * p * old + 0.8 * p * (1 - accuracy), 0.005)
        mean = sum(new.values()) / len(new)
        share = {token: p * w / mean / p for token, w in new.items()}
    np.testing.assert_allclose(weights.tables[1][ORDINARY], list(share.values()), rtol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.15, 0.4, 0.6]), st.integers(1, 500))
def test_no_weight_falls_below_the_floor_and_the_mean_stays(seed, rate, most):
    weights = learned(some_counts(np.random.default_rng(seed), 6, most + 1), rate=rate).tables[1][ORDINARY]
    assert weights.mean() == pytest.approx(1)
    assert weights.min() >= 0.005 / rate - 1e-12


def test_if_accuracies_stay_the_weights_become_proportional_to_what_is_not_found():
    missed = np.linspace(0.2, 1.0, 30)
    asked = np.full(30, 10**6) * ORDINARY
    weights = learned([np.stack([asked, np.round(asked * (1 - missed)).astype(int)])] * 20).tables[1][ORDINARY]
    np.testing.assert_allclose(weights, missed[ORDINARY] / missed[ORDINARY].mean(), rtol=1e-5)


def test_what_is_always_found_is_asked_for_now_and_then_and_what_nobody_has_seen_stays_in_the_middle():
    asked = np.full(30, 1000) * ORDINARY
    weights = learned([np.stack([asked, np.where(np.arange(30) < 20, asked, 0)])] * 20).tables[1]
    assert 0.02 < weights[5] / weights[29] < 0.03
    assert weights[29] > 2
    unseen = learned([np.zeros((2, 30), int)] * 3).tables[1]
    assert unseen == pytest.approx(1)                                     # what is not asked for counts as half known


def forgetful(rule, periods=100, asked_for=2000):
    """A learner of 200 tokens, frequent and rare, which learns by each answer and forgets a tenth in every period: how
    often each token was asked for in the last half, and what is known in the end."""
    rng, size = np.random.default_rng(0), 200
    frequency, weights, known = 1 / np.arange(1, size + 1), np.full(size, 0.15), np.zeros(size)
    total = np.zeros(size)
    for period in range(periods):
        share = frequency * weights
        asked = rng.multinomial(asked_for, share / share.sum())
        counts = np.stack([asked, rng.binomial(asked, known)])
        known = 1 - (1 - 0.9 * known) * np.exp(-asked / 4)
        weights = rule(weights, counts)
        total += asked if period >= periods // 2 else 0
    return total, known


def unguarded(w, counts):
    """The rule without floor, without mean, and without the half that an unknown accuracy has."""
    asked, found = counts
    accuracy = np.divide(found, asked, out=np.zeros(len(w)), where=asked > 0)
    return np.where(asked > 0, 0.2 * w + 0.8 * 0.15 * (1 - accuracy), w)


def test_without_its_guards_the_loop_stops_asking_for_what_it_once_found_and_forgets_it():
    even, known_evenly = forgetful(lambda w, counts: w)
    asked, known = forgetful(lambda w, counts: next_weights(w, counts, 0.15))
    lost, known_without = forgetful(unguarded)
    assert (even > 0).all()
    assert (asked > 0).all()
    assert known.mean() > known_evenly.mean()
    assert (lost == 0).mean() > 0.2
    assert known_without.mean() < 0.5 * known_evenly.mean()


def test_what_was_learned_is_in_force_one_period_later():
    counts = some_counts(np.random.default_rng(1), 1)[0]
    weights = learned([counts] * 3, every=3)
    assert weights.at(5) is None                          # all alike, until twice the period is over
    np.testing.assert_array_equal(weights.at(6), weights.tables[1])
    before = weights.at(6)
    for step in (4, 5, 6):
        weights.learn(step, 2 * counts, 0.15)
    np.testing.assert_array_equal(weights.at(8), before)
    assert not np.array_equal(weights.at(9), before)


# -------------------------------------------------------------------- what is counted


class Ahead:
    """Batches that are made a number of steps before they are taken."""

    def __init__(self, batches, depth):
        self.batches, self.depth, self.made = batches, depth, {}

    def __getitem__(self, step):
        for number in range(step, min(step + self.depth + 1, step.total)):
            if number not in self.made:
                self.made[number] = self.batches[Step(number, step.total)]
        return self.made.pop(int(step))


@pytest.mark.parametrize(("words", "model"), [
    ("masked", {}), ("masked + 0.5 token_order", {}), ("hybrid(causal=0.4)", {"score_terms": "causal_rows"}),
    ("replaced_tokens", {"mlm_head": "replaced_tokens"}), ("distil", {}), ("distil(everywhere=true, masked=0)", {})])
def test_the_counts_are_those_of_the_models_first_guesses_at_masked_tokens(words, model, corpus, model_config, settings,
                                                                           tmp_path):
    sizes = replace(model_config, dropout=0.0, init_std=0.3, **model)
    if words.startswith("distil"):
        MiniBERT(sizes, seed=7).save(tmp_path / "teacher")
        options = words.partition("(")[2].rstrip(")")
        words = f"distil(teacher='{tmp_path / 'teacher'}'{', ' if options else ''}{options})"
    config = replace(settings, objective=words, masking_weights=ADAPTIVE, masking_rate=0.4).resolved(sizes)
    objective = make_objective(config, MiniBERT(sizes))
    batch = objective.batches(corpus, config)[0]
    found = []
    for threads in (1, 2, 3):
        with workers(threads) as team:
            computed = BatchGradients(objective, team)
            computed.compute(batch, 0, 0)
            found.append(next(iter(computed.tallies.values())))
    first = objective.objectives[0] if hasattr(objective, "objectives") else objective
    batch = batch[0] if isinstance(batch, tuple) and isinstance(batch[0], tuple) else batch
    expected = np.zeros_like(found[0])
    for part in cut(batch, 4):
        rows = part.mask_positions if part.causal is None else part.mask_positions & ~part.causal[:, None]
        logits, _ = first.model.forward(part.input_ids, part.attention_mask, positions=rows, causal=part.causal)
        for target, guess in zip(part.target_ids[rows].tolist(), logits.argmax(axis=1).tolist(), strict=True):
            expected[:, target] += (1, guess == target)
    assert expected[1].sum() > 0
    for counts in found:
        np.testing.assert_array_equal(counts, expected)


def test_an_even_run_counts_nothing(corpus, model_config, settings):
    config = settings.resolved(model_config)
    objective = make_objective(config, MiniBERT(model_config))
    with workers(1) as team:
        computed = BatchGradients(objective, team)
        computed.compute(objective.batches(corpus, config)[0])
    assert computed.tallies == {}
    assert objective.state() == {}


# -------------------------------------------------------------------- runs


def run_config(settings, **changes):
    return replace(settings, steps=12, masking_weights=ADAPTIVE, masking_rate="0.5 -> 0.3", **changes)


@pytest.mark.parametrize(("threads", "changes"), [
    (1, {"masking_unit": "word", "objective": "masked + 0.5 token_order"}),
    (2, {"masking_unit": "span", "sequences": "sentences until 0.5, packed", "bucket": True})])
def test_a_killed_run_ends_with_the_same_bytes_weights_and_log(model_config, settings, corpus, tmp_path, threads,
                                                               changes):
    whole, resumed = whole_and_resumed(model_config, run_config(settings, **changes), corpus, tmp_path, threads)
    assert_same(whole, resumed)
    measured = [[{name: value for name, value in record.items() if name.startswith("masking")}
                 for record in read_log(tmp_path / name)] for name in ("whole", "killed")]
    assert len(measured[0]) == 4
    assert measured[0] == measured[1]
    plain = start_run(model_config, replace(run_config(settings, **changes), masking_weights="even"), corpus.directory,
                      tmp_path / "plain")
    plain.train()
    assert not np.array_equal(plain.model.params.flat, whole.model.params.flat)


def test_batches_that_are_made_a_period_ahead_are_the_same(model_config, settings, corpus):
    config = replace(run_config(settings), masking_weights="adaptive(every=3)").resolved(model_config)
    ends = []
    for depth in (0, 1, 3):
        objective = make_objective(config, MiniBERT(model_config))
        batches = Ahead(objective.batches(corpus, config), depth)
        list(Trainer(objective.model, batches, config, objective=objective).steps())
        ends.append(objective.model.params.flat)
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_a_skipped_step_teaches_the_weights_nothing(model_config, settings, corpus):
    config = run_config(settings).resolved(model_config)
    objective = make_objective(config, MiniBERT(model_config))
    trainer = Trainer(objective.model, objective.batches(corpus, config), config, objective=objective)
    compute, steps = BatchGradients.compute, iter(range(100))

    def broken(self, batch, *key):
        losses = compute(self, batch, *key)
        if next(steps) == 1:
            self.gradients.flat[0] = np.nan
        return losses

    BatchGradients.compute = broken
    try:
        asked = [objective.state()["masking_counts"][:, 0].sum() for _ in zip(trainer.steps(), range(3), strict=False)]
    finally:
        BatchGradients.compute = compute
    assert asked[0] > 0
    assert asked[1] == asked[0]
    assert asked[2] > asked[1]


def test_the_log_says_how_the_weights_stand(model_config, settings, corpus, run):
    start_run(model_config, run_config(settings), corpus.directory, run).train()
    first, *_, last = list(read_log(run))
    names = [f"masking_weights_{name}" for name in ("lowest", "highest", "hardest_tenth", "found")]
    assert all(name in first and name in last for name in names)
    assert 0 < last["masking_weights_lowest"] < 1 < last["masking_weights_highest"]
    assert 0.1 < last["masking_weights_hardest_tenth"] < 1
    assert 0 <= last["masking_weights_found"] <= 1


def test_a_run_can_be_given_weights_and_lose_them_again(model_config, settings, corpus, run):
    start_run(model_config, settings, corpus.directory, run).train()
    adaptive = resume_run(run, changes=[f"training.masking_weights={ADAPTIVE}", "training.steps=20"])
    adaptive.train()
    assert adaptive.objective.noted()["masking_weights_highest"] > 1
    resume_run(run, changes=["training.masking_weights=even", "training.steps=24"]).train()


def test_one_batch_is_learned_by_heart(model_config, settings, corpus):
    config = replace(run_config(settings), steps=300, learning_rate=2e-2).resolved(model_config)
    objective = make_objective(config, MiniBERT(replace(model_config, dropout=0.0)))
    batch = objective.batches(corpus, config)[0]
    loss, _ = overfit(objective.model, batch, config, target=0.1, objective=objective)
    assert loss < 0.1
    assert objective.noted()["masking_weights_found"] == pytest.approx(1, abs=0.1)


# -------------------------------------------------------------------- refused


@pytest.mark.parametrize(("word", "reason"), [
    ("adaptive(every=0)", "every must be a whole number of steps, at least 1, not 0"),
    ("adaptive(every=2.5)", "every must be a whole number of steps"),
    ("adaptive(floor=1.0)", "floor must be at least 0 and below 1, not 1.0"),
    ("adaptive(keep=-0.1)", "keep must be at least 0"), ("adaptive(rate=3)", "its options are every, keep, floor"),
    ("even(every=3)", "cannot be made"), ("hard", "'hard' is not a choice"), ("", "must be one word")])
def test_wrong_weights_are_refused_before_anything_is_written(word, reason):
    with pytest.raises(ConfigError, match=reason):
        TrainingConfig(masking_weights=word)


@pytest.mark.parametrize("words", ["causal", "token_order", "contrastive"])
def test_an_objective_that_masks_nothing_refuses_them(words, model_config, settings):
    model = MiniBERT(replace(model_config, score_terms="causal" if words == "causal" else ""))
    config = replace(settings, objective=words, masking_weights=ADAPTIVE).resolved(model_config)
    with pytest.raises(ConfigError, match=f"but the objective {words} masks no tokens; leave it at even"):
        make_objective(config, model)


def test_an_objective_of_ones_own_that_does_not_count_is_told_what_is_missing(model_config, settings, corpus, run):
    with restored_registry():
        @register("objective", "silent")
        class Silent(MaskedLM):
            main = "silent"

            def add_gradients(self, part, grads, key, factors):
                return {"silent": super().add_gradients(part, grads, key, factors)["silent"]}

        trainer = start_run(model_config, run_config(settings, objective="silent"), corpus.directory, run)
        with pytest.raises(ConfigError, match=r"must return self\.tally\(targets, found\)"):
            trainer.train()


@pytest.mark.parametrize("change", [
    {"masking_weights": np.ones((2, 29))}, {"masking_weights": np.full((2, 30), np.nan)},
    {"masking_weights": np.zeros((2, 30))}, {"masking_counts": np.ones((2, 2, 30))},
    {"masking_counts": np.stack([np.zeros((2, 30), np.int64), -np.ones((2, 30), np.int64)])},
    {"masking_counts": np.tile(np.array([[1], [2]]), (2, 1, 30))}, {"masking_steps": [1.5, 2]},
    {"masking_steps": None}])
def test_a_state_of_another_vocabulary_or_a_damaged_one_is_refused(change):
    weights = learned(some_counts(np.random.default_rng(2), 3))
    other = AdaptiveWeights(ORDINARY)
    other.restore(weights.state())
    np.testing.assert_array_equal(other.tables[1], weights.tables[1])
    with pytest.raises(CheckpointError, match="do not match this vocabulary"):
        other.restore(weights.state() | change)


def test_options_of_the_passes_do_not_change_what_is_counted(model_config, settings, corpus):
    config = run_config(settings).resolved(model_config)
    counted = []
    for size in (2, 8):
        objective = MaskedLM(MiniBERT(model_config), PassOptions(size))
        batch = objective.batches(corpus, config)[0]
        with workers(1) as team:
            computed = BatchGradients(objective, team)
            computed.compute(batch)
        counted.append(computed.tallies["masked_tally"])
    np.testing.assert_array_equal(*counted)
