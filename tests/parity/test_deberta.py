"""DeBERTa v1 and v2/v3 against transformers: sizes, lengths and weights that no published model has."""

from pathlib import Path

import numpy as np
import pytest
from gradient_errors import worst_gradient

import mini_bert
from mini_bert import MiniBERT, MiniBERTGradients, load_preset
from mini_bert.core.modules.attention.scores.relative_table import distance_rows
from mini_bert.errors import MiniBertError
from mini_bert.interop.huggingface import DebertaLayout, DebertaV2Layout

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

SMALL = {"vocab_size": 83, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 40,
         "max_position_embeddings": 32, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
         "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False}
V3 = {**SMALL, "position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
CASES = {
    "v1 as published": ("Deberta", SMALL, 20),
    "v1 beyond its reach": ("Deberta", {**SMALL, "max_relative_positions": 7}, 30),
    "v1 beyond its positions": ("Deberta", SMALL, 50),
    "v1 with positions and segments": ("Deberta", {**SMALL, "position_biased_input": True, "type_vocab_size": 3}, 32),
    "v1, content to position": ("Deberta", {**SMALL, "pos_att_type": "c2p", "max_relative_positions": 5}, 20),
    "v1, position to content": ("Deberta", {**SMALL, "pos_att_type": ["p2c"], "max_relative_positions": 5}, 20),
    "v1 without relative attention": ("Deberta", {**SMALL, "relative_attention": False, "pos_att_type": None,
                                                  "position_biased_input": True}, 20),
    "v1 with narrow embeddings": ("Deberta", {**SMALL, "embedding_size": 10, "type_vocab_size": 2,
                                              "position_biased_input": True}, 20),
    "v1 with the new head": ("Deberta", {**SMALL, "legacy": False}, 20),
    "v3 as published": ("DebertaV2", V3, 30),
    "v3 inside its buckets": ("DebertaV2", {**V3, "position_buckets": 256}, 30),
    "v3 beyond its positions": ("DebertaV2", V3, 70),
    "v3 with 600 tokens": ("DebertaV2", {**V3, "position_buckets": 32, "max_position_embeddings": 512,
                                         "num_hidden_layers": 2}, 600),
    "v3 with few buckets": ("DebertaV2", {**V3, "position_buckets": 5, "max_relative_positions": 11}, 40),
    "v3 with the new head": ("DebertaV2", {**V3, "legacy": False, "type_vocab_size": 2}, 30),
    "v3, content to position": ("DebertaV2", {**V3, "pos_att_type": "c2p"}, 30),
    "v3, position to content": ("DebertaV2", {**V3, "pos_att_type": "p2c"}, 30),
    "v2 with matrices of its own": ("DebertaV2", {**V3, "share_att_key": False, "norm_rel_ebd": "none"}, 30),
    "v2 without buckets": ("DebertaV2", {**V3, "position_buckets": -1, "max_relative_positions": 6}, 30),
    "v2, narrow, with positions": ("DebertaV2", {**V3, "embedding_size": 36, "position_biased_input": True,
                                                 "type_vocab_size": 2}, 32),
    "v2 with a convolution": ("DebertaV2", {**V3, "conv_kernel_size": 3, "conv_act": "gelu"}, 30),
    "v2 with a wide convolution alone": ("DebertaV2", {**V3, "conv_kernel_size": 7, "num_hidden_layers": 1}, 20),
    "v2, untied, with norms that nothing reads": ("DebertaV2", {**V3, "relative_attention": False, "pos_att_type": [],
                                                                "tie_word_embeddings": False,
                                                                "position_biased_input": True}, 20),
    "v2 without relative attention": ("DebertaV2", {**V3, "relative_attention": False, "pos_att_type": [],
                                                    "norm_rel_ebd": "none", "position_biased_input": True}, 20),
}
LAYOUTS = {"Deberta": DebertaLayout, "DebertaV2": DebertaV2Layout}


def made(family: str, head: str, options: dict, seed: int = 0, **more):
    """A model of transformers with weights far from those that it starts with."""
    config = getattr(transformers, f"{family}Config")(**options, **more)
    model = getattr(transformers, family + head)(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
            else:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.25)
    model.tie_weights()
    return model


def batch(vocabulary: int, types: int, T: int):
    """Five sequences of different lengths, padded behind or in front."""
    rng = np.random.default_rng(3)
    lengths = np.array([T, T - 3, T // 2, 2, 1])
    mask = np.arange(T) < lengths[:, None]
    mask[1::2] = mask[1::2, ::-1]
    ids = np.where(mask, rng.integers(1, vocabulary, mask.shape), 0)
    return ids, mask, np.where(mask, rng.integers(0, types, mask.shape), 0) if types else None


def inputs(ids, mask, types):
    found = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask).long()}
    return found if types is None else {**found, "token_type_ids": torch.tensor(types)}


def compared(layout, models: list[MiniBERT], gradients: list, reference) -> tuple[float, str]:
    """The worst error of the first model's gradients, and whose it is; the last model's are the exact ones."""
    named = {name: p for name, p in reference.named_parameters() if p.grad is not None}
    for old, new in layout.renamed.items():
        named = {name.replace(old, new): p for name, p in named.items()}
    found = [layout.write(model.config, None, some.gradients)[1]
             for model, some in zip(models, gradients, strict=True)]
    assert set(found[0]) >= set(named), set(named) - set(found[0])
    return worst_gradient({name: found[0][name] for name in named}, {name: p.grad.numpy() for name, p in named.items()},
                          {name: found[-1][name] for name in named})


@pytest.mark.parametrize("case", CASES)
def test_a_model_of_transformers_opens_with_its_hidden_states_logits_and_gradients(case: str, tmp_path: Path):
    family, options, T = CASES[case]
    reference = made(family, "ForMaskedLM", options)
    reference.save_pretrained(tmp_path / "theirs")
    models = [mini_bert.load(tmp_path / "theirs", dtype=dtype) for dtype in (np.float32, np.float64)]
    model = models[0]
    types = options.get("type_vocab_size", 0)
    ids, mask, segments = batch(options["vocab_size"], types, T)
    rng = np.random.default_rng(5)

    output = reference(**inputs(ids, mask, segments), output_hidden_states=True)
    hidden, _ = model.encode(ids, mask, token_types=segments)
    difference = np.abs(hidden - output.hidden_states[-1].detach().numpy())[mask].max()
    print(f"hidden states differ by at most {difference:.1e}")
    assert difference <= 1e-5

    cotangent = (rng.standard_normal(hidden.shape) * mask[..., None]).astype(np.float32)
    gradients = [MiniBERTGradients(one) for one in models]
    for one, found in zip(models, gradients, strict=True):
        found.backward_from_hidden(cotangent, one.encode(ids, mask, token_types=segments)[1])
    (output.hidden_states[-1] * torch.tensor(cotangent)).sum().backward(retain_graph=True)
    worst, name = compared(LAYOUTS[family](), models, gradients, reference)
    print(f"gradients of hidden states differ by at most {worst:.1e} ({name})")
    assert worst <= 1e-4

    logits, _ = model.forward(ids, mask, token_types=segments)
    difference = np.abs(logits - output.logits.detach().numpy())[mask].max()
    print(f"logits differ by at most {difference:.1e}")
    assert difference <= 1e-4
    chosen = mask & (rng.random(mask.shape) < 0.3)
    chosen[np.arange(len(mask)), mask.argmax(axis=1)] = True
    some, _ = model.forward(ids, mask, token_types=segments, positions=chosen)
    assert np.abs(some - output.logits.detach().numpy()[chosen]).max() <= 1e-4

    reference.zero_grad()
    labels = torch.tensor(np.where(chosen, ids, -100))
    torch.nn.functional.cross_entropy(output.logits.transpose(1, 2), labels, reduction="sum").backward()
    gradients = [MiniBERTGradients(one) for one in models]
    for found in gradients:
        found.accumulate_mlm(ids, ids, chosen, mask, token_types=segments)
    worst, name = compared(LAYOUTS[family](), models, gradients, reference)
    print(f"gradients of the loss differ by at most {worst:.1e} ({name})")
    assert worst <= 1e-4


@pytest.mark.parametrize("head", ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification",
                                  "ForQuestionAnswering"])
@pytest.mark.parametrize("case", ["v1 with positions and segments", "v1 with narrow embeddings", "v3 as published",
                                  "v2 with matrices of its own", "v2 with a convolution",
                                  "v2, untied, with norms that nothing reads"])
def test_what_is_opened_is_saved_so_that_transformers_opens_it_again(case: str, head: str, tmp_path: Path):
    family, options, T = CASES[case]
    labels = {"num_labels": 2 if head == "ForQuestionAnswering" else 4, "pooler_hidden_act": "tanh"}
    reference = made(family, head, options, **labels)
    reference.save_pretrained(tmp_path / "theirs")
    model = mini_bert.load(tmp_path / "theirs")
    model.save(tmp_path / "ours")
    again, info = getattr(transformers, family + head).from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info[what] for what in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    ids, mask, segments = batch(options["vocab_size"], options.get("type_vocab_size", 0), T)
    mask[:, 0] = True                                                            # a classifier reads the first token
    with torch.no_grad():
        before, after = (one.eval()(**inputs(ids, mask, segments)) for one in (reference, again))
    for a, b in zip(before.to_tuple(), after.to_tuple(), strict=True):
        assert torch.equal(a[torch.tensor(mask)] if a.shape[:2] == mask.shape else a,
                           b[torch.tensor(mask)] if b.shape[:2] == mask.shape else b)
    expected = [a.numpy() for a in before.to_tuple()]
    if head == "Model":
        ours = [model.encode(ids, mask, token_types=segments)[0]]
    else:
        ours = model.forward(ids, mask, token_types=segments)[0]
        ours = list(ours) if head == "ForQuestionAnswering" else [ours]          # starts and ends
    for a, b in zip(ours, expected, strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b)[mask if a.shape[:2] == mask.shape else ...].max() <= 1e-4


@pytest.mark.parametrize("name", ["deberta-base", "deberta-v3-xsmall"])
def test_the_presets_have_the_published_layout(name: str):
    """The configs are those of microsoft/deberta-base and microsoft/deberta-v3-xsmall."""
    published = {
        "deberta-base": ("Deberta", {"relative_attention": True, "pos_att_type": "c2p|p2c",
                                     "max_relative_positions": -1, "position_biased_input": False,
                                     "type_vocab_size": 0, "layer_norm_eps": 1e-7}),
        "deberta-v3-xsmall": ("DebertaV2", {
            "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 1536,
            "vocab_size": 128100, "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
            "share_att_key": True, "pos_att_type": "p2c|c2p", "max_relative_positions": -1,
            "position_biased_input": False, "type_vocab_size": 0, "layer_norm_eps": 1e-7}),
    }
    family, options = published[name]
    with torch.device("meta"):
        reference = getattr(transformers, f"{family}ForMaskedLM")(getattr(transformers, f"{family}Config")(**options))
    config = load_preset(name)
    model = MiniBERT(config, seed=None)
    assert LAYOUTS[family]().fits(config, None)
    shapes = {n: tuple(p.shape) for n, p in reference.named_parameters()}        # what is tied is there once
    assert {LAYOUTS[family]().on_disk(config, None, n, v.shape) for n, v in model.params.items()} == set(shapes.items())
    assert model.get_parameter_count() == sum(p.numel() for p in reference.parameters())


def test_a_distance_has_the_row_that_transformers_gives_it():
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    for buckets in (2, 3, 5, 8, 31, 32, 33, 64, 128, 255, 256, 320):
        for reach in (10, 32, 64, 100, 200, 512, 513, 1024, 2048):
            if (reach - 1) / (buckets // 2) == 1:          # there they divide by ln 1
                continue
            distances = np.arange(-reach - 50, reach + 51)
            theirs = make_log_bucket_position(torch.tensor(distances), buckets, reach).to(torch.long) + buckets
            assert np.array_equal(distance_rows(distances, reach, buckets), theirs.clamp(0, 2 * buckets - 1).numpy())


@pytest.mark.parametrize(("family", "change", "message"), [
    ("DebertaV2", {"conv_kernel_size": 3, "conv_groups": 3}, "conv_groups"),
    ("DebertaV2", {"conv_kernel_size": 2}, "conv_kernel_size"),
    ("DebertaV2", {"position_buckets": 8, "max_relative_positions": 5}, "reach=5"),
    ("DebertaV2", {"attention_head_size": 5}, "attention_head_size"),
    ("Deberta", {"talking_head": True}, "talking_head"),
    ("Deberta", {"relative_attention": False}, "pos_att_type"),
])
def test_what_is_not_computed_here_is_refused_in_a_sentence(family: str, change: dict, message: str, tmp_path: Path):
    options = {**(SMALL if family == "Deberta" else V3), **change}
    made(family, "Model", options).save_pretrained(tmp_path)
    with pytest.raises(MiniBertError, match=message):
        mini_bert.load(tmp_path)
