"""The hybrid of masked and causal language modelling: its batches, its losses, and one model for both uses."""

from dataclasses import replace

import numpy as np
import pytest

from mini_bert import ConfigError, InputError, MiniBERT
from mini_bert.inference.fill_mask import fill_mask
from mini_bert.inference.generate import Sampling, generate_ids
from mini_bert.objectives.making import objective_from
from mini_bert.training.config import make_objective
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import start_run
from mini_bert.workers import Workers


@pytest.fixture
def config(model_config):
    return replace(model_config, score_terms="causal_rows")


def prepared(config, settings, corpus, words="hybrid(causal=0.4)"):
    made = replace(settings, objective=words).resolved(config)
    objective = make_objective(made, MiniBERT(replace(config, dropout=0.0), dtype=np.float64))
    return objective, objective.batches(corpus, made), made


def test_a_share_of_the_rows_is_whole_and_predicts_the_next_token_the_others_are_masked(config, settings, corpus):
    objective, batches, made = prepared(config, replace(settings, batch_size=32), corpus)
    masked = make_objective(replace(made, objective="masked"), objective.model).batches(corpus, made)
    mask, shares = corpus.tokenizer.vocabulary.mask, []
    for step in range(len(batches)):
        batch, plain = batches[step], masked[step]
        assert (np.diff(batch.causal.astype(int)) >= 0).all()              # causal rows come last
        for row, causal in enumerate(batch.causal):
            ids, targets, chosen, real = (field[row] for field in batch[:4])
            if causal:
                assert mask not in ids
                assert np.array_equal(targets[chosen], ids[real][1:])
            else:
                same = (plain.target_ids == targets).all(axis=1).argmax()
                assert np.array_equal(plain.input_ids[same], ids)
                assert np.array_equal(plain.mask_positions[same], chosen)
        shares.append(batch.causal.mean())
        assert objective.counts(batch) == {
            "masked": batch.mask_positions[~batch.causal].sum(), "causal": batch.mask_positions[batch.causal].sum()}
    assert 0.3 < np.mean(shares) < 0.5


def test_causal_rows_see_nothing_later_and_the_others_everything(config, rng):
    model = MiniBERT(replace(config, init_std=0.3, dropout=0.0), dtype=np.float64)
    ids = rng.integers(5, 60, (2, 9))
    later = ids.copy()
    later[:, 6] = (later[:, 6] - 4) % 55 + 5
    before, after = (model.encode(each, causal=np.array([True, False]))[0] for each in (ids, later))
    np.testing.assert_array_equal(before[0, :6], after[0, :6])
    assert (np.abs(before[1, :6] - after[1, :6]).max(axis=1) > 1e-9).all()
    assert (np.abs(before[0, 6:] - after[0, 6:]).max(axis=1) > 1e-9).all()
    np.testing.assert_allclose(before[1], model.encode(ids)[0][1], rtol=1e-11)      # as if nobody had asked
    causal = MiniBERT(replace(model.config, score_terms="causal"), dtype=np.float64)
    causal.params.flat[...] = model.params.flat
    np.testing.assert_allclose(before[0], causal.encode(ids)[0][0], rtol=1e-12)


def test_the_losses_are_those_of_the_two_objectives_weighted_by_their_shares(config, settings, corpus):
    objective, _, made = prepared(config, settings, corpus)
    assert objective.losses == {"masked": 0.6, "causal": 0.4}
    found = objective.evaluate(objective.heldout(corpus, made), Workers(1))
    plain = objective_from("masked", objective.model)
    assert found["masked"] == pytest.approx(plain.evaluate(plain.heldout(corpus, made), Workers(1))["masked"])
    causal = MiniBERT(replace(objective.model.config, score_terms="causal"), dtype=np.float64)
    causal.params.flat[...] = objective.model.params.flat
    alone = objective_from("causal", causal)
    assert found["causal"] == pytest.approx(alone.evaluate(alone.heldout(corpus, made), Workers(1))["causal"])
    assert {"masked_accuracy", "causal_accuracy"} <= found.keys()


def test_one_trained_model_fills_masks_and_generates(config, settings, corpus, run):
    start_run(config, replace(settings, objective="hybrid", steps=8, checkpoint_every=8), corpus.directory, run).train()
    last = list(read_log(run))[-1]
    assert set(last["losses"]) == set(last["eval_losses"]) == {"masked", "causal"}
    assert last["eval_loss"] == last["eval_losses"]["masked"]
    model = MiniBERT.load(run / "final")
    assert len(fill_mask(model, corpus.tokenizer, "the [MASK] sat on a mat", top=3)[0]) == 3
    prompt = np.array([[2, 9, 7]])
    drawn = [int(ids[0]) for ids in generate_ids(model, prompt, 5, Sampling(temperature=0))]
    for _ in range(5):                                          # the same without keys that are kept
        logits, _ = model.forward(prompt, causal=np.ones(1, bool))
        prompt = np.append(prompt, logits[:, -1].argmax(axis=1)[:, None], axis=1)
    assert drawn == prompt[0, 3:].tolist()


@pytest.mark.parametrize(("words", "terms", "said"), [
    ("hybrid", "", "score_terms must have causal_rows"), ("hybrid", "causal", "and not causal"),
    ("hybrid(causal=0)", "causal_rows", "between 0 and 1, not 0"), ("hybrid(causal=true)", "causal_rows", "not True")])
def test_what_cannot_be_learned_so_is_refused_in_a_sentence(model_config, words, terms, said):
    with pytest.raises(ConfigError, match=said):
        objective_from(words, MiniBERT(replace(model_config, score_terms=terms)))


def test_causal_rows_are_refused_where_the_model_cannot_hide_the_future(model_config, config):
    ids = np.full((2, 4), 7)
    with pytest.raises(InputError, match="score_terms need causal_rows"):
        MiniBERT(model_config).encode(ids, causal=np.array([True, False]))
    with pytest.raises(InputError, match=r"causal has the shape \(3,\)"):
        MiniBERT(config).encode(ids, causal=np.ones(3, bool))
