"""Directories for other libraries, as far as they can be looked at without these: see tests/parity/test_export.py."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

import mini_bert
from mini_bert import CheckpointError, ConfigError, MiniBERT, ModelConfig
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.storage import save_task
from mini_bert.factory import load_with_head

BERT = ModelConfig(num_layers=2, hidden_size=16, intermediate_size=24, vocab_size=60, max_seq_length=16, token_types=2,
                   embedding_layernorm=True, attention_bias=True, activation="gelu", final_layernorm=False,
                   mlm_head="bert", layernorm_eps=1e-12)


@pytest.fixture
def tokenizer() -> mini_bert.WordPieceTokenizer:
    return mini_bert.WordPieceTokenizer([*mini_bert.load_tokenizer("mini").vocabulary][:60], True)


def test_a_bert_is_written_in_the_layouts_of_both_libraries(tokenizer, tmp_path):
    model = MiniBERT(BERT)
    found = mini_bert.export(model, tokenizer, tmp_path / "hf", format="huggingface")
    assert (found["model_type"], found["architectures"]) == ("bert", ["BertForMaskedLM"])
    mini_bert.export(model, tokenizer, tmp_path / "st", format="sentence-transformers")
    modules = json.loads((tmp_path / "st" / "modules.json").read_text())
    assert [module["path"] for module in modules] == ["", "1_Pooling", "2_Normalize"]
    pooling = json.loads((tmp_path / "st" / "1_Pooling" / "config.json").read_text())
    assert (pooling["word_embedding_dimension"], pooling["pooling_mode_mean_tokens"]) == (16, True)
    for folder in ("hf", "st"):
        opened = mini_bert.load(tmp_path / folder)
        np.testing.assert_array_equal(opened.params.flat, model.params.flat)
        assert mini_bert.load_tokenizer(tmp_path / folder).ids("a b") == tokenizer.ids("a b")


def test_a_fine_tuned_model_is_opened_with_its_head_and_labels(tokenizer, tmp_path):
    model = TaskModel(MiniBERT(BERT), "sequence", 2)
    save_task(tmp_path / "task", model, tokenizer, "classification", ["bad", "good"], {})
    opened, _ = load_with_head(tmp_path / "task")
    assert opened.labels == ("bad", "good")
    np.testing.assert_array_equal(opened.params.flat, model.params.flat)


def test_what_cannot_be_written_is_said_in_one_sentence(tokenizer, tmp_path):
    ours, out = MiniBERT(ModelConfig(num_layers=1, hidden_size=8, vocab_size=60)), tmp_path / "out"
    for format in ("huggingface", "sentence-transformers"):
        with pytest.raises(ConfigError, match="transformers has no model that computes what this one does"):
            mini_bert.export(ours, tokenizer, out, format=format)
    with pytest.raises(ConfigError, match="the formats are onnx, huggingface"):
        mini_bert.export(ours, tokenizer, out, format="gguf")
    with pytest.raises(ConfigError, match="the other formats hold the whole model"):
        mini_bert.export(MiniBERT(BERT), tokenizer, out, format="huggingface", output="hidden")
    mini_bert.quantise(ours, tokenizer, tmp_path / "int8")
    with pytest.raises(mini_bert.ParameterError, match="int8"):
        mini_bert.export(mini_bert.load(tmp_path / "int8"), tokenizer, out, format="huggingface")
    assert not out.exists()
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="is not empty"):
        mini_bert.export(MiniBERT(BERT), tokenizer, out, format="huggingface")
    assert [file.name for file in out.iterdir()] == ["notes.txt"]


@pytest.mark.skipif(importlib.util.find_spec("onnx") is not None, reason="onnx is installed, so nothing is missing")
def test_without_the_package_the_sentence_names_the_extra(tokenizer, tmp_path):
    with pytest.raises(ConfigError, match=r"pip install 'mini-bert\[onnx\]'"):
        mini_bert.export(MiniBERT(BERT), tokenizer, tmp_path / "out", format="onnx")


def test_the_command_writes_and_describes_a_directory(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mini_bert", "quantise", "--to", "bf16", "--out",
                           str(tmp_path / "out"), "--json"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert 1.9 < found["times"] < 2
    assert found["worst_error"] < 0.004
    assert mini_bert.load(tmp_path / "out").config == mini_bert.load("mini").config
