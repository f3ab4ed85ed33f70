"""Models with the head of a task."""

import numpy as np
import pytest

from mini_bert import ConfigError, InputError, MiniBERT, MiniBERTGradients, ModelConfig, load_preset
from mini_bert.core.ops.cross_entropy import cross_entropy_backward, cross_entropy_forward
from mini_bert.core.registry import make, words
from mini_bert.core.task_model import TaskBatch, TaskModel, with_dropout

CONFIG = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=32, vocab_size=64, max_seq_length=16)


@pytest.fixture
def base() -> MiniBERT:
    made = MiniBERT(CONFIG, dtype=np.float64, seed=1)
    made.params.flat += 0.2 * np.random.default_rng(1).standard_normal(made.params.flat.size)
    return made


def batch_for(head: str, rng: np.random.Generator, width: int = 9) -> TaskBatch:
    mask = np.arange(width) < np.array([9, 5, 3])[:, None]
    ids = np.where(mask, rng.integers(5, 64, (3, width)), 0)
    places = mask & (np.arange(width) % 2 == 1)
    targets = {"tokens": rng.integers(0, 3, int(places.sum())), "span": np.array([1, 1, 1, 3, 3, 1])}
    return TaskBatch(ids, mask, targets.get(head, np.array([0, 2, 1])), places)


@pytest.mark.parametrize("head", words("task_head"))
def test_padding_changes_neither_scores_nor_gradients(base, head):
    model = TaskModel(base, head, 3)
    results = []
    for width in (9, 14):
        batch, grads = batch_for(head, np.random.default_rng(3)), MiniBERTGradients(model)
        more = width - 9
        wider = TaskBatch(*(np.pad(field, ((0, 0), (0, more))) if field is not None and field.ndim == 2 else field
                            for field in batch))
        loss, count = model.add_gradients(wider, grads.gradients)
        scores = model.scores(wider)
        results.append((loss, count, scores[np.isfinite(scores)], grads.gradients.flat))
    assert results[0][1] == results[1][1]
    for ours, theirs in zip(results[0], results[1], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("head", words("task_head"))
def test_the_mlm_head_gets_no_gradient_and_the_encoder_is_the_one_given(base, head, rng):
    model, grads = TaskModel(base, head, 3), MiniBERTGradients(TaskModel(base, head, 3))
    model.add_gradients(batch_for(head, rng), grads.gradients)
    assert not grads.gradients["mlm_head_W"].any()
    assert grads.gradients["W_Q_0"].any()
    assert grads.gradients["task_W"].any()
    assert np.array_equal(model.encoder().params.flat, base.params.flat)


@pytest.mark.parametrize("head", [*words("task_head"), "first_token(transform=tanh)",
                                  "tokens(transform=gelu, norm=true)"])
def test_forward_and_backward_give_the_gradients_of_a_batch(base, head, rng):
    """The two ways to the same gradients: through `forward`, and through the loss of a batch."""
    model = TaskModel(base, head, 3)
    kind = "tokens" if head.startswith("tokens") else head
    batch = batch_for(kind, rng)
    once, twice = MiniBERTGradients(model), MiniBERTGradients(model)
    model.add_gradients(batch, once.gradients)
    scores, cache = model.forward(batch.input_ids, batch.attention_mask, positions=batch.places)
    rows = scores.reshape(-1, scores.shape[-1])
    _, loss = cross_entropy_forward(rows, batch.targets)
    twice.backward_from_logits(cross_entropy_backward(1.0, loss).reshape(scores.shape), cache)
    np.testing.assert_allclose(twice.gradients.flat, once.gradients.flat, atol=1e-12)
    with pytest.raises(InputError, match="encode"):
        twice.backward_from_logits(scores, model.encode(batch.input_ids, batch.attention_mask)[1])
    with pytest.raises(InputError, match="shape"):
        twice.backward_from_logits(scores[:, :1], cache)


def test_a_span_can_be_chosen_only_where_the_head_reads(base, rng):
    batch = batch_for("span", rng)
    scores = TaskModel(base, "span", 2).scores(batch).reshape(2, 3, 9)
    assert np.isfinite(scores[:, batch.places]).all()
    assert (scores[:, ~batch.places] == -np.inf).all()


def test_sequences_are_the_mean_of_their_real_tokens(base, rng):
    batch = batch_for("sequence", rng)
    model = TaskModel(base, "sequence", 3)
    hidden, _ = base.encode(batch.input_ids, batch.attention_mask)
    means = np.stack([hidden[i, batch.attention_mask[i]].mean(axis=0) for i in range(3)])
    np.testing.assert_allclose(model.scores(batch), means @ model.params["task_W"] + model.params["task_b"], atol=1e-12)


def test_dropout_changes_training_alone(base, rng):
    batch = batch_for("sequence", rng)
    model = TaskModel(with_dropout(base, 0.3), "sequence", 3, dropout=0.3)
    quiet = model.scores(batch)
    grads = MiniBERTGradients(model)
    losses = {model.add_gradients(batch, grads.gradients, (0, step))[0] for step in (1, 1, 2)}
    assert len(losses) == 2
    np.testing.assert_array_equal(model.scores(batch), quiet)


def test_what_cannot_be_is_refused(base, rng):
    with pytest.raises(ConfigError, match="the nearest is 'sequence'"):
        TaskModel(base, "sentence", 2)
    with pytest.raises(ConfigError, match="at least one label"):
        TaskModel(base, "sequence", 0)
    with pytest.raises(ConfigError, match="dropout"):
        TaskModel(base, "sequence", 2, dropout=1.0)
    batch = batch_for("sequence", rng)._replace(targets=np.array([0, 1]))
    with pytest.raises(InputError, match="2 targets; the head gives 3"):
        TaskModel(base, "sequence", 2).add_gradients(batch, MiniBERTGradients(TaskModel(base, "sequence", 2)).gradients)


@pytest.mark.parametrize("word", ["binary_cross_entropy", "squared_error(mean=3, scale=2)"])
def test_the_losses_of_tasks_follow_their_definitions_in_either_precision(word, rng):
    loss = make("task_loss", word)
    scores, targets = 3 * rng.standard_normal((4, 3)), rng.integers(0, 2, (4, 3))
    p, t = 1 / (1 + np.exp(-scores)), (targets - 3) / 2
    expected = -(np.log(np.where(targets == 1, p, 1 - p))).sum() if "cross" in word else ((scores - t) ** 2).sum()
    for dtype in (np.float64, np.float32):
        total, cache = loss.forward(scores.astype(dtype), targets)
        assert total == pytest.approx(expected, rel=1e-5)
        assert loss.backward(1.0, cache).dtype == dtype
    huge = np.array([[1e4, -1e4]], np.float32)
    assert np.isfinite(loss.forward(huge, np.array([[0, 1]]))[0])
    np.testing.assert_allclose(loss.values(scores), p if "cross" in word else 3 + 2 * scores)


def test_every_head_passes_the_gradient_check():
    from mini_bert.checks.check_all import HEADS_OF_MODELS, check_all

    results = list(check_all(["tasks"], seed=5))
    assert {result.subject for result in results} == {
        *(f"task head: {head}" for head in (*words("task_head"), *HEADS_OF_MODELS)),
        *(f"task loss: {loss}" for loss in words("task_loss"))}
    assert all(result.passed for result in results)
    assert load_preset("mini").activation == "relu"           # the check takes a smooth one instead
