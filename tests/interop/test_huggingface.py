"""Hugging Face's BERT: a model saved and run by transformers gives the same results here.

tests/reference/make_bert.py wrote the reference; `make parity` compares with a live transformers.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mini_bert
from mini_bert import CheckpointError, ConfigError, MiniBERT, MiniBERTGradients, ModelConfig, load_preset
from mini_bert.interop.huggingface import BertLayout

REFERENCE = Path(__file__).parents[1] / "reference" / "bert"


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    return load_file(REFERENCE / "expected.safetensors")


@pytest.fixture
def saved(tmp_path) -> Path:
    """A copy of the reference that a test may change."""
    shutil.copytree(REFERENCE, tmp_path / "bert")
    (tmp_path / "bert" / "expected.safetensors").unlink()
    return tmp_path / "bert"


def change(directory: Path, edit) -> None:
    tensors = load_file(directory / "model.safetensors")
    save_file(edit(tensors), directory / "model.safetensors", metadata={"format": "pt"})


def encode(model: MiniBERT, expected) -> np.ndarray:
    return model.encode(expected["input_ids"], expected["attention_mask"], token_types=expected["token_types"])[0]


def test_hidden_states_and_logits_equal_those_of_transformers(expected):
    model = mini_bert.load(REFERENCE, dtype=np.float64)
    logits, cache = model.forward(expected["input_ids"], expected["attention_mask"],
                                  token_types=expected["token_types"])
    real = expected["attention_mask"] == 1
    assert np.abs(logits - expected["logits"])[real].max() < 1e-12
    for layer, name in enumerate(["embeddings", "hidden_0", "hidden_1"]):
        ours = cache[name].reshape(*real.shape, -1)
        assert np.abs(ours - expected[f"hidden_{layer}"])[real].max() < 1e-12


def test_loss_and_gradients_equal_those_of_transformers(expected):
    model = mini_bert.load(REFERENCE, dtype=np.float64)
    grads = MiniBERTGradients(model)
    loss_sum, count = grads.accumulate_mlm(
        expected["input_ids"], expected["labels"], expected["labels"] != -100, expected["attention_mask"],
        token_types=expected["token_types"])
    assert loss_sum / count == pytest.approx(expected["loss"][0], rel=1e-12)
    grads.gradients.flat /= count
    _, ours = BertLayout().write(model.config, None, grads.gradients)     # gradients under the names of transformers
    assert len(ours) == sum(name.startswith("gradient of ") for name in expected)
    for name, gradient in ours.items():
        # absolute: the gradient of b_K is zero in exact arithmetic, since softmax ignores a constant added to a row
        assert np.abs(gradient - expected[f"gradient of {name}"]).max() < 1e-13, name


def test_old_names_of_layernorm_are_accepted(saved, expected):
    change(saved, lambda tensors: {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in tensors.items()})
    model = mini_bert.load(saved, dtype=np.float64)
    assert np.array_equal(encode(model, expected), encode(mini_bert.load(REFERENCE, dtype=np.float64), expected))


def test_an_encoder_without_a_head_is_opened(saved, expected):
    """BertModel has no prefix in its names, and a pooler."""
    rng = np.random.default_rng(0)
    pooler = {"pooler.dense.weight": rng.standard_normal((8, 8)), "pooler.dense.bias": rng.standard_normal(8)}
    change(saved, lambda tensors: {name.removeprefix("bert."): tensor for name, tensor in tensors.items()
                                    if not name.startswith("cls.")} | pooler)
    model = mini_bert.load(saved, dtype=np.float64)
    assert (model.config.mlm_head, model.config.pooler) == ("none", "tanh")
    hidden = encode(model, expected)
    assert np.abs(hidden - expected["hidden_2"])[expected["attention_mask"] == 1].max() < 1e-12
    pooled, _ = model.pool(hidden)
    assert np.allclose(pooled, np.tanh(hidden[:, 0] @ pooler["pooler.dense.weight"].T + pooler["pooler.dense.bias"]))
    model.save(saved.parent / "again")
    again = mini_bert.load(saved.parent / "again", dtype=np.float64)
    assert np.array_equal(again.params.flat, model.params.flat)
    assert json.loads((saved.parent / "again" / "config.json").read_text())["architectures"] == ["BertModel"]


def test_a_sentence_transformers_directory_is_opened(saved, expected):
    outer = saved.parent / "sentence"
    outer.mkdir()
    shutil.move(saved, outer / "0_Transformer")
    (outer / "modules.json").write_text(json.dumps([{"idx": 0, "path": "0_Transformer"}, {"path": "1_Pooling"}]))
    assert mini_bert.load(outer).config.hidden_size == 8


def test_buffers_and_copies_of_tied_tensors_are_ignored(saved):
    def add(tensors):
        return tensors | {"bert.embeddings.position_ids": np.arange(12)[None],
                          "embeddings.position_ids": np.arange(12)[None],
                          "cls.seq_relationship.weight": np.zeros((2, 8)),
                          "cls.seq_relationship.bias": np.zeros(2),
                          "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].copy(),
                          "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].copy()}

    change(saved, add)
    assert np.array_equal(mini_bert.load(saved).params.flat, mini_bert.load(REFERENCE).params.flat)


def test_an_untied_decoder_is_refused(saved):
    change(saved, lambda tensors: tensors | {"cls.predictions.decoder.weight": np.zeros((24, 8))})
    with pytest.raises(CheckpointError, match=r"decoder\.weight differs"):
        mini_bert.load(saved)


def test_missing_and_extra_tensors_are_named(saved):
    def edit(tensors):
        del tensors["bert.encoder.layer.1.output.dense.bias"]
        return tensors | {"bert.encoder.layer.7.output.dense.bias": np.zeros(8)}

    change(saved, edit)
    with pytest.raises(CheckpointError) as error:
        mini_bert.load(saved)
    assert "missing: bert.encoder.layer.1.output.dense.bias" in str(error.value)
    assert "not expected: bert.encoder.layer.7.output.dense.bias" in str(error.value)


def test_a_broken_tensor_is_named_as_in_the_file(saved):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    change(saved, lambda tensors: tensors | {name: np.zeros((3, 8))})
    with pytest.raises(CheckpointError, match=rf"{name}.*\(3, 8\).*\(16, 8\)"):
        mini_bert.load(saved)
    change(saved, lambda tensors: tensors | {name: np.full((16, 8), np.nan)})
    with pytest.raises(CheckpointError, match=rf"{name}.*not finite"):
        mini_bert.load(saved)


def test_a_task_head_is_refused_by_name(saved):
    change(saved, lambda tensors: {name: tensor for name, tensor in tensors.items() if "cls" not in name}
           | {"classifier.weight": np.zeros((2, 8)), "classifier.bias": np.zeros(2)})
    with pytest.raises(CheckpointError, match=r"task head \(classifier\."):
        mini_bert.load(saved)


def test_a_tensor_under_its_old_and_new_name_is_refused(saved):
    change(saved, lambda tensors: tensors | {"embeddings.LayerNorm.gamma": np.ones(8)})
    with pytest.raises(CheckpointError, match="twice"):
        mini_bert.load(saved)


def test_embeddings_saved_only_as_the_decoder_are_found(saved):
    def move(tensors):
        tensors["cls.predictions.decoder.weight"] = tensors.pop("bert.embeddings.word_embeddings.weight")
        return tensors

    change(saved, move)
    assert np.array_equal(mini_bert.load(saved).params.flat, mini_bert.load(REFERENCE).params.flat)


def test_a_config_without_model_type_is_accepted(saved):
    config = json.loads((saved / "config.json").read_text())
    del config["model_type"]
    (saved / "config.json").write_text(json.dumps(config))
    assert mini_bert.load(saved).config.hidden_size == 8


@pytest.mark.parametrize(("key", "value", "word"), [
    ("hidden_act", ["gelu"], "gelu"),
    ("hidden_act", "quick_gelu", "quick_gelu"),
    ("position_embedding_type", "relative_key", "absolute"),
    ("is_decoder", True, "is_decoder"),
    ("num_attention_heads", 3, "num_heads=3"),
    ("hidden_size", "many", "hidden_size"),
])
def test_a_config_that_is_not_of_bert_is_refused(saved, key, value, word):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(config | {key: value}))
    with pytest.raises(ConfigError, match=word):
        mini_bert.load(saved)


@pytest.mark.parametrize("name", ["bert-tiny", "bert-base", "bert-large"])
def test_bert_presets_fit_the_layout(name):
    assert BertLayout().fits(load_preset(name), None)


@pytest.mark.parametrize("changes", [{"final_layernorm": True}, {"block": "pre_ln"}, {"norm": "rmsnorm"},
                                     {"mlm_head": "plain"}, {"attention_bias": False}])
def test_other_models_are_saved_in_our_layout(changes, tmp_path):
    sizes = {key: load_preset("debug").to_dict()[key] for key in ("num_layers", "num_heads", "hidden_size",
                                                                 "intermediate_size", "vocab_size")}
    MiniBERT(ModelConfig.from_dict({**load_preset("bert-tiny").to_dict(), **sizes, **changes})).save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "mini-bert"
