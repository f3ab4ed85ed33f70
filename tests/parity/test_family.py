"""Every architecture of interop/huggingface beside transformers: outputs, gradients, and files both ways.

Weights are random and far from their initial values, sizes are not the defaults, sequences are padded on either side,
and longer than every window.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest
from gradient_errors import worst_gradient

import mini_bert
from mini_bert import MiniBERT, MiniBERTGradients, load_preset
from mini_bert.core.modules.assembly import parameter_specs
from mini_bert.core.task_model import TaskModel
from mini_bert.interop.huggingface import LAYOUTS
from mini_bert.interop.huggingface.tables import ACTIVATIONS

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

LENGTHS = [21, 13, 6, 2]
SIZES = {"vocab_size": 71, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40,
         "max_position_embeddings": 33, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
         "classifier_dropout": 0.0}
CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
MASKED = ("Model", "ForMaskedLM", *CLASSIFIERS)
DISTILBERT = {"vocab_size": 71, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40, "max_position_embeddings": 33}
GPT2 = {"vocab_size": 71, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_inner": 40, "n_positions": 33,
        "pad_token_id": 3}
MODERN = {"vocab_size": 71, "hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 3,
          "intermediate_size": 40, "max_position_embeddings": 33, "local_attention": 8, "pad_token_id": 3,
          "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2,
          "layer_types": ["full_attention", "sliding_attention"] * 2 + ["full_attention"],
          "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5000.0},
                              "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}}


XLNET = {"vocab_size": 71, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 40, "dropout": 0.0}


class Case(NamedTuple):
    family: str
    kind: str
    settings: dict[str, Any]
    name: str = ""

    def __str__(self) -> str:
        return f"{self.family}{self.kind}" + (f" {self.name}" if self.name else "")


def cases() -> Iterator[Case]:
    for kind in (*MASKED, "ForPreTraining"):
        yield Case("Bert", kind, SIZES)
        yield Case("Albert", kind, {**SIZES, "embedding_size": 10, "classifier_dropout_prob": 0.0})
    for family in ("Roberta", "XLMRoberta", "Camembert"):
        for kind in MASKED:
            yield Case(family, kind, {**SIZES, "type_vocab_size": 1, "layer_norm_eps": 1e-5})
    yield Case("Roberta", "ForMaskedLM", {**SIZES, "hidden_act": "relu", "pad_token_id": 4}, "ReLU, another padding")
    for family in ("Bert", "Roberta", "Albert", "Electra"):
        yield Case(family, "ForMaskedLM", {**SIZES, "tie_word_embeddings": False, "hidden_act": "tanh"}, "untied")
    yield Case("DistilBert", "ForMaskedLM", {**DISTILBERT, "tie_word_embeddings": False}, "untied")
    yield Case("ModernBert", "ForMaskedLM", {**MODERN, "tie_word_embeddings": False}, "untied")
    yield Case("GPT2", "LMHeadModel", {**GPT2, "tie_word_embeddings": False}, "untied")
    yield Case("XLNet", "LMHeadModel", {**XLNET, "tie_word_embeddings": False}, "untied")
    yield Case("Roberta", "ForMaskedLM", {**SIZES, "hidden_act": "gelu_python"}, "another name of GELU")
    yield Case("Albert", "ForMaskedLM", {**SIZES, "embedding_size": 24}, "E = H")
    yield Case("Albert", "ForMaskedLM", {**SIZES, "embedding_size": 10, "num_hidden_layers": 3, "num_hidden_groups": 2,
                                         "inner_group_num": 2}, "groups")
    for kind in MASKED:
        yield Case("DistilBert", kind, DISTILBERT)
        yield Case("ModernBert", kind, MODERN)
    yield Case("ModernBert", "ForSequenceClassification", {**MODERN, "classifier_pooling": "mean"}, "mean")
    yield Case("ModernBert", "ForMaskedLM", {**MODERN, "layer_types": ["sliding_attention", "full_attention"] + [
        "sliding_attention"] * 3}, "layers in another order")
    yield Case("ModernBert", "ForMaskedLM", {**MODERN, "norm_bias": True, "mlp_bias": True, "attention_bias": True,
                                             "classifier_bias": True, "decoder_bias": False,
                                             "classifier_activation": "relu"}, "biases")
    for kind in (*MASKED, "ForPreTraining"):
        yield Case("Electra", kind, {**SIZES, "embedding_size": 10})
    yield Case("Electra", "Model", {**SIZES, "embedding_size": 24}, "E = H")
    yield Case("Electra", "ForMaskedLM", {**SIZES, "embedding_size": 10, "hidden_act": "gelu_new"}, "gelu_new")
    for kind in ("Model", "LMHeadModel", *CLASSIFIERS):
        yield Case("GPT2", kind, GPT2)
    for kind in ("Model", "LMHeadModel", *CLASSIFIERS[:2], "ForQuestionAnsweringSimple"):
        yield Case("XLNet", kind, XLNET)
    yield Case("XLNet", "LMHeadModel", {**XLNET, "clamp_len": 4, "ff_activation": "relu"}, "clamped distances")
    yield Case("XLNet", "ForSequenceClassification", {**XLNET, "summary_type": "first", "summary_activation": "relu"},
               "first token")


CASES = {str(case): case for case in cases()}


@pytest.fixture(params=CASES)
def case(request) -> Case:
    return CASES[request.param]


def theirs(case: Case) -> Any:
    """A model of transformers with random weights, in evaluation mode."""
    settings = {**case.settings, "num_labels": 5 if case.kind in CLASSIFIERS[:2] else 2}
    config = getattr(transformers, f"{case.family}Config")(**settings)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    model = getattr(transformers, case.family + case.kind)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            scale = parameter.shape[-1] ** -0.5 if parameter.ndim > 1 else 0.3
            parameter.add_(scale * torch.randn(parameter.shape))
    return model


def batch(model: Any, side: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ids, mask and, if there are any, token types of sequences of different lengths, padded on one side."""
    rng = np.random.default_rng(1)
    mask = np.arange(LENGTHS[0]) < np.array(LENGTHS)[:, None]
    mask = mask if side == "right" else mask[:, ::-1]
    ids = np.where(mask, rng.integers(5, model.config.vocab_size, mask.shape), model.config.pad_token_id or 0)
    types = getattr(model.config, "type_vocab_size", 0)
    return ids, mask, rng.integers(0, types, mask.shape) if types else None


def run(model: Any, ids: np.ndarray, mask: np.ndarray, types: np.ndarray | None) -> Any:
    more = {} if types is None else {"token_type_ids": torch.tensor(types)}
    return model(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask.copy()).long(), **more)


def output_of(answer: Any) -> Any:
    """The tensor that our `forward` gives."""
    if "start_logits" in answer:
        return torch.stack([answer.start_logits, answer.end_logits])
    return answer.prediction_logits if "prediction_logits" in answer else answer.logits


def places(model: MiniBERT, mask: np.ndarray, output: np.ndarray) -> Any:
    """Where an output is of real tokens: what stands at padding is of no use to anybody, and may differ."""
    if isinstance(model, TaskModel) and output.ndim == 2:
        if model.described["model_type"] == "xlnet" and model.head_name.startswith("last_token"):
            return mask[:, -1]                # theirs reads the last place, padding or not
        return mask[:, 0] if model.head_name.startswith("first_token") else slice(None)
    return np.broadcast_to(mask, output.shape) if output.shape == (2, *mask.shape) else mask


def compared(models: list[MiniBERT], gradients: list[Any], reference: Any, *, some_unread: bool = False) -> float:
    """The worst error of the first model's gradients; the last model's are the exact ones.

    Ours has all parameters of theirs, but for those that nothing reads, if there are `some_unread`.
    """
    layout = next(layout for layout in LAYOUTS if layout.model_type == models[0].described["model_type"])
    named = [layout.write(model.config, model.task_spec, found)[1]
             for model, found in zip(models, gradients, strict=True)]
    parameters = {}
    for name, parameter in reference.named_parameters(remove_duplicate=False):    # tied ones under all their names
        for old, new in layout.renamed.items():
            name = name.replace(old, new)
        parameters[name] = parameter
    unread = {id(parameter) for parameter in parameters.values() if parameter.grad is None} if some_unread else set()
    assert {id(parameters[name]) for name in named[0]} | unread == set(map(id, parameters.values()))
    # an untied decoder has a bias of its own, and the head's is in the files but in no sum
    read = {name for name in named[0] if f"{name.removesuffix('bias')}decoder.bias" not in named[0]}
    theirs = {name: np.zeros(parameters[name].shape) if parameters[name].grad is None else parameters[name].grad.numpy()
              for name in read}
    worst, name = worst_gradient({name: named[0][name] for name in read}, theirs,
                                 {name: named[-1][name] for name in read})
    print(f"the gradient of {name} is off by {worst:.1e} of its size")
    return worst


@pytest.mark.parametrize("side", ["right", "left"])
def test_outputs_equal_those_of_transformers(case, side, tmp_path):
    reference = theirs(case)
    reference.save_pretrained(tmp_path)
    model = mini_bert.load(tmp_path)
    ids, mask, types = batch(reference, side)
    with torch.no_grad():
        hidden = run(reference.base_model, ids, mask, types).last_hidden_state.numpy()
        answer = run(reference, ids, mask, types)
    ours, _ = model.encode(ids, mask, token_types=types)
    assert np.abs(ours - hidden)[mask].max() <= 1e-5
    if case.kind != "Model":
        expected = output_of(answer).numpy()
        logits, _ = model.forward(ids, mask, token_types=types)
        assert logits.shape == expected.shape
        assert np.abs(logits - expected)[places(model, mask, expected)].max() <= 1e-4
    if case.kind == "ForPreTraining" and not model.modules.finds_replaced:
        scores, _ = model.relate(model.pool(ours)[0])
        relation = answer.sop_logits if "sop_logits" in answer else answer.seq_relationship_logits
        assert np.abs(scores - relation.numpy()).max() <= 1e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_gradients_equal_those_of_transformers(case, dtype, tmp_path):
    if case.family == "ModernBert" and dtype is np.float64:
        pytest.skip("its softmax is in float32 always, and gives NaN at padding in a model of float64")
    # XLNet's sines and cosines are in float32
    tolerance = 1e-4 if dtype is np.float32 else 1e-5 if case.family == "XLNet" else 1e-6
    reference = theirs(case).to(torch.float32 if dtype is np.float32 else torch.float64)
    reference.save_pretrained(tmp_path)
    models = [mini_bert.load(tmp_path, dtype=kind) for kind in dict.fromkeys((dtype, np.float64))]
    ids, mask, types = batch(reference, "right")
    rng = np.random.default_rng(2)

    hidden = run(reference.base_model, ids, mask, types).last_hidden_state
    dhidden = (rng.standard_normal(hidden.shape) * mask[..., None]).astype(dtype)
    (hidden * torch.tensor(dhidden)).sum().backward()
    grads = [MiniBERTGradients(model) for model in models]
    for model, found in zip(models, grads, strict=True):
        found.backward_from_hidden(dhidden, model.encode(ids, mask, token_types=types)[1])
    assert compared(models, [found.gradients for found in grads], reference) <= tolerance
    if case.kind == "Model":
        return
    reference.zero_grad()
    output = output_of(run(reference, ids, mask, types))
    dlogits = np.zeros(tuple(output.shape), dtype)
    where = places(models[0], mask, dlogits)
    dlogits[where] = rng.standard_normal(dlogits[where].shape)
    (output * torch.tensor(dlogits)).sum().backward()
    for model, found in zip(models, grads, strict=True):
        found.zero_gradients()
        found.backward_from_logits(dlogits, model.forward(ids, mask, token_types=types)[1])
    assert compared(models, [found.gradients for found in grads], reference) <= tolerance


def test_files_go_both_ways(case, tmp_path):
    reference = theirs(case)
    reference.config.id2label = {i: f"label {i}" for i in range(reference.config.num_labels)}
    reference.save_pretrained(tmp_path / "theirs")
    model = mini_bert.load(tmp_path / "theirs")
    model.save(tmp_path / "ours")
    auto = transformers.AutoModel if case.kind == "Model" else getattr(transformers, case.family + case.kind)
    again, info = auto.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert type(again) is type(reference)
    assert not info["missing_keys"], info
    assert not info["unexpected_keys"], info
    assert not info["mismatched_keys"], info
    known = reference.state_dict()
    untied = not getattr(reference.config, "tie_word_embeddings", True)
    for name, tensor in again.state_dict().items():
        twin = name.removesuffix("bias") + "decoder.bias"         # of an untied decoder, the bias that is added
        assert torch.equal(tensor, known[twin if untied and twin in known else name]), name
    for key, value in case.settings.items():
        found = getattr(again.config, key)
        if isinstance(value, str):                                # one activation has several names
            found, value = ACTIVATIONS.get(found, found), ACTIVATIONS.get(value, value)
        assert found == value, key
    if isinstance(model, TaskModel):
        assert again.config.id2label == reference.config.id2label
        assert list(model.labels) == list(reference.config.id2label.values())[: len(model.labels)]
    reopened = mini_bert.load(tmp_path / "ours")
    assert reopened.config == model.config
    assert np.array_equal(reopened.params.flat, model.params.flat)


def test_every_layout_is_compared():
    elsewhere = {"Deberta", "DebertaV2"}              # test_deberta.py
    assert {layout.family for layout in LAYOUTS} - elsewhere == {case.family for case in CASES.values()} - elsewhere


@pytest.mark.parametrize(("preset", "kind", "settings"), [
    ("bert-base", "BertForMaskedLM", {}),
    ("roberta-base", "RobertaForMaskedLM", {"max_position_embeddings": 514, "type_vocab_size": 1}),
    ("albert-base", "AlbertForPreTraining", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}),
    ("distilbert-base", "DistilBertForMaskedLM", {}),
    ("electra-small", "ElectraForPreTraining", {}),
    ("modernbert-base", "ModernBertForMaskedLM", {}),
    ("gpt2", "GPT2LMHeadModel", {}),
])
def test_presets_have_as_many_parameters_as_the_published_models(preset, kind, settings):
    made = getattr(transformers, kind)
    with torch.device("meta"):
        reference = made(made.config_class(**settings))
    ours = sum(prod(spec.shape) for spec in parameter_specs(load_preset(preset)))
    print(f"{preset}: {ours:,} parameters")
    assert ours == reference.num_parameters()
