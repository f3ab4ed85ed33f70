"""Disentangled attention and the enhanced decoder: what the formulas say, computed by loops."""

from dataclasses import dataclass

import numpy as np
import pytest

from mini_bert import MiniBERT, ModelConfig, load_preset
from mini_bert.checks.models import check_model
from mini_bert.core.context import Context
from mini_bert.core.modules.attention.scores.relative_table import distance_rows
from mini_bert.core.selection import Selection
from mini_bert.errors import ConfigError, InputError

TERMS = ["disentangled(reach=3)", "disentangled(reach=3, p2c=false)", "disentangled(reach=40, c2p=false)",
         "disentangled(reach=7, buckets=4, share=true, norm=true)", "disentangled(reach=9, buckets=6, key_bias=true)"]
SIZES = {"num_layers": 2, "num_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 30,
         "max_seq_length": 9, "position_embeddings": "none", "attention_bias": True, "activation": "gelu"}


def made(**options) -> MiniBERT:
    model = MiniBERT(ModelConfig.from_dict({**SIZES, **options}), dtype=np.float64)
    model.params.flat += 0.3 * np.random.default_rng(1).standard_normal(model.params.flat.size)
    return model


def scores_by_loops(model: MiniBERT, x, term) -> np.ndarray:
    """The scores (A, T, T) of layer 1 on the rows x (T, H), from the definition."""
    p, A, d = model.params, 2, 4
    R = p["relative_embeddings"]
    if term.table.ln is not None:
        R = (R - R.mean(axis=1, keepdims=True)) / np.sqrt(R.var(axis=1, keepdims=True) + 1e-5)
        R = R * p["relative_ln_gamma"] + p["relative_ln_beta"]

    def heads(rows, linear):
        if linear is None:
            return np.zeros((A, len(rows), d))
        bias = 0 if linear.b is None else p[linear.b]
        return (rows @ p[linear.W] + bias).reshape(len(rows), A, d).transpose(1, 0, 2)

    attention = model.layer(1).attention
    q, k = heads(x, attention.query), heads(x, attention.key)
    Kr, Qr = heads(R, term.key), heads(R, term.query)
    terms = 1 + (term.key is not None) + (term.query is not None)
    found = np.empty((A, len(x), len(x)))
    for a in range(A):
        for i in range(len(x)):
            for j in range(len(x)):
                r = distance_rows(np.array(i - j), term.table.reach, term.table.buckets)
                found[a, i, j] = q[a, i] @ k[a, j] + q[a, i] @ Kr[a, r] + k[a, j] @ Qr[a, r]
    return found / np.sqrt(terms * d)


@dataclass
class Rows:
    """Remembers rows that come before those of the pass."""

    before: np.ndarray                    # (B, length, H)

    @property
    def length(self) -> int:
        return self.before.shape[1]

    def rows(self, x):
        return np.concatenate([self.before, x], axis=1)

    def keys_values(self, K, V):
        return K, V


@pytest.mark.parametrize("terms", TERMS)
def test_the_scores_are_those_of_the_definition(terms: str):
    model = made(score_terms=terms)
    attention = model.layer(1).attention
    x = np.random.default_rng(2).standard_normal((2, 8, 8))
    expected = np.stack([scores_by_loops(model, one, attention.terms[0]) for one in x])
    chosen = np.zeros((2, 8), bool)
    chosen[0, [2, 3, 7]] = chosen[1, 5] = True                                   # of the second the grid is not filled

    def scores(select, memory=None, rows=x):
        _, cache = attention.forward(model.params, rows.reshape(-1, 8), Context(select, memory=memory))
        return cache["scores"].compute()

    assert np.allclose(scores(Selection(2, 8)), expected, atol=1e-12)
    some = scores(Selection(2, 8, chosen))
    assert np.allclose(some[0], expected[0][:, [2, 3, 7]], atol=1e-12)
    assert np.allclose(some[1, :, :1], expected[1][:, [5]], atol=1e-12)
    later, memory = x[:, 3:], Rows(x[:, :3])
    assert np.allclose(scores(Selection(2, 5), memory, later), expected[:, :, 3:], atol=1e-12)
    some = scores(Selection(2, 5, chosen[:, 3:]), memory, later)
    assert np.allclose(some[0], expected[0][:, [3, 7]], atol=1e-12)


@pytest.mark.parametrize("terms", TERMS)
def test_with_earlier_tokens_the_gradients_are_those_of_the_whole_text(terms: str):
    """A text in one pass, of which the last tokens alone ask, against these tokens with the others remembered."""
    model = made(score_terms=terms)
    attention = model.layer(1).attention
    rng = np.random.default_rng(3)
    x, dy = rng.standard_normal((2, 8, 8)), rng.standard_normal((10, 8))
    asks = np.broadcast_to(np.arange(8) >= 3, (2, 8))
    found = []
    for rows, ctx in ((x, Context(Selection(2, 8, asks))), (x[:, 3:], Context(Selection(2, 5), memory=Rows(x[:, :3])))):
        grads = model.params.zeros_like()
        _, cache = attention.forward(model.params, rows.reshape(-1, 8), ctx)
        dx = attention.backward(dy.copy(), cache, grads, ctx).reshape(rows.shape)
        found.append((grads.flat, dx[:, -5:]))
    assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("options", [
    {"score_terms": TERMS[0]}, {"score_terms": TERMS[4]},
    {"score_terms": TERMS[3], "attention": "multi_head(key_bias=false)"},
    {"score_terms": TERMS[3], "stack": "enhanced_decoder", "num_layers": 3, "block": "pre_ln"},
    {"embedding_size": 5, "embedding_layernorm": True, "embeddings": "sum(project_first=true)"},
], ids=str)
def test_the_gradients_are_the_slopes(options: dict):
    config = ModelConfig.from_dict({**SIZES, **options, "dropout": 0.1, "init_std": 0.3})
    assert all(result.passed for result in check_model("a model", config))


def test_the_table_of_all_layers_belongs_to_the_first():
    names = list(made(score_terms=TERMS[3], num_layers=3).params)
    assert [name for name in names if name.startswith("relative")] == [
        "relative_embeddings", "relative_ln_gamma", "relative_ln_beta"]
    assert not any("KR" in name or "QR" in name for name in names)


def test_rows_of_distances_are_odd_around_the_middle_and_never_fall():
    for reach, buckets in ((5, 0), (64, 32), (512, 256), (14, 6)):
        n, k = np.arange(-700, 701), buckets or reach
        rows = distance_rows(n, reach, buckets)
        assert (np.diff(rows) >= 0).all()
        assert rows.min() == 0
        assert rows.max() == 2 * k - 1
        inside = (rows > 0) & (rows < 2 * k - 1)
        assert np.array_equal((rows - k)[inside], -(distance_rows(-n, reach, buckets) - k)[inside])


def test_the_decoder_alone_knows_absolute_positions():
    model = made(score_terms=TERMS[3], stack="enhanced_decoder", num_layers=4)
    ids, real = np.random.default_rng(4).integers(5, 30, (2, 6)), np.ones((2, 6), bool)
    hidden, cache = model.encode(ids, real)
    moved, moved_cache = model.encode(np.pad(ids, ((0, 0), (2, 0))), np.pad(real, ((0, 0), (2, 0))))
    assert np.allclose(moved_cache["hidden_1"][:, 2:], cache["hidden_1"], atol=1e-12)
    assert np.abs(moved[:, 2:] - hidden).max() > 1e-3


def test_the_decoder_runs_one_layer_again():
    model = made(stack="enhanced_decoder(steps=3)", num_layers=4)
    assert [layer is model.layer(1) for layer in model.modules.stack.layers] == [False, True, True, True]
    assert not any(name.endswith("_2") for name in model.params)


def test_mini_deberta_has_the_size_of_mini():
    mini, deberta = (MiniBERT(load_preset(name), seed=None).get_parameter_count() for name in ("mini", "mini-deberta"))
    assert deberta - mini == 64 * 192 + 2 * 192                                  # the table of distances and its norm


def test_relative_positions_have_no_end_and_tables_have_one():
    long = np.full((1, 30), 7)
    made(score_terms=TERMS[0]).encode(long)
    for options in ({"position_embeddings": "learned"}, {"stack": "enhanced_decoder"}):
        with pytest.raises(InputError, match="max_seq_length=9"):
            made(**options).encode(long)


@pytest.mark.parametrize("options", [
    {"score_terms": "disentangled(reach=0)"}, {"score_terms": "disentangled(reach=2.5)"},
    {"score_terms": "disentangled(buckets=1)"}, {"score_terms": "disentangled(buckets=-4)"},
    {"score_terms": "disentangled(c2p=false, p2c=false)"}, {"score_terms": "disentangled(span=4)"},
    {"stack": "enhanced_decoder(steps=0)"}, {"stack": "enhanced_decoder(steps=3)"}], ids=str)
def test_wrong_options_are_refused(options: dict):
    with pytest.raises(ConfigError):
        made(**options)
