"""Directories of transformers with the head of a task: predictions with it, and fine-tuning from its encoder."""

import numpy as np
import pytest
from task_files import CONFIG, run
from test_finetune_command import command, refused

from mini_bert import MiniBERT, ModelConfig, load_preset
from mini_bert.core.task_model import TaskModel

SIZES = ("num_layers", "num_heads", "hidden_size", "intermediate_size", "vocab_size", "max_seq_length")
HEADS = {"bert-tiny": "first_token(pooler=true)", "roberta-base": "first_token(transform=tanh)",
         "distilbert-base": "first_token(transform=relu)", "gpt2": "last_token(bias=false)"}


def saved(folder, tokenizer, preset, head, outputs, labels):
    """A model with a task's head, as transformers would have saved it."""
    config = load_preset(preset).to_dict()
    pooler = {"pooler": "tanh"} if "pooler" in head else {}
    made = ModelConfig.from_dict({**config, **{name: getattr(CONFIG, name) for name in SIZES}, **pooler,
                                  "mlm_head": "none", "dropout": 0.0, "attention_dropout": 0.0})
    model = TaskModel(MiniBERT(made, seed=3), head, outputs, labels=labels)
    model.save(folder)
    tokenizer.save(folder)
    return model


@pytest.mark.parametrize("preset", HEADS)
def test_a_classifier_predicts_with_its_own_labels(preset, data, tokenizer, tmp_path):
    model = saved(tmp_path / "model", tokenizer, preset, HEADS[preset], 3, ["bad", "fair", "good"])
    found = run("predict", "--model", tmp_path / "model", "good film", "the plot\ta film")
    assert found["task"] == "classification"
    scores, _ = model.forward(np.array([tokenizer.encode("good film")]))
    assert found["answers"][0]["answer"] == model.labels[int(scores[0].argmax())]
    assert all(set(answer["probabilities"]) == {"bad", "fair", "good"} for answer in found["answers"])


def test_taggers_and_readers_predict_too(data, tokenizer, tmp_path):
    saved(tmp_path / "entities", tokenizer, "bert-tiny", "tokens", 2, ["O", "B-PER"])
    (found,) = run("predict", "--model", tmp_path / "entities", "anna lives in paris")["answers"]
    assert "entities" in found
    saved(tmp_path / "words", tokenizer, "bert-tiny", "tokens", 2, ["NOUN", "VERB"])
    (found,) = run("predict", "--model", tmp_path / "words", "anna lives")["answers"]
    assert {word["label"] for word in found["words"]} <= {"NOUN", "VERB"}
    saved(tmp_path / "answers", tokenizer, "roberta-base", "span", 2, [])
    (found,) = run("predict", "--model", tmp_path / "answers", "where lives anna\tanna lives in paris")["answers"]
    assert found["answer"] in "anna lives in paris"


def test_fine_tuning_starts_from_the_encoder_of_a_classifier(data, tokenizer, tmp_path):
    saved(tmp_path / "model", tokenizer, "bert-tiny", "first_token(pooler=true)", 3, ["bad", "fair", "good"])
    found = run(*command(data, model=tmp_path / "model", head="first_token(pooler=true)", out=tmp_path / "task"))
    assert found["head"] == "first_token(pooler=true)"
    (answer,) = run("predict", "--model", tmp_path / "task", "good film")["answers"]
    assert answer["answer"] in ("pos", "neg")


def test_a_model_without_a_task_is_refused(data, tokenizer, tmp_path):
    assert "no head of a task" in refused("predict", "--model", data / "model", "good film")
