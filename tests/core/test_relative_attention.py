"""Relative attention, memories and two streams: against loops, and by what each must and must not depend on."""

import inspect
import textwrap
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from mini_bert import ConfigError, InputError, MiniBERT, MiniBERTGradients, ModelConfig
from mini_bert.checks.models import check_model
from mini_bert.core.memory import memory_after
from mini_bert.core.modules.attention import self_attention
from mini_bert.core.modules.attention.self_attention import SelfAttention

XL = ModelConfig(num_layers=2, num_heads=2, hidden_size=8, intermediate_size=12, vocab_size=20, max_seq_length=16,
                 position_embeddings="none", score_terms="relative(shared=true) + causal", stack="recurrent",
                 final_layernorm=False, mlm_head="tied", init_std=0.4)
XLNET = replace(XL, score_terms="segments + relative", stack="two_stream", token_types=3, embeddings="sum(types=false)")


def made(config, seed=0):
    return MiniBERT(config, dtype=np.float64, seed=seed)


def loop_scores(model, x, layer, earlier=None, types=None, clamp=0):
    """The scores of one sequence (A, T, earlier + T), number by number, from the definition."""
    p, A, d = model.params, model.config.num_heads, model.config.head_size
    suffix = "" if "content_bias" in p else f"_{layer}"
    u, v = p["content_bias" + suffix], p["distance_bias" + suffix]
    keys = x if earlier is None else np.concatenate([earlier, x])
    before = len(keys) - len(x)
    q, k = (x @ p[f"W_Q_{layer}"]).reshape(-1, A, d), (keys @ p[f"W_K_{layer}"]).reshape(-1, A, d)
    H = model.config.hidden_size
    scores = np.empty((A, len(x), len(keys)))
    for a in range(A):
        for i in range(len(x)):
            for j in range(len(keys)):
                n = i + before - j
                n = max(-clamp, min(clamp, n)) if clamp else n
                wave = [np.sin(n / 10_000 ** (2 * h / H)) for h in range(H // 2)]
                wave += [np.cos(n / 10_000 ** (2 * h / H)) for h in range(H // 2)]
                r = (np.array(wave) @ p[f"W_R_{layer}"]).reshape(A, d)[a]
                s = (q[i, a] + u[a]) @ k[j, a] + (q[i, a] + v[a]) @ r
                if types is not None:
                    of_key = 0 if j < before else types[j - before]
                    e = p[f"segment_keys_{layer}"][int(types[i] != of_key), a]
                    s += (q[i, a] + p[f"segment_bias_{layer}"][a]) @ e
                scores[a, i, j] = s / sqrt(d)
    return scores


@pytest.mark.parametrize(("config", "clamp"), [(XL, 0), (replace(XL, score_terms="relative(clamp=2)"), 2), (XLNET, 0)])
def test_the_scores_of_both_layers_are_those_of_the_definition(config, clamp, rng):
    model = made(config)
    ids = rng.integers(5, 20, (2, 6))
    types = rng.integers(0, 3, (2, 6)) if config.token_types else None
    remembered = made(config).encode(ids[:, ::-1])[1]
    for memory in (None, memory_after(remembered, 4)):
        _, cache = model.encode(ids, token_types=types, memory=memory)
        for layer, x in enumerate((cache["embeddings"], cache["hidden_0"])):
            for b in range(2):
                expected = loop_scores(model, x[b], layer, None if memory is None else memory.layers[layer][b],
                                       None if types is None else types[b], clamp)
                found = cache[f"scores_{layer}"][b]
                seen = np.isfinite(found)
                np.testing.assert_allclose(found[seen], expected[seen], atol=1e-12)
                if "causal" in config.score_terms:
                    before = found.shape[2] - 6
                    assert np.array_equal(seen[0], np.tril(np.ones((6, before + 6), bool), before))


def test_selected_queries_have_the_scores_that_they_have_among_all(rng):
    model = made(XLNET)
    ids, types = rng.integers(5, 20, (3, 7)), rng.integers(0, 2, (3, 7))
    mask = np.arange(7) < np.array([7, 5, 3])[:, None]
    chosen = mask & (rng.random((3, 7)) < 0.5)
    chosen[0, :4] = True
    everything, _ = model.encode(ids, mask, token_types=types)
    some, _ = model.encode(ids, mask, token_types=types, positions=chosen)
    np.testing.assert_allclose(some, everything[chosen], atol=1e-12)


def test_biases_that_are_shared_are_in_the_model_once():
    shared, own = made(XL).params, made(replace(XL, score_terms="relative + causal")).params
    assert "content_bias" in shared
    assert "content_bias_0" not in shared
    assert {"content_bias_0", "content_bias_1", "W_R_1"} <= set(own)


@pytest.mark.parametrize(("changes", "said"), [
    ({"score_terms": "relative(clamp=-1)"}, "clamp must be 0 or the largest distance"),
    ({"score_terms": "relative", "hidden_size": 9, "num_heads": 3}, "needs an even hidden_size")])
def test_wrong_options_are_refused_in_a_sentence(changes, said):
    with pytest.raises(ConfigError, match=said):
        made(replace(XL, **changes))


# -------------------------------------------------------------------- memory


@pytest.mark.parametrize("block", ["post_ln", "pre_ln"])
@pytest.mark.parametrize("forward_only", [False, True])
def test_a_text_read_in_parts_with_a_full_memory_is_the_text_read_at_once(block, forward_only, rng):
    model = made(replace(XL, block=block))
    ids = rng.integers(5, 20, (2, 12))
    whole, _ = model.encode(ids)
    memory, parts = None, []
    for start, stop in ((0, 5), (5, 6), (6, 12)):
        hidden, cache = model.encode(ids[:, start:stop], memory=memory, forward_only=forward_only)
        memory = memory_after(cache, 100)
        parts.append(hidden)
    assert memory.length == 12
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-12)


def test_a_memory_reaches_one_segment_further_with_every_layer(rng):
    model = made(replace(XL, num_layers=3))
    ids = rng.integers(5, 20, (1, 16))

    def last(ids):
        memory = None
        for start in range(0, 16, 4):
            hidden, cache = model.encode(ids[:, start : start + 4], memory=memory)
            memory = memory_after(cache, 4)
        return hidden[0, 0]

    for place, reached in ((1, True), (0, True)):
        other = ids.copy()
        other[0, place] = 5 + (other[0, place] - 4) % 15
        assert np.array_equal(last(ids), last(other)) is not reached
    two_layers = made(XL)
    model = two_layers
    other = ids.copy()
    other[0, 1] = 5 + (other[0, 1] - 4) % 15
    assert np.array_equal(last(ids), last(other))


def test_a_gradient_that_reaches_the_wrong_rows_beside_a_memory_is_noticed(monkeypatch):
    """The mutants of test_mutations.py change signs, not slices."""
    source = textwrap.dedent(inspect.getsource(SelfAttention.backward))
    assert "[:, -T:]" in source
    namespace = dict(vars(self_attention))
    exec(compile(source.replace("[:, -T:]", "[:, :T]"), self_attention.__file__, "exec"), namespace)
    monkeypatch.setattr(SelfAttention, "backward", namespace["backward"])
    config = replace(XL, activation="gelu")
    failed = {result.case for result in check_model("xl", config) if not result.passed}
    assert failed == {"with memory"}


def test_recomputing_layers_gives_the_same_gradients_with_a_memory_and_an_order(rng):
    model = made(XLNET)
    ids = rng.integers(5, 20, (2, 6))
    memory, order = memory_after(model.encode(ids)[1], 3), rng.permuted(np.tile(np.arange(6), (2, 1)), axis=1)
    found = []
    for recompute in (False, True):
        grads = MiniBERTGradients(model)
        hidden, cache = model.encode(ids, memory=memory, order=order, recompute=recompute, dropout_key=(0,))
        grads.backward_from_hidden(np.cos(hidden), cache)
        found.append(grads.gradients.flat)
    assert np.array_equal(*found)


def test_what_cannot_be_remembered_is_refused_in_a_sentence(rng):
    model, ids = made(XL), rng.integers(5, 20, (2, 4))
    _, cache = model.encode(ids)
    with pytest.raises(InputError, match="length of 0 or more"):
        memory_after(cache, -1)
    assert memory_after(cache, 0) is None
    memory = memory_after(cache, 3)
    with pytest.raises(InputError, match="memory is of 2 sequences with 8 features, the batch of 1"):
        model.encode(ids[:1], memory=memory)
    with pytest.raises(InputError, match="memory is of a model with 2 layers"):
        made(replace(XL, num_layers=3)).encode(ids, memory=memory)
    with pytest.raises(InputError, match="keeps nothing to remember; the stack recurrent does"):
        memory_after(made(replace(XL, stack="plain")).encode(ids)[1], 3)
    with pytest.raises(InputError, match="padding before its tokens"):
        memory_after(model.encode(ids, [[0, 1, 1, 1], [1, 1, 1, 1]])[1], 3)


# -------------------------------------------------------------------- two streams


def test_a_query_depends_on_lower_ranks_alone_and_never_on_its_own_token(rng):
    model = made(XLNET)
    ids, order = rng.integers(5, 20, (1, 7)), rng.permutation(7)[None]
    hidden, _ = model.encode(ids, order=order)
    for place in range(7):
        other = ids.copy()
        other[0, place] = 5 + (other[0, place] - 4) % 15
        changed = np.abs(model.encode(other, order=order)[0] - hidden)[0].max(axis=1) > 1e-9
        assert np.array_equal(changed, order[0] > order[0, place])


def test_tokens_of_one_rank_are_context_of_each_other_and_predicted_independently(rng):
    """All context has rank 0; each of the targets, alone with rank 1, is predicted as if the others were not there."""
    model = made(XLNET)
    ids = rng.integers(5, 20, (1, 6))
    together = np.array([[0, 1, 0, 1, 0, 0]])
    hidden, _ = model.encode(ids, order=together, positions=together > 0)
    for row, place in enumerate((1, 3)):
        mask = np.ones((1, 6), bool)
        mask[0, 4 - place] = False                               # the other one of rank 1 as padding
        alone, _ = model.encode(ids, mask, order=together, positions=np.arange(6)[None] == place)
        np.testing.assert_allclose(hidden[row], alone[0], atol=1e-12)


def test_without_an_order_the_streams_cost_nothing(rng):
    ids = rng.integers(5, 20, (2, 6))
    two, one = made(XLNET), made(replace(XLNET, stack="plain"))
    for name in one.params:
        one.params[name][...] = two.params[name]
    np.testing.assert_array_equal(two.encode(ids)[0], one.encode(ids)[0])


def test_an_order_is_refused_where_it_has_no_meaning(rng):
    ids = rng.integers(5, 20, (2, 6))
    with pytest.raises(InputError, match="its stack is recurrent"):
        made(XL).encode(ids, order=np.zeros((2, 6), int))
    for wrong in (np.zeros((2, 5), int), np.zeros((2, 6))):
        with pytest.raises(InputError, match="order must be whole numbers of the shape"):
            made(XLNET).encode(ids, order=wrong)
