"""Matrices that are kept in fewer bits: what is stored, what is computed, and what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import mini_bert
from mini_bert import CheckpointError, ConfigError, MiniBERT, MiniBERTGradients, ModelConfig, ParameterError
from mini_bert.core.precision.narrow import KINDS, BFloat16Matrix, Float16Matrix, Int8Matrix
from mini_bert.core.storage.safetensors_file import read_tensors, safetensors_chunks
from mini_bert.core.task_model import TaskModel, with_dropout
from mini_bert.interop.quantising import narrow_parameters, quantise
from mini_bert.objectives.distillation.students import student_of
from mini_bert.pretrained import model_directory
from mini_bert.training.grow import grow_model

CONFIG = ModelConfig(num_layers=2, hidden_size=16, intermediate_size=24, vocab_size=60, max_seq_length=16)
STEPS = {"int8": 1 / 254, "bf16": 2**-8, "fp16": 2**-11}          # the largest error, relative to the largest number
IDS = np.random.default_rng(0).integers(5, 60, (3, 11))


@pytest.fixture
def W() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((70, 2500)).astype(np.float32)


@pytest.fixture
def tokenizer() -> mini_bert.WordPieceTokenizer:
    return mini_bert.WordPieceTokenizer([*mini_bert.load_tokenizer("mini").vocabulary][:60], True)


@pytest.mark.parametrize("word", KINDS)
def test_a_matrix_is_near_what_it_was_made_from(word, W):
    for channels in (0, 1):
        error = np.abs(np.asarray(KINDS[word].narrowed(W, channels)) - W)
        assert (error <= STEPS[word] * np.abs(W).max(axis=1 - channels, keepdims=True) * 1.001).all()


def test_int8_has_a_scale_for_each_channel_and_uses_the_whole_range(W):
    W[:, 7], W[:, 8] = 0, 1e-6 * W[:, 8]
    made = Int8Matrix.narrowed(W, 1)
    assert made.scale.shape == (1, 2500)
    assert (np.abs(made.values.astype(int)).max(axis=0) == np.where(np.arange(2500) == 7, 0, 127)).all()
    assert (made[:, 7] == 0).all()


@pytest.mark.parametrize("word", KINDS)
def test_products_and_rows_are_those_of_the_widened_matrix(word, W):
    made, x = KINDS[word].narrowed(W, 1), np.random.default_rng(2).standard_normal((5, 70)).astype(np.float32)
    wide, out = np.asarray(made), np.empty((5, 2500), np.float32)
    np.testing.assert_allclose(x @ made, x @ wide, rtol=1e-5, atol=1e-4)
    assert np.matmul(x, made, out=out) is out
    np.testing.assert_allclose(out, x @ wide, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(out[:, :70] @ made, out[:, :70] @ wide, rtol=1e-4, atol=1e-2)
    rows = np.array([[3, 3], [69, 0]])
    np.testing.assert_array_equal(made[rows], wide[rows])
    np.testing.assert_array_equal(made[:, 5:9], wide[:, 5:9])
    np.testing.assert_array_equal(np.asarray(made.T), wide.T)
    np.testing.assert_array_equal(made + 1, wide + 1)


def test_halves_are_exact_where_the_format_can_hold_a_number():
    exact = np.array([[1.5, -2.0, 0.0078125, 0.0]], np.float32)
    for kind in (BFloat16Matrix, Float16Matrix):
        np.testing.assert_array_equal(np.asarray(kind.narrowed(exact, 1)), exact)


@pytest.mark.parametrize("word", KINDS)
def test_a_quantised_model_opens_with_the_same_numbers_everywhere(word, tokenizer, tmp_path):
    model = MiniBERT(replace(CONFIG, mlm_head="tied"))
    quantise(model, tokenizer, tmp_path / "out", to=word)
    opened = mini_bert.load(tmp_path / "out")
    wide = MiniBERT(model.config, seed=None)
    for name in wide.params:
        wide.params[name][...] = np.asarray(opened.params[name])
    expected, _ = wide.forward(IDS)
    np.testing.assert_allclose(opened.forward(IDS)[0], expected, atol=1e-5)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(opened)).forward(IDS)[0], expected, atol=1e-5)
    assert opened.params.nbytes < model.params.nbytes / (2.8 if word == "int8" else 1.8)
    opened.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.safetensors").read_bytes() \
        == (tmp_path / "out" / "model.safetensors").read_bytes()


def test_the_shipped_model_as_int8_is_at_most_two_sevenths_of_float32(tmp_path):
    model, tokenizer = mini_bert.load("mini"), mini_bert.load_tokenizer("mini")
    found = quantise(model, tokenizer, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").stat().st_size * 3.5 < model.params.nbytes
    assert found["worst_error"] < 0.03
    shown = str(mini_bert.pipeline(tmp_path / "out").fill_mask("They met for the first [MASK] in Paris.", top=1))
    assert "time" in shown


def test_a_task_model_keeps_its_head_and_labels(tokenizer, tmp_path):
    model = TaskModel(MiniBERT(CONFIG), "sequence", 3, labels=("a", "b", "c"), seed=3)
    quantise(model, tokenizer, tmp_path / "out")
    opened = mini_bert.load(tmp_path / "out")
    assert opened.labels == model.labels
    np.testing.assert_allclose(opened.forward(IDS)[0], model.forward(IDS)[0], atol=2e-2)


def test_what_would_train_quantised_weights_is_refused_in_one_sentence(tokenizer, tmp_path):
    quantise(MiniBERT(CONFIG), tokenizer, tmp_path / "out")
    model = mini_bert.load(tmp_path / "out")
    for train in (lambda: MiniBERTGradients(model), lambda: TaskModel(model, "sequence", 2),
                  lambda: model.params.flat, lambda: student_of(model, [0]), lambda: with_dropout(model, 0.1),
                  lambda: grow_model(model, tokenizer, tokenizer), lambda: narrow_parameters(model.params, "bf16")):
        with pytest.raises(ParameterError, match="int8: it is for use, and cannot be trained"):
            train()


@pytest.mark.parametrize("word", KINDS)
def test_a_changed_byte_is_noticed(word, tokenizer, tmp_path):
    quantise(MiniBERT(CONFIG), tokenizer, tmp_path / "out", to=word)
    file = tmp_path / "out" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-200] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match="its digest differs"):
        mini_bert.load(tmp_path / "out")


@pytest.mark.parametrize(("word", "name", "value"), [
    ("int8", "W_Q_0", np.ones((16, 16), np.float32)), ("int8", "W_Q_0", np.ones(16, np.int8)),
    ("int8", "W_Q_0.scale", np.ones((3, 1), np.float32)), ("int8", "W_Q_0.scale", np.full((1, 16), np.nan, np.float32)),
    ("int8", "W_Q_0.scale", np.full((1, 16), 3e38, np.float32)), ("int8", "W_Q_0.scale", None),
    ("int8", "W_Q_0", np.ones((3, 16), np.int8)), ("int8", "W_Q_0", None), ("int8", "b1_0", np.ones(24, np.int8)),
    ("fp16", "W_Q_0", np.full((16, 16), np.inf, np.float16)), ("fp16", "W_Q_0.scale", np.ones((1, 16), np.float32)),
    ("bf16", "W_Q_0", np.full((16, 16), 0x7F80, np.uint16)), ("bf16", "W_Q_0", np.ones((16, 16), np.float16))])
def test_a_file_that_does_not_hold_such_matrices_is_refused(word, name, value, tokenizer, tmp_path):
    quantise(MiniBERT(CONFIG), tokenizer, tmp_path / "out", to=word)
    file = tmp_path / "out" / "model.safetensors"
    tensors, metadata = read_tensors(file)
    tensors = {**tensors, name: value} if value is not None else {key: tensors[key] for key in tensors if key != name}
    file.write_bytes(b"".join(safetensors_chunks(tensors, metadata)))
    with pytest.raises(CheckpointError, match=name.removesuffix(".scale")) as refusal:
        mini_bert.load(tmp_path / "out")
    assert "\n" not in str(refusal.value)


def test_wrong_words_and_numbers_are_refused(tokenizer, tmp_path):
    model = MiniBERT(CONFIG)
    with pytest.raises(ConfigError, match="int8, bf16, fp16"):
        quantise(model, tokenizer, tmp_path / "out", to="int4")
    model.params["W_Q_0"][0, 0] = 1e6
    with pytest.raises(ConfigError, match="W_Q_0 has values that are too large for fp16"):
        quantise(model, tokenizer, tmp_path / "out", to="fp16")
    assert not (tmp_path / "out").exists()
    quantise(model, tokenizer, tmp_path / "out", to="int8")
    config = tmp_path / "out" / "config.json"
    config.write_text(config.read_text().replace('"int8"', '"int3"'))
    with pytest.raises(CheckpointError):
        mini_bert.load(tmp_path / "out")
    assert model_directory("mini").exists()
