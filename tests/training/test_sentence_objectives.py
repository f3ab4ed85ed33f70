"""Next sentence, sentence order and token order: what is asked, and several losses that read one pass of the model."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, CorpusError, MiniBERT
from mini_bert.objectives.making import objective_from
from mini_bert.objectives.masked import MaskedLM
from mini_bert.objectives.one_pass import OnePass, in_one_pass
from mini_bert.objectives.token_order import shuffled
from mini_bert.objectives.weighted_sum import Term
from mini_bert.text.sequences.pairs import RandomPairs
from mini_bert.training.config import make_objective
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import start_run
from mini_bert.training.update import BatchGradients
from mini_bert.workers import Workers

ALL = "masked + 0.5 next_sentence + 2 token_order"


@pytest.fixture
def config(model_config):
    return replace(model_config, pooler="tanh", sentence_head="pooled", token_types=2, dropout=0.0)


def prepared(words, config, settings, corpus, sequences="pairs", dtype=np.float64):
    made = replace(settings, objective=words, sequences=sequences, micro_batch_size=3).resolved(config)
    objective = make_objective(made, MiniBERT(config, dtype=dtype))
    return objective, objective.batches(corpus, made), made


# -------------------------------------------------------------------- token order


def test_shuffled_trigrams_are_other_orders_of_ordinary_tokens(rng):
    ids = np.arange(5, 5 + 60 * 40).reshape(60, 40)
    free = rng.random(ids.shape) < 0.9
    found, chosen = shuffled(ids, free, rng.integers(0, 2**63, ids.shape).astype(np.uint64), 0.05)
    assert (found[~chosen] == ids[~chosen]).all()
    assert not (chosen & ~free).any()
    for row in range(len(ids)):
        starts = np.flatnonzero(chosen[row])[::3]
        assert len(starts) == round(0.05 * free[row].sum())
        for start in starts:
            after, before = found[row, start : start + 3], ids[row, start : start + 3]
            assert sorted(after) == before.tolist()
            assert after.tolist() != before.tolist()
    orders = {tuple(np.argsort(found[row, start : start + 3])) for row in range(len(ids))
              for start in np.flatnonzero(chosen[row])[::3]}
    assert len(orders) == 5
    every = np.zeros(40)
    for key in range(200):
        lots = np.random.default_rng(key).integers(0, 2**63, ids.shape).astype(np.uint64)
        every += shuffled(ids, np.ones_like(free), lots, 0.05)[1].mean(axis=0)
    assert every[2:-2].min() > 0.8 * every[2:-2].mean()         # every place is about as likely as any other


def test_a_sequence_too_short_for_a_trigram_stays_as_it_is():
    ids = np.array([[2, 9, 8, 3]])
    free = np.array([[False, True, True, False]])
    found, chosen = shuffled(ids, free, np.array([[3, 1, 2, 5]], np.uint64), 0.05)
    assert np.array_equal(found, ids)
    assert not chosen.any()


# -------------------------------------------------------------------- one pass


def test_losses_on_the_same_pairs_are_computed_in_one_pass(config, settings, pair_corpus, monkeypatch):
    objective, batches, _ = prepared(ALL, config, settings, pair_corpus)
    passes, encode = [], MiniBERT.encode
    monkeypatch.setattr(MiniBERT, "encode", lambda *given, **more: passes.append(1) or encode(*given, **more))
    gradients = BatchGradients(objective, Workers(1))
    losses = gradients.compute(batches[0])
    assert len(passes) == len(objective.micro_batches(batches[0]))
    assert losses["next_sentence"].count == len(batches[0][0].input_ids)
    assert objective.tokens(batches[0]) == batches[0][0].attention_mask.sum()


def test_the_gradient_of_one_pass_is_the_sum_of_the_gradients_of_passes_of_their_own(config, settings, pair_corpus):
    objective, batches, _ = prepared(ALL, config, settings, pair_corpus)
    batch = batches[0]
    gradients = BatchGradients(objective, Workers(1))
    losses = gradients.compute(batch)
    expected = 0.0
    for one, own in zip(objective.objectives, batch, strict=True):
        grads = objective.params.zeros_like()
        sums = [one.add_gradients(part, grads, None, {one.main: 1.0})[one.main] for part in one.micro_batches(own)]
        assert sum(sums) == pytest.approx(losses[one.main].total)
        expected += objective.losses[one.main] * grads.flat / losses[one.main].count
    np.testing.assert_allclose(gradients.gradients.flat / gradients.count, expected, rtol=1e-8, atol=1e-12)


def test_what_one_loss_has_changed_no_other_chooses(config, settings, pair_corpus):
    for words in ("masked + token_order", "token_order + masked"):
        _, batches, _ = prepared(words, config, settings, pair_corpus)
        for step in range(4):
            first, second = batches[step]
            assert np.array_equal(first.input_ids, second.input_ids)
            assert not (first.mask_positions & second.mask_positions).any()
            masked, moved = (own for word, own in sorted(zip(words.split(" + "), (first, second), strict=True)))
            rows, _, _ = batches.several[0].rows(step)
            for own in (masked, moved):
                assert np.array_equal(own.target_ids[own.mask_positions], rows.ids[own.mask_positions])
            same = ~(first.mask_positions | second.mask_positions)
            assert np.array_equal(first.input_ids[same], rows.ids[same])


def test_objectives_on_other_sequences_have_passes_of_their_own(config, settings, pair_corpus):
    def kinds(words, sequences):
        found = prepared(words, config, settings, pair_corpus, sequences)[0]
        inner = found.objectives if not isinstance(found, OnePass) else [found]
        return [[each.main for each in one.objectives] if isinstance(one, OnePass) else one.main for one in inner]

    assert kinds("masked + next_sentence", "pairs") == [["masked", "next_sentence"]]
    assert kinds("masked + next_sentence", "packed") == ["masked", "next_sentence"]
    assert kinds("masked + next_sentence + sentence_order", "pairs") == [["masked", "next_sentence"], "sentence_order"]
    assert kinds("next_sentence + masked + token_order", "packed") == ["next_sentence", ["masked", "token_order"]]


def test_an_objective_that_inherits_from_another_does_not_share_its_pass(config):
    class Own(MaskedLM):
        main = "own"

    model = MiniBERT(config)
    terms = [objective_from("masked", model), Own(model)]
    assert len(in_one_pass([Term(1.0, objective) for objective in terms], "packed")) == 2


# -------------------------------------------------------------------- runs


@pytest.mark.parametrize("sequences", ["pairs", "packed"])
def test_each_loss_of_a_sum_is_logged_and_evaluated_by_itself(config, settings, pair_corpus, tmp_path, sequences):
    changes = {"sequences": sequences, "objective": "masked + 0.5 sentence_order"}
    trainer = start_run(config, replace(settings, **changes), pair_corpus.directory, tmp_path / "run")
    trainer.train()
    last = list(read_log(tmp_path / "run"))[-1]
    assert set(last["losses"]) == set(last["eval_losses"]) == {"masked", "sentence_order"}
    assert {"masked_accuracy", "sentence_order_accuracy"} <= last.keys()
    alone = make_objective(replace(trainer.config, objective="sentence_order"), trainer.model)
    parts = alone.heldout(pair_corpus, trainer.config)
    assert last["eval_losses"]["sentence_order"] == pytest.approx(
        alone.evaluate(parts, Workers(1))["sentence_order"], rel=1e-6)


def test_what_the_model_or_the_text_cannot_give_is_refused_in_a_sentence(model_config, config, corpus):
    for words in ("next_sentence", "masked + sentence_order"):
        with pytest.raises(ConfigError, match=r"model\.sentence_head=pooled and model\.token_types=2"):
            objective_from(words, MiniBERT(model_config))
    with pytest.raises(ConfigError, match="share must be above 0 and at most 1/3"):
        objective_from("token_order(share=0.5)", MiniBERT(config))
    with pytest.raises(CorpusError, match="no document has two sentences"):
        RandomPairs(corpus, "train", 16)
