"""The architectures of Hugging Face without transformers: files, heads, labels, and what is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mini_bert
from mini_bert import CheckpointError, ConfigError, MiniBERT, MiniBERTGradients, ModelConfig, load_preset
from mini_bert.core.task_model import TaskModel
from mini_bert.interop.huggingface import LAYOUTS

PUBLISHED = {"bert-base": "bert", "roberta-base": "roberta", "albert-base": "albert", "distilbert-base": "distilbert",
             "electra-small": "electra", "gpt2": "gpt2", "modernbert-base": "modernbert", "mini-albert": "albert",
             "mini-gpt": "gpt2", "mini-electra": "electra", "mini-modern": "modernbert"}
IDS = np.array([[7, 8, 9, 10, 11], [12, 13, 14, 3, 3]])
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def small(preset: str, **changes) -> ModelConfig:
    """The slots of a preset at small sizes."""
    config = load_preset(preset).to_dict()
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_size": 8, "intermediate_size": 12, "vocab_size": 20,
             "max_seq_length": 16, "embedding_size": 6 if config["embedding_size"] else 0}
    return ModelConfig.from_dict({**config, **sizes, **changes})


def change(directory: Path, edit) -> None:
    tensors = load_file(directory / "model.safetensors")
    save_file(edit(tensors), directory / "model.safetensors", metadata={"format": "pt"})


def described(directory: Path) -> dict:
    return json.loads((directory / "config.json").read_text())


def redescribe(directory: Path, **changes) -> None:
    """Change a config.json, and let its weights be those of anybody."""
    (directory / "config.json").write_text(json.dumps(described(directory) | changes))
    change(directory, lambda tensors: tensors)


@pytest.mark.parametrize(("preset", "model_type"), PUBLISHED.items(), ids=PUBLISHED)
def test_presets_are_saved_in_the_layout_of_transformers_and_come_back(preset, model_type, tmp_path):
    model = MiniBERT(small(preset), seed=1)
    model.save(tmp_path)
    assert described(tmp_path)["model_type"] == model_type
    again = mini_bert.load(tmp_path)
    assert np.array_equal(again.params.flat, model.params.flat)
    assert np.array_equal(again.encode(IDS, MASK)[0], model.encode(IDS, MASK)[0])


@pytest.mark.parametrize("preset", ["bert-tiny", "mini"])
@pytest.mark.parametrize(("head", "outputs", "shape"), [
    ("first_token", 3, (2, 3)), ("first_token(transform=tanh)", 3, (2, 3)), ("last_token", 3, (2, 3)),
    ("sequence(transform=gelu, norm=true)", 3, (2, 3)), ("tokens", 3, (2, 5, 3)), ("span", 2, (2, 2, 5))])
def test_a_task_model_is_saved_with_its_labels_in_either_layout(preset, head, outputs, shape, tmp_path):
    labels = ["yes", "no", "perhaps"][:outputs]
    model = TaskModel(MiniBERT(small(preset), seed=1), head, outputs, labels=labels)
    model.save(tmp_path)
    again = mini_bert.load(tmp_path)
    assert isinstance(again, TaskModel)
    assert (again.head_name, again.labels) == (head, tuple(labels))
    scores, cache = again.forward(IDS, MASK)
    assert scores.shape == shape
    assert np.array_equal(scores, model.forward(IDS, MASK)[0])
    grads = MiniBERTGradients(again)
    grads.backward_from_logits(np.ones_like(scores), cache)
    assert grads.gradients["token_embeddings"].any()
    assert grads.gradients["task_W"].any()
    assert MiniBERT.load(tmp_path).params["W_Q_0"].shape == (8, 8)            # the encoder alone


def test_scores_of_a_batch_are_those_of_forward(rng):
    model = TaskModel(MiniBERT(small("roberta-base"), seed=1), "first_token(transform=tanh)", 3)
    from mini_bert.core.task_model import TaskBatch

    batch = TaskBatch(IDS, MASK.astype(bool), np.array([0, 1]))
    assert np.allclose(model.scores(batch), model.forward(IDS, MASK)[0], atol=1e-6)


def test_the_next_sentence_head_is_kept(tmp_path):
    model = MiniBERT(small("bert-tiny", pooler="tanh", sentence_head="pooled"), seed=1)
    model.save(tmp_path)
    assert described(tmp_path)["architectures"] == ["BertForPreTraining"]
    assert "cls.seq_relationship.weight" in load_file(tmp_path / "model.safetensors")
    again = mini_bert.load(tmp_path)
    scores, _ = again.relate(again.pool(again.encode(IDS, MASK)[0])[0])
    assert scores.shape == (2, 2)


def test_the_discriminator_has_one_logit_for_each_token(tmp_path):
    MiniBERT(small("electra-small"), seed=1).save(tmp_path)
    model = mini_bert.load(tmp_path)
    logits, cache = model.forward(IDS, MASK)
    assert logits.shape == (2, 5)
    grads = MiniBERTGradients(model)
    grads.backward_from_logits(np.ones((2, 5), np.float32), cache)
    assert grads.gradients["replaced_W"].any()
    assert model.forward(IDS, MASK, positions=MASK.astype(bool))[0].shape == (8,)


def test_what_we_have_no_field_for_is_saved_again(tmp_path):
    MiniBERT(small("gpt2")).save(tmp_path / "first")
    redescribe(tmp_path / "first", eos_token_id=17, summary_type="mean")
    mini_bert.load(tmp_path / "first").save(tmp_path / "second")
    assert described(tmp_path / "second")["eos_token_id"] == 17
    assert described(tmp_path / "second")["summary_type"] == "mean"


def test_the_padding_of_an_opened_model_is_saved_again(tmp_path):
    MiniBERT(small("bert-tiny")).save(tmp_path / "first")
    assert described(tmp_path / "first")["pad_token_id"] == 0
    redescribe(tmp_path / "first", pad_token_id=3)
    mini_bert.load(tmp_path / "first").save(tmp_path / "second")
    assert described(tmp_path / "second")["pad_token_id"] == 3


def test_a_new_modernbert_names_special_tokens_of_its_own_vocabulary(tmp_path):
    MiniBERT(small("modernbert-base")).save(tmp_path)
    config = described(tmp_path)
    assert [config[f"{name}_token_id"] for name in ("pad", "cls", "bos", "sep", "eos")] == [0, 2, 2, 3, 3]


def test_any_layers_of_a_modernbert_may_see_everything(tmp_path):
    kinds = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    MiniBERT(small("modernbert-base", num_layers=5), seed=1).save(tmp_path / "first")
    redescribe(tmp_path / "first", layer_types=kinds)
    model = mini_bert.load(tmp_path / "first")
    assert "global_layers='2 4'" in model.config.score_terms
    model.save(tmp_path / "second")
    assert described(tmp_path / "second")["layer_types"] == kinds
    assert mini_bert.load(tmp_path / "second").config == model.config


def test_gpt2_as_the_hub_has_it_is_opened(tmp_path):
    """Without the prefix, with a causal mask in each layer and a copy of the tied decoder."""
    model = MiniBERT(small("gpt2"), seed=1)
    model.save(tmp_path)

    def edit(tensors):
        bare = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
        return bare | {"h.0.attn.bias": np.tril(np.ones((1, 1, 16, 16))), "lm_head.weight": bare["wte.weight"].copy()}

    change(tmp_path, edit)
    assert np.array_equal(mini_bert.load(tmp_path).params.flat, model.params.flat)


def test_modernbert_with_the_keys_of_its_first_config_is_opened(tmp_path):
    model = MiniBERT(small("modernbert-base", num_layers=4), seed=1)
    model.save(tmp_path)
    config = described(tmp_path)
    for key in ("layer_types", "rope_parameters"):
        del config[key]
    older = {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3}
    (tmp_path / "config.json").write_text(json.dumps(config | older))
    change(tmp_path, lambda tensors: tensors)
    assert np.array_equal(mini_bert.load(tmp_path).encode(IDS, MASK)[0], model.encode(IDS, MASK)[0])


def test_a_packed_tensor_of_a_wrong_shape_is_named(tmp_path):
    MiniBERT(small("gpt2")).save(tmp_path)
    name = "transformer.h.1.attn.c_attn.weight"
    change(tmp_path, lambda tensors: tensors | {name: np.zeros((8, 23), np.float32)})
    with pytest.raises(CheckpointError, match=rf"{re.escape(name)}.*\(8, 23\).*\(8, 24\)"):
        mini_bert.load(tmp_path)
    change(tmp_path, lambda tensors: {key: value for key, value in tensors.items() if key != name})
    with pytest.raises(CheckpointError, match=rf"missing: {re.escape(name)}\.$"):             # once, not three times
        mini_bert.load(tmp_path)


@pytest.mark.parametrize(("word", "said"), [
    ("robertta", "'robertta', which is not supported; the nearest name is 'roberta'; the choices are "),
    ("t5", "'t5', which is not supported; the choices are ")])
def test_an_unknown_type_names_the_nearest_one_if_it_is_a_slip_in_the_spelling(tmp_path, word, said):
    MiniBERT(small("roberta-base")).save(tmp_path)
    redescribe(tmp_path, model_type=word)
    with pytest.raises(CheckpointError, match=said):
        mini_bert.load(tmp_path)


def test_the_heads_of_a_class_of_another_library_are_left_aside(tmp_path):
    MiniBERT(small("bert-tiny"), seed=1).save(tmp_path)
    extra = {"cls.species.weight": np.zeros((3, 8), np.float32)}
    change(tmp_path, lambda tensors: tensors | extra)
    with pytest.raises(CheckpointError, match=r"not expected: cls\.species\.weight"):
        mini_bert.load(tmp_path)
    redescribe(tmp_path, architectures=["SpeciesBERT"])
    assert mini_bert.load(tmp_path).config.mlm_head == "bert"


@pytest.mark.parametrize("changes", [{"score_terms": "rotary"}, {"feedforward": "mlp"}, {"block": "pre_ln"},
                                     {"stack": "shared"}, {"position_embeddings": "learned"}], ids=str)
def test_models_without_a_twin_are_saved_in_our_layout(changes, tmp_path):
    MiniBERT(small("modernbert-base", **changes)).save(tmp_path)
    assert described(tmp_path)["model_type"] == "mini-bert"


@pytest.mark.parametrize(("preset", "changes", "word"), [
    ("roberta-base", {"pad_token_id": None}, "pad_token_id"),
    ("roberta-base", {"max_position_embeddings": "many"}, "max_position_embeddings"),
    ("albert-base", {"num_hidden_groups": 3}, "groups"),
    ("albert-base", {"inner_group_num": 0}, "inner"),
    ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
    ("modernbert-base", {"layer_types": ["full_attention"]}, "layer_types"),
    ("modernbert-base", {"layer_types": ["full_attention", "chunked_attention"]}, "layer_types"),
    ("modernbert-base", {"layer_types": 5}, "layer_types"),
    ("modernbert-base", {"local_attention": 1}, "config.json: .*local_attention must be a whole number of at least 2"),
    ("xlnet-base", {"d_model": 9}, "config.json: .*d_model must be even, not 9"),
    ("gpt2", {"scale_attn_weights": False}, "config.json: scale_attn_weights is false; only true is supported"),
    ("modernbert-base", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "rope_type"),
    ("modernbert-base", {"rope_parameters": ["default"]}, "rope_parameters"),
    ("modernbert-base", {"classifier_activation": ["gelu"]}, "classifier_activation"),
    ("electra-small", {"embedding_size": [1]}, "embedding_size"),
    ("distilbert-base", {"activation": "mish"}, "activation"),
])
def test_a_config_that_we_cannot_follow_is_refused_in_a_sentence(preset, changes, word, tmp_path):
    MiniBERT(small(preset)).save(tmp_path)
    redescribe(tmp_path, **changes)
    with pytest.raises((ConfigError, CheckpointError), match=word):
        mini_bert.load(tmp_path)


@pytest.mark.parametrize(("architectures", "said"), [(["BertForMultipleChoice"], "BertForMultipleChoice"),
                                                     (None, "no class")])
def test_a_task_head_of_a_class_that_is_not_opened_is_named(architectures, said, tmp_path):
    model = MiniBERT(small("bert-tiny", mlm_head="none", pooler="tanh"))
    TaskModel(model, "first_token(pooler=true)", 1).save(tmp_path)
    redescribe(tmp_path, architectures=architectures)
    with pytest.raises(CheckpointError, match=rf"task head \(classifier\.\w+\).*names {said};.*ForTokenClassification"):
        mini_bert.load(tmp_path)


def test_labels_that_are_no_table_are_refused(tmp_path):
    TaskModel(MiniBERT(small("bert-tiny", mlm_head="none")), "tokens", 3).save(tmp_path)
    for wrong in ({"one": "a"}, ["a", "b"], 7):
        redescribe(tmp_path, id2label=wrong)
        with pytest.raises(ConfigError, match="id2label"):
            mini_bert.load(tmp_path)


def test_no_shared_file_asks_for_an_architecture_by_its_name():
    own = {"mini_bert/interop/huggingface"}
    names = {name for layout in LAYOUTS for name in layout.model_types} - {"bert"}        # bert is a head's word too
    asks = re.compile(r"(==|!=|\bin\b)\s*[\[({]?\s*['\"](" + "|".join(map(re.escape, sorted(names))) + r")['\"]")
    root = Path(mini_bert.__file__).parents[1]
    for file in (root / "mini_bert").rglob("*.py"):
        if str(file.parent.relative_to(root).as_posix()) not in own:
            assert not asks.search(file.read_text(encoding="utf-8")), file
