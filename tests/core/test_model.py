"""The model as a whole: what a user relies on, whatever the slots."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from math import log

import numpy as np
import pytest

from larger_bert import LARGER_BERT_CONFIG, LargerBERT
from mini_bert import (
    InputError,
    MiniBERT,
    MiniBERTGradients,
    ModelConfig,
    NumericalError,
    load_preset,
    mask_tokens,
)
from mini_bert.checks.check_all import models_to_check

VARIANTS = models_to_check()


def build(config: ModelConfig) -> MiniBERT:
    model = MiniBERT(config, dtype=np.float64)
    model.params.flat += 0.1 * np.random.default_rng(1).standard_normal(model.params.flat.size)
    return model


def batch(config: ModelConfig, B: int = 3, T: int = 9):
    rng = np.random.default_rng(2)
    ids = rng.integers(5, config.vocab_size, (B, T))
    mask = np.arange(T) < np.array([T, 5, 2])[:B, None]
    types = rng.integers(0, config.token_types, (B, T)) if config.token_types else None
    return ids, mask, types


@pytest.fixture(params=VARIANTS, ids=list(VARIANTS))
def config(request) -> ModelConfig:
    return VARIANTS[request.param]


def test_parameter_counts():
    assert MiniBERT().get_parameter_count() == 4_498_880
    assert LargerBERT(LARGER_BERT_CONFIG, seed=None).get_parameter_count() == 49_137_488


@pytest.mark.parametrize("name", ["mini", "small", "larger", "bert-tiny"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_first_loss_is_near_the_log_of_the_vocabulary(name, seed):
    config = load_preset(name)
    model = MiniBERT(config, seed=seed)
    ids = np.random.default_rng(seed).integers(5, config.vocab_size, (8, 32))
    masked, targets, positions = mask_tokens(ids, config.vocab_size, rng=seed)
    loss, count = MiniBERTGradients(model).accumulate_mlm(masked, targets, positions)
    assert loss / count == pytest.approx(log(config.vocab_size), abs=0.1)


def test_padding_changes_neither_outputs_nor_gradients(config):
    """A sentence alone, padded, or beside a longer one is the same sentence."""
    model = build(config)
    ids, mask, types = batch(config)
    length = 5

    def run(ids, mask, types, row):
        grads = MiniBERTGradients(model)
        hidden, cache = model.encode(ids, mask, token_types=types)
        dhidden = np.zeros_like(hidden)
        dhidden[row, :length] = np.random.default_rng(3).standard_normal((length, config.hidden_size))
        grads.backward_from_hidden(dhidden, cache)
        return hidden[row, :length], grads.gradients.flat

    def part(rows, columns):
        return ids[rows, columns], mask[rows, columns], None if types is None else types[rows, columns]

    alone = run(*part(slice(1, 2), slice(0, length)), row=0)
    padded = run(*part(slice(1, 2), slice(None)), row=0)
    beside = run(*part(slice(None), slice(None)), row=1)
    for other in (padded, beside):
        assert np.allclose(alone[0], other[0], rtol=1e-10, atol=1e-12)
        assert np.allclose(alone[1], other[1], rtol=1e-10, atol=1e-12)


def test_what_stands_in_the_padding_does_not_matter(config):
    model = build(config)
    ids, mask, types = batch(config)
    other = np.where(mask, ids, 0)
    a, b = (model.encode(which, mask, token_types=types)[0] for which in (ids, other))
    assert np.array_equal(a[mask], b[mask])


def test_selected_positions_alone_give_the_same_hidden_states_and_gradients(config):
    model = build(config)
    ids, mask, types = batch(config)
    rng = np.random.default_rng(4)
    for positions in (mask & (rng.random(mask.shape) < 0.5), mask & (np.arange(9) == 1), mask):
        full, full_cache = model.encode(ids, mask, token_types=types)
        some, some_cache = model.encode(ids, mask, token_types=types, positions=positions)
        assert np.allclose(some, full[positions], rtol=1e-12, atol=1e-12)
        dsome = rng.standard_normal(some.shape)
        dfull = np.zeros_like(full)
        dfull[positions] = dsome
        full_grads, some_grads = MiniBERTGradients(model), MiniBERTGradients(model)
        full_grads.backward_from_hidden(dfull, full_cache)
        some_grads.backward_from_hidden(dsome, some_cache)
        assert np.allclose(some_grads.gradients.flat, full_grads.gradients.flat, rtol=1e-9, atol=1e-12)


def test_the_last_layer_computes_only_what_is_selected(model):
    ids = np.full((2, 10), 7)
    positions = np.zeros((2, 10), bool)
    positions[0, [1, 4]] = positions[1, 9] = True
    logits, cache = model.forward(ids, positions=positions)
    assert logits.shape == (3, model.config.vocab_size)
    assert cache["Q_1"].shape[2] == 2                       # the grid is as wide as the fullest sequence
    assert cache["middle_1"].shape == cache["hidden_1"].shape == (3, 16)
    assert cache["ffn_activation_1"].shape == (3, 32)
    assert cache["K_1"].shape[2] == 10
    assert cache["hidden_0"].shape == (2, 10, 16)


def test_a_batch_without_selected_positions_has_no_loss_and_no_gradient(model):
    ids = np.full((2, 6), 7)
    grads = MiniBERTGradients(model)
    assert grads.accumulate_mlm(ids, ids, np.zeros((2, 6), bool)) == (0.0, 0)
    assert not grads.gradients.flat.any()


def test_float32_and_float64_agree(config):
    exact, single = MiniBERT(config, dtype=np.float64), MiniBERT(config)
    ids, mask, types = batch(config)
    hidden, cache = single.encode(ids, mask, token_types=types)
    assert hidden.dtype == np.float32
    assert all(value.dtype == np.float32 for value in cache.values())
    assert np.allclose(hidden, exact.encode(ids, mask, token_types=types)[0], atol=1e-3)


def test_position_matters_unless_there_are_no_positions(debug):
    ids = np.array([[7, 8, 9, 10]])
    for word, same in (("learned", False), ("none", True)):
        model = build(ModelConfig.from_dict({**debug.to_dict(), "position_embeddings": word}))
        there, back = (model.encode(which)[0] for which in (ids, ids[:, ::-1]))
        assert np.allclose(there, back[:, ::-1]) == same


def test_token_types_default_to_the_first(debug):
    model = build(ModelConfig.from_dict({**debug.to_dict(), "token_types": 2}))
    ids = np.full((1, 5), 9)
    plain, zeros, ones = (model.encode(ids, token_types=types)[0]
                          for types in (None, np.zeros_like(ids), np.ones_like(ids)))
    assert np.array_equal(plain, zeros)
    assert not np.allclose(plain, ones)


# -------------------------------------------------------------------- dropout

@pytest.fixture
def dropping(debug) -> MiniBERT:
    made = build(ModelConfig.from_dict({**debug.to_dict(), "dropout": 0.2, "attention_dropout": 0.2}))
    return made


def test_dropout_is_on_exactly_where_a_key_is_given(dropping):
    ids = np.full((1, 3), 7)
    dropped, _ = dropping.forward(ids, dropout_key=(0, 1))
    plain, _ = dropping.forward(ids)
    again, _ = dropping.forward(ids)
    assert np.array_equal(plain, again)
    assert not np.allclose(dropped, plain)


def test_the_same_key_drops_the_same(dropping):
    ids = np.full((2, 6), 7)
    first, again, other = (dropping.forward(ids, dropout_key=key)[0]
                           for key in ((0, 1), (0, np.int64(1)), (0, 2)))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("key", [5, "ab", (), (0, 1.5)])
def test_a_bad_key_is_refused(dropping, key):
    with pytest.raises(InputError, match="key"):
        dropping.forward(np.full((1, 3), 7), dropout_key=key)


def test_there_is_no_training_mode_beside_the_key(dropping):
    dropping.set_training(False)
    with pytest.raises(InputError, match="dropout_key"):
        dropping.set_training(True)


# -------------------------------------------------------------------- inputs

IDS = np.full((2, 5), 7)


@pytest.mark.parametrize(("call", "words"), [
    ({"input_ids": np.array([[64]])}, ["64", "vocabulary", "0 to 63"]),
    ({"input_ids": np.array([[-1]])}, ["-1", "vocabulary"]),
    ({"input_ids": np.full((1, 17), 7)}, ["17", "max_seq_length=16"]),
    ({"input_ids": np.full((1, 4), 7.0)}, ["whole numbers", "float64"]),
    ({"input_ids": np.full((1, 4), True)}, ["whole numbers", "bool"]),
    ({"input_ids": np.full(4, 7)}, ["(batch, tokens)", "(4,)", "input_ids[None]"]),
    ({"input_ids": np.full((1, 1, 4), 7)}, ["(batch, tokens)"]),
    ({"input_ids": np.zeros((0, 4), int)}, ["empty"]),
    ({"input_ids": np.zeros((2, 0), int)}, ["empty"]),
    ({"input_ids": [["seven"]]}, ["whole numbers"]),
    ({"input_ids": IDS, "attention_mask": np.ones((2, 4))}, ["attention_mask", "(2, 4)", "(2, 5)"]),
    ({"input_ids": IDS, "attention_mask": np.full((2, 5), 0.5)}, ["attention_mask", "zeros and ones"]),
    ({"input_ids": IDS, "attention_mask": np.full((2, 5), np.nan)}, ["attention_mask", "zeros and ones"]),
    ({"input_ids": IDS, "attention_mask": np.full((2, 5), "x")}, ["attention_mask"]),
    ({"input_ids": IDS, "attention_mask": np.array([[1] * 5, [0] * 5])}, ["hides every token", "sequence 1"]),
    ({"input_ids": IDS, "positions": np.ones((5, 2), bool)}, ["positions", "(5, 2)"]),
    ({"input_ids": IDS, "positions": np.ones((2, 5), bool), "attention_mask": np.eye(2, 5)}, ["padding"]),
    ({"input_ids": IDS, "token_types": IDS}, ["token_types=0"]),
])
def test_a_bad_input_is_refused_in_one_sentence(model, call, words):
    with pytest.raises(InputError) as error:
        model.forward(**call)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_bad_token_types_are_refused():
    model = MiniBERT(ModelConfig.from_dict({**load_preset("debug").to_dict(), "token_types": 2}))
    with pytest.raises(InputError, match="token_types has the value 2"):
        model.forward(IDS, token_types=np.full((2, 5), 2))
    with pytest.raises(InputError, match="token_types has the shape"):
        model.forward(IDS, token_types=np.zeros((2, 4), int))


def test_gradients_of_the_wrong_shape_or_kind_are_refused(model):
    logits, cache = model.forward(IDS)
    grads = MiniBERTGradients(model)
    for bad in (logits[:, :, :-1], logits[:1], logits.astype(int), np.float64(1.0), logits.swapaxes(0, 1),
                logits.reshape(10, -1)):
        with pytest.raises(InputError, match="dlogits"):
            grads.backward_from_logits(bad, cache)
    with pytest.raises(InputError, match="dhidden"):
        grads.backward_from_hidden(logits, cache)


def test_a_model_without_a_head_says_so(debug):
    model = MiniBERT(ModelConfig.from_dict({**debug.to_dict(), "mlm_head": "none"}))
    with pytest.raises(InputError, match="no MLM head"):
        model.forward(IDS)
    hidden, _ = model.encode(IDS)
    with pytest.raises(InputError, match="no pooler"):
        model.pool(hidden)


def test_weights_that_are_not_finite_are_named(model):
    for name in ("W_V_0", "token_embeddings", "mlm_head_W"):
        broken = copy.deepcopy(model)
        broken.params[name][7, 3] = np.nan
        with pytest.raises(NumericalError, match=name):
            broken.forward(IDS)
        grads = MiniBERTGradients(broken)
        with pytest.raises(NumericalError, match=name):
            grads.accumulate_mlm(IDS, IDS, np.ones((2, 5), bool))
        assert not grads.gradients.flat.any()


def test_rows_of_different_lengths_are_refused(model):
    ragged = [[7, 8], [9]]
    with pytest.raises(InputError, match="different lengths"):
        model.forward(ragged)
    with pytest.raises(InputError, match="different lengths"):
        model.forward(IDS, ragged)
    with pytest.raises(InputError, match="different lengths"):
        MiniBERTGradients(model).accumulate_mlm(ragged, ragged, ragged)


def test_parts_refuse_what_does_not_fit(model, debug):
    x = np.zeros((2, 5, 16))
    for call, words in [(lambda: model._multi_head_attention(x[0]), "batch, tokens, features"),
                        (lambda: model._multi_head_attention(x, layer=2), "no layer 2"),
                        (lambda: model._multi_head_attention(x, layer=-1), "no layer -1"),
                        (lambda: model._multi_head_attention(np.zeros((2, 17, 16))), "max_seq_length"),
                        (lambda: model._multi_head_attention(x[..., :8]), "shape"),
                        (lambda: model.backward(np.zeros((2, 5, 64)), model.encode(IDS)[1], model.params), "encode"),
                        (lambda: MiniBERT(debug, seed="a"), "random key")]:
        with pytest.raises(InputError, match=words):
            call()


def test_a_copied_model_is_whole_and_separate(model):
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(twin.params.flat, model.params.flat)
        twin.params.flat *= 0
        assert not twin.params["W_Q_0"].any()
        assert model.params["W_Q_0"].any()


def test_threads_share_a_model(model):
    ids = np.random.default_rng(0).integers(5, 64, (8, 4, 10))
    alone = [model.forward(part)[0] for part in ids]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: model.forward(part)[0], ids))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together, strict=True))


def test_every_activation_has_a_name(model):
    logits, cache = model.forward(IDS)
    assert cache["attention_weights_0"].shape == (2, 2, 5, 5)
    assert np.allclose(cache["attention_weights_1"].sum(axis=-1), 1)
    assert np.array_equal(cache["logits"], logits)
    assert len(cache) == len(list(cache)) == len(set(cache))
    inside = {"x", "Q", "K", "V", "scores", "attention_weights", "context", "middle", "ffn_activation", "hidden"}
    assert {f"{name}_{layer}" for name in inside for layer in (0, 1)} <= set(cache)
    with pytest.raises(KeyError):
        cache["attention_weights_2"]
