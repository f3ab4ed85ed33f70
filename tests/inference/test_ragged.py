"""Texts of any lengths through a model without padding: what they are read as, and by whom it is used."""

import numpy as np
import pytest

from mini_bert import InputError, MiniBERT
from mini_bert.core.inputs import Group
from mini_bert.core.ops.attention import attention_forward, attention_value
from mini_bert.core.ops.gelu import gelu_forward, gelu_value
from mini_bert.core.task_model import TaskModel
from mini_bert.inference.ragged import passes, read
from mini_bert.workers import workers


def rows_of(lengths, vocab_size=60, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.integers(5, vocab_size, length).tolist() for length in lengths]


@pytest.mark.parametrize("lengths", [[7], [3, 5, 3], [9] * 40, [*range(1, 60)] * 4, [700, 2, 2], []])
def test_passes_have_every_text_once_in_groups_of_one_length_and_about_as_many_tokens_each(lengths):
    found = passes(lengths)
    assert sorted(int(i) for groups in found for group in groups for i in group) == list(range(len(lengths)))
    assert all(len({lengths[i] for i in group}) == 1 for groups in found for group in groups)
    if sum(lengths) >= 256 and len(lengths) > 3:
        tokens = [sum(lengths[i] for group in groups for i in group) for groups in found]
        assert len(found) % 2 == 0
        assert max(tokens) - min(tokens) <= 2 * max(lengths)
        assert max(tokens) <= 512 + max(lengths)


def test_no_more_texts_are_in_a_pass_than_asked_for():
    assert [sum(map(len, groups)) for groups in passes([2] * 7, batch_size=3)] == [3, 3, 1]
    with pytest.raises(InputError, match="batch_size must be at least 1, not 0"):
        passes([2], batch_size=0)


def test_any_number_of_threads_gives_the_same_bits(debug):
    model, rows = MiniBERT(debug), rows_of([3, 8, 8, 5, 2, 7] * 20)
    found = []
    for threads in (1, 2, 3):
        vectors = np.zeros((len(rows), debug.hidden_size), np.float32)

        def use(numbers, hidden, cache, vectors=vectors):
            vectors[numbers] = hidden.mean(axis=1)

        with workers(threads) as team:
            read(model, rows, use, team=team)
        found.append(vectors)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    alone = np.array([model.encode(np.array([row]))[0][0].mean(axis=0) for row in rows])
    np.testing.assert_allclose(found[0], alone, atol=1e-5)


@pytest.mark.parametrize("head", ["sequence", "first_token(transform=tanh)", "last_token", "tokens", "span"])
def test_a_task_has_the_scores_of_a_padded_batch(debug, head):
    model, rows = TaskModel(MiniBERT(debug), head, 3), rows_of([8, 2, 5])
    found = {}

    def use(numbers, hidden, cache):
        found.update(zip(numbers.tolist(), model.scores_of(hidden, cache), strict=True))

    read(model, rows, use, select=lambda _, ids: model.reads(ids, np.ones(ids.shape, bool), None))
    for number, row in enumerate(rows):
        scores = model.forward(np.array([row]))[0]
        expected = scores[:, 0] if head == "span" else scores.reshape(found[number].shape)
        np.testing.assert_allclose(found[number], expected, atol=1e-5)


def test_a_forward_only_pass_has_the_numbers_of_one_that_can_be_reversed(rng):
    Q, K, V = rng.standard_normal((3, 5, 2, 6, 3)).astype(np.float32)
    mask, allowed = np.arange(6) < np.array([6, 1, 4, 6, 3])[:, None], np.tril(np.ones((1, 6, 6), bool), -1)
    bias = rng.standard_normal((1, 2, 6, 6)).astype(np.float32)
    for scale in (1, 300):                        # of scores within reach of one shift, and beyond it
        for more in ({}, {"key_mask": mask}, {"allowed": allowed, "bias": bias}):
            expected, _ = attention_forward(scale * Q, K, V, **more)
            np.testing.assert_allclose(attention_value(scale * Q, K, V, **more), expected, atol=2e-5)
    x = np.linspace(-12, 12, 200_001, dtype=np.float32)
    np.testing.assert_allclose(gelu_value(x), gelu_forward(x)[0], rtol=1e-6, atol=1e-9)


def test_nothing_is_kept_for_a_backward(debug):
    for _, cache in MiniBERT(debug).encode_groups([Group(np.array([[5, 6, 7]])), Group(np.array([[5, 6]]))]):
        assert all(set(layer) == {"hidden"} for layer in cache.layers)
