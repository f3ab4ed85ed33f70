"""Objectives on running text: batches, refusals, learning, threads, and runs that are killed.

What each of hybrid, replaced_tokens and the objectives on sentences does is in files of its own.
"""

from dataclasses import replace

import numpy as np
import pytest
from test_objectives import assert_same, whole_and_resumed

from mini_bert import ConfigError, InputError, MiniBERT, ModelConfig
from mini_bert.core.gradcheck import relative_error
from mini_bert.core.memory import memory_after
from mini_bert.core.ops.cross_entropy import cross_entropy_forward
from mini_bert.evaluation.segments import segment_losses
from mini_bert.objectives.causal import next_tokens, read_in_segments
from mini_bert.objectives.making import objective_from
from mini_bert.objectives.permuted import permuted_ranks
from mini_bert.training.config import make_objective
from mini_bert.training.overfit import overfit
from mini_bert.training.runs.log import read_log
from mini_bert.training.runs.run import start_run
from mini_bert.training.update import BatchGradients
from mini_bert.workers import Workers, workers

XL = {"score_terms": "relative(shared=true) + causal", "stack": "recurrent", "position_embeddings": "none"}
XLNET = {"score_terms": "segments + relative", "stack": "two_stream", "position_embeddings": "none", "token_types": 5,
         "embeddings": "sum(types=false)"}
PAIRS = {"pooler": "tanh", "sentence_head": "pooled", "token_types": 2}
ELECTRA = {"mlm_head": "replaced_tokens", "embedding_size": 8, "embedding_layernorm": True, "token_types": 2}
OBJECTIVES = {"causal": {"score_terms": "causal"}, "causal(segments=3)": XL, "permuted": XLNET,
              "hybrid(causal=0.4)": {"score_terms": "causal_rows"}, "token_order": {}, "next_sentence": PAIRS,
              "sentence_order": PAIRS, "masked + 0.5 sentence_order + token_order": PAIRS,
              "replaced_tokens(generator=0.5, weight=2.0)": ELECTRA}


@pytest.fixture(params=OBJECTIVES)
def words(request) -> str:
    return request.param


@pytest.fixture
def config(words, model_config) -> ModelConfig:
    return replace(model_config, **OBJECTIVES[words])


@pytest.fixture
def its_settings(words, settings):
    return replace(settings, sequences="pairs" if "sentence" in words else "packed")


@pytest.fixture
def text(words, corpus, pair_corpus):
    return pair_corpus if "sentence" in words else corpus


def prepared(words, config, settings, corpus):
    """The objective and the batches of a run."""
    made = replace(settings, objective=words, micro_batch_size=3).resolved(config)
    objective = make_objective(made, MiniBERT(config, dtype=np.float64))
    return objective, objective.batches(corpus, made), made


def test_every_token_but_the_last_predicts_the_next_one(model_config, settings, corpus):
    _, batches, _ = prepared("causal", replace(model_config, score_terms="causal"), settings, corpus)
    batch = batches[1]
    for ids, targets, predicts, mask in zip(*batch[:4], strict=True):
        real = ids[mask]
        assert np.array_equal(targets[predicts], real[1:])
        assert predicts.sum() == mask.sum() - 1
    assert batch.order is None


def test_segments_are_of_running_text_with_special_tokens_at_the_ends_of_documents(model_config, settings, corpus):
    _, batches, _ = prepared("causal(segments=2)", replace(model_config, **XL), settings, corpus)
    vocabulary, windows = corpus.tokenizer.vocabulary, 0
    starts, ends = [], []
    for step in range(len(batches)):
        batch = batches[step]
        for ids, mask in zip(batch.input_ids, batch.attention_mask, strict=True):
            real = ids[mask]
            starts += [ids[0] == vocabulary.cls]
            ends += [real[-1] == vocabulary.sep]
            assert vocabulary.ordinary[real[1:-1]].all()
            assert (ids[~mask] == vocabulary.pad).all()
            windows += 1
    assert sum(starts) == sum(ends) == len(corpus.split("train"))
    assert windows > 2 * sum(starts)


def test_a_sixth_of_the_tokens_is_predicted_in_a_random_order_and_specials_never(model_config, settings, corpus):
    _, batches, _ = prepared("permuted", replace(model_config, **XLNET), settings, corpus)
    ordinary = corpus.tokenizer.vocabulary.ordinary
    orders = []
    for batch in (batches[0], batches[0], batches[1]):
        assert np.array_equal(batch.input_ids, batch.target_ids)
        assert np.array_equal(batch.mask_positions, batch.order > 0)
        assert ordinary[batch.input_ids[batch.mask_positions]].all()
        for ids, ranks, mask in zip(batch.input_ids, batch.order, batch.attention_mask, strict=True):
            count = max(1, round((ordinary[ids] & mask).sum() / 6))
            assert sorted(ranks[ranks > 0]) == list(range(1, count + 1))
        orders.append(batch.order)
    assert np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0][:, :10], orders[2][:, :10])
    every = np.ones((2000, 13), bool)
    first = permuted_ranks(every, np.random.default_rng(0).integers(0, 2**63, every.shape).astype(np.uint64)).argmax(1)
    assert np.bincount(first, minlength=13).min() > 100       # every place is as likely as any other


def test_the_gradients_are_the_same_for_any_number_of_threads(words, config, its_settings, text):
    objective, batches, _ = prepared(words, config, its_settings, text)
    found = []
    for threads in (1, 2, 3):
        with workers(threads) as team:
            gradients = BatchGradients(objective, team)
            gradients.compute(batches[0], 7, 0)
            found.append(gradients.gradients.flat.copy())
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert np.abs(found[0]).max() > 0


def test_a_killed_run_ends_with_the_same_bytes(words, config, its_settings, text, tmp_path):
    whole, resumed = whole_and_resumed(config, replace(its_settings, objective=words), text, tmp_path, threads=2)
    assert_same(whole, resumed)


def test_one_batch_is_learned_by_heart(words, config, its_settings, text):
    config = replace(config, dropout=0.0, hidden_size=32, num_heads=4)
    made = replace(its_settings, objective=words, steps=150, batch_size=2, learning_rate=5e-3).resolved(config)
    model = MiniBERT(config)
    objective = make_objective(made, model)
    loss, _ = overfit(model, objective.batches(text, made)[0], made, objective=objective)
    assert loss < 0.3


def test_loss_perplexity_and_accuracy_are_in_the_log(model_config, settings, corpus, run):
    config = replace(model_config, **XL)
    start_run(config, replace(settings, objective="causal(segments=2)"), corpus.directory, run).train()
    last = list(read_log(run))[-1]
    assert last["perplexity"] == pytest.approx(np.exp(last["eval_loss"]))
    assert 0 <= last["accuracy"] <= 1


@pytest.mark.parametrize(("words", "changes", "said"), [
    ("causal", {}, "needs a model that sees no later tokens"),
    ("causal(segments=2)", {"score_terms": "causal"}, "its stack must be recurrent, not plain"),
    ("causal(segments=0)", {"score_terms": "causal"}, "segments must be a whole number of at least 1"),
    ("permuted", {}, "its stack must be two_stream, not plain"),
    ("permuted", {**XLNET, "score_terms": "relative + causal"}, "sees later tokens too")])
def test_a_model_that_cannot_learn_it_is_refused_in_a_sentence(words, changes, said, model_config):
    with pytest.raises(ConfigError, match=said):
        objective_from(words, MiniBERT(replace(model_config, **changes)))


# -------------------------------------------------------------------- segments


def test_the_gradient_of_segments_is_that_of_each_with_its_memory_held_fixed(model_config, rng):
    model = MiniBERT(replace(model_config, **XL, activation="gelu", dropout=0.0, init_std=0.3), dtype=np.float64)
    mask = np.arange(9) < np.array([9, 6, 2])[:, None]
    batch = next_tokens(np.where(mask, rng.integers(5, 60, mask.shape), 0), mask)
    objective = objective_from("causal(segments=3)", model)
    grads = model.params.zeros_like()
    total = objective.add_gradients(batch, grads, None, {"causal": 1.0})["causal"]
    memories = [None, *(memory_after(part.cache, 9) for part in read_in_segments(model, batch, 3, 9))][:-1]

    def loss():
        found = 0.0
        for number, memory in enumerate(memories):
            columns = slice(3 * number, min(3 * number + 3, 8))
            rows = batch.mask_positions[:, columns].any(axis=1)
            if memory is not None:
                before = batch.mask_positions[:, 3 * number - 3 : 3 * number].any(axis=1)
                memory = memory.of(np.flatnonzero(rows[before]))
            predicts = batch.mask_positions[rows, columns]
            logits, _ = model.forward(batch.input_ids[rows, columns], mask[rows, columns], positions=predicts,
                                      memory=memory)
            found += cross_entropy_forward(logits, batch.target_ids[rows, columns][predicts])[0]
        return found

    assert loss() == pytest.approx(total)
    for name in ("W_K_0", "W_V_1", "W_R_1", "content_bias", "token_embeddings"):
        value, direction = model.params[name], rng.standard_normal(model.params[name].shape)
        before = value.copy()
        value[...] = before + 1e-5 * direction
        above = loss()
        value[...] = before - 1e-5 * direction
        slope = (above - loss()) / 2e-5
        value[...] = before
        assert relative_error(np.array([(grads[name] * direction).sum()]), np.array([slope])) < 1e-6


def test_a_memory_as_long_as_the_text_makes_segments_as_good_as_the_whole(model_config, settings, corpus):
    model = MiniBERT(replace(model_config, **XL, init_std=0.3), dtype=np.float64)
    _, _, made = prepared("causal", model.config, settings, corpus)
    parts = objective_from("causal", model).heldout(corpus, made)
    whole = objective_from("causal", model).evaluate(parts, Workers(1))
    in_parts = objective_from("causal(segments=4)", model).evaluate(parts, Workers(1))
    assert in_parts["causal"] == pytest.approx(whole["causal"], rel=1e-12)


def test_documents_are_measured_with_and_without_a_memory(model_config, corpus):
    model = MiniBERT(replace(model_config, **XL, init_std=0.3))
    found = segment_losses(model, corpus, split="heldout", length=8, documents=5)
    assert found.documents == 5
    assert list(found.losses) == [0, 8]
    assert found.losses[0] != found.losses[8]
    longer = segment_losses(model, corpus, split="heldout", length=8, memory=1000, documents=5)
    whole = MiniBERT(replace(model.config, max_seq_length=100))
    whole.params.flat[...] = model.params.flat
    at_once = segment_losses(whole, corpus, split="heldout", length=100, documents=5)
    assert longer.tokens == at_once.tokens
    assert longer.losses[1000] == pytest.approx(at_once.losses[0], rel=1e-5)
    plain = segment_losses(MiniBERT(replace(model_config, score_terms="causal")), corpus, length=8)
    assert list(plain.losses) == [0]


def test_what_cannot_be_read_in_segments_is_refused_in_a_sentence(model_config, corpus):
    causal = MiniBERT(replace(model_config, score_terms="causal"))
    for model, options, said in ((MiniBERT(model_config), {}, "needs a causal model"),
                                 (causal, {"length": 17}, "must have 1 to 16 tokens"),
                                 (causal, {"length": 8, "memory": 3}, "stack is recurrent")):
        with pytest.raises(InputError, match=said):
            segment_losses(model, corpus, **options)
