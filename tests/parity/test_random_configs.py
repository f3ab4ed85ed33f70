"""Random configs of every architecture beside transformers, with random weights, lengths, masks and files.

MINI_BERT_CONFIGS=50 compares that many directories of each architecture; the default is 3. What is compared and how is
in test_family.py; here nobody has chosen the sizes. Gradients are compared in float64, where a wrong term cannot pass
for rounding, with 1e-5 of their size where theirs rounds to float32 in between; those of ModernBERT, whose softmax is
in float32 always, in float32.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_family import CLASSIFIERS, Case, compared, output_of, places, run

import mini_bert
from mini_bert import MiniBERTGradients
from mini_bert.interop.huggingface import LAYOUTS
from mini_bert.interop.huggingface.tables import ACTIVATIONS

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

COUNT = int(os.environ.get("MINI_BERT_CONFIGS", "3"))
ROUNDED = ("XLNet", "Deberta", "DebertaV2")               # sines, and the root of a size, in float32 always
MASKED = ("Model", "ForMaskedLM", *CLASSIFIERS)
KINDS = {"Bert": (*MASKED, "ForPreTraining"), "Albert": (*MASKED, "ForPreTraining"),
         "Electra": (*MASKED, "ForPreTraining"), "XLNet": ("Model", "LMHeadModel", *CLASSIFIERS[:2],
                                                           "ForQuestionAnsweringSimple"),
         "GPT2": ("Model", "LMHeadModel", *CLASSIFIERS)}


# ---------------------------------------------------------------- configs

def drawn(family: str, r: random.Random) -> tuple[Case, int]:
    """A case of an architecture, and the length of its sequences."""
    heads, head = r.choice((1, 2, 3, 5, 7)), r.choice((4, 6, 8, 12, 16))
    T, V, H, I = r.randint(2, 50), r.randint(20, 130), heads * head, r.randint(1, 60)
    L, act = r.randint(1, 5), r.choice(list(ACTIVATIONS))
    sizes = {"vocab_size": V, "hidden_size": H, "num_hidden_layers": L, "num_attention_heads": heads,
             "intermediate_size": I, "max_position_embeddings": T + r.choice((0, 3)), "hidden_act": act,
             "type_vocab_size": r.randint(1, 3), "layer_norm_eps": r.choice((1e-12, 1e-5, 1e-3))}
    narrow = r.choice((H, r.randint(1, 40)))
    more: dict[str, Any] = _MORE[family](r, sizes, T, narrow)
    if family in ("Deberta", "DebertaV2") and not more["position_biased_input"]:
        T = r.randint(2, 120)                             # no table of positions limits it
    tied = {"tie_word_embeddings": r.random() < 0.75}
    return Case(family, r.choice(KINDS.get(family, MASKED)), tied | more), T


def roberta(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    padding = r.choice((0, 1, 4))
    return {**sizes, "pad_token_id": padding, "max_position_embeddings": T + padding + r.choice((1, 4))}


def albert(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    return {**sizes, "embedding_size": narrow, "num_hidden_groups": r.randint(1, sizes["num_hidden_layers"]),
            "inner_group_num": r.randint(1, 3)}


def distilbert(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    return {"vocab_size": sizes["vocab_size"], "dim": sizes["hidden_size"], "n_layers": sizes["num_hidden_layers"],
            "n_heads": sizes["num_attention_heads"], "hidden_dim": sizes["intermediate_size"],
            "max_position_embeddings": T, "activation": sizes["hidden_act"], "sinusoidal_pos_embds": r.random() < 0.3}


def deberta(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    relative, reach = r.random() < 0.85, r.choice((-1, 1, 2, 5, 16, 40))
    terms = r.choice((["c2p"], ["p2c"], ["c2p", "p2c"], "p2c|c2p")) if relative else []
    legacy = r.random() < 0.7
    return {**sizes, "type_vocab_size": r.choice((0, 2)), "position_biased_input": r.random() < 0.5,
            "relative_attention": relative, "pos_att_type": terms, "max_relative_positions": reach, "legacy": legacy,
            "pooler_hidden_act": r.choice(list(ACTIVATIONS)),
            **({"embedding_size": narrow} if legacy else {})}             # the other head cannot have a narrow table


def deberta_v2(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    buckets = r.choice((-1, 2, 3, 8, 31))
    found = {**deberta(r, sizes, T, narrow), "position_buckets": buckets, "share_att_key": r.random() < 0.5,
             "norm_rel_ebd": r.choice(("none", "layer_norm"))}
    if buckets > 0:
        found["max_relative_positions"] = buckets + r.randint(2, 30)
    return found | ({"conv_kernel_size": r.choice((1, 3, 5)), "conv_act": "gelu"} if r.random() < 0.4 else {})


def modernbert(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    kept = {name: sizes[name] for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
                                           "intermediate_size", "max_position_embeddings")}
    layers = [r.choice(("full_attention", "sliding_attention")) for _ in range(sizes["num_hidden_layers"])]
    biases = {f"{name}_bias": r.random() < 0.5 for name in ("norm", "mlp", "attention", "classifier", "decoder")}
    theta = {kind: {"rope_type": "default", "rope_theta": r.choice((10.0, 500.0, 160_000.0))} for kind in set(layers)}
    return {**kept, **biases, "hidden_activation": sizes["hidden_act"], "layer_types": layers, "rope_parameters": theta,
            "local_attention": r.choice((2, 7, 16, 128)), "classifier_pooling": r.choice(("cls", "mean")),
            "classifier_activation": r.choice(list(ACTIVATIONS)), "pad_token_id": 3, "bos_token_id": 1,
            "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2}


def xlnet(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    return {"vocab_size": sizes["vocab_size"], "d_model": sizes["hidden_size"], "n_layer": sizes["num_hidden_layers"],
            "n_head": sizes["num_attention_heads"], "d_inner": sizes["intermediate_size"],
            "ff_activation": sizes["hidden_act"], "clamp_len": r.choice((-1, 1, 4, 20)), "untie_r": r.random() < 0.5,
            "summary_type": r.choice(("last", "first", "cls_index"))}


def gpt2(r: random.Random, sizes: dict[str, Any], T: int, narrow: int) -> dict[str, Any]:
    return {"vocab_size": sizes["vocab_size"], "n_embd": sizes["hidden_size"], "n_layer": sizes["num_hidden_layers"],
            "n_head": sizes["num_attention_heads"], "n_inner": r.choice((None, sizes["intermediate_size"])),
            "n_positions": T + r.choice((0, 3)), "activation_function": sizes["hidden_act"], "pad_token_id": 3}


_MORE: dict[str, Any] = {
    "Bert": lambda r, sizes, T, narrow: {**sizes, "pad_token_id": r.choice((0, 3))},
    "Electra": lambda r, sizes, T, narrow: {**sizes, "embedding_size": narrow},
    "Roberta": roberta, "XLMRoberta": roberta, "Camembert": roberta, "Albert": albert, "DistilBert": distilbert,
    "Deberta": deberta, "DebertaV2": deberta_v2, "ModernBert": modernbert, "XLNet": xlnet, "GPT2": gpt2}


# ---------------------------------------------------------------- models, files and batches

def made(case: Case, r: random.Random, seed: int) -> Any:
    """Their model, with weights up to ten times as large as those it begins with, in evaluation mode."""
    labels = r.choice((1, 2, 5)) if case.kind in CLASSIFIERS[:2] else 2
    config = getattr(transformers, f"{case.family}Config")(**case.settings, num_labels=labels)
    config._attn_implementation = "eager"
    model = getattr(transformers, case.family + case.kind)(config).eval()
    torch.manual_seed(seed)
    scale = r.choice((1, 3, 10))
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape)
            parameter.add_(0.3 * noise if parameter.ndim == 1 else 0.02 * scale * noise)
    return model


def saved(model: Any, form: str, directory: Path) -> None:
    """As transformers saves it now, in either half precision or in shards, or as it did before."""
    if form in ("float16", "bfloat16"):
        model = model.to(getattr(torch, form))
    model.save_pretrained(directory, max_shard_size="20KB" if form == "shards" else "1GB")
    if form == "bin":
        (directory / "model.safetensors").unlink()
        torch.save(model.state_dict(), directory / "pytorch_model.bin")


def batch(model: Any, T: int, r: random.Random, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Ids, mask and perhaps types; padding behind, in front, in between, or none."""
    rng = np.random.default_rng(seed)
    lengths = [T, *(r.randint(1, T) for _ in range(r.randint(0, 3)))]
    mask = np.arange(T) < np.array(lengths)[:, None]
    padding = r.choice(("behind", "in front", "between", "none"))
    if padding == "in front":
        mask = mask[:, ::-1].copy()
    elif padding != "behind":
        mask = rng.random(mask.shape) < (0.7 if padding == "between" else 1)
        mask[:, [0, -1]] = True
    types = getattr(model.config, "type_vocab_size", 0)
    ids = np.where(mask, rng.integers(6, model.config.vocab_size, mask.shape), model.config.pad_token_id or 0)
    return ids, mask, rng.integers(0, types, mask.shape) if types and r.random() < 0.6 else None


def size_of(array: np.ndarray) -> float:
    return max(1.0, float(np.abs(array).max()))


@pytest.mark.parametrize("number", range(COUNT))
@pytest.mark.parametrize("family", [layout.family for layout in LAYOUTS])
def test_a_random_model_is_opened_and_saved_as_transformers_has_it(family, number, tmp_path):
    seed = number * 100 + list(_MORE).index(family)
    r = random.Random(seed)
    case, T = drawn(family, r)
    made_by = getattr(transformers, family + case.kind)
    form = r.choice(("safetensors", "float16", "bfloat16", "shards", "bin"))
    print(case.kind, form, json.dumps(case.settings))
    saved(made(case, r, seed), form, tmp_path / "theirs")
    dtype = np.float32 if family == "ModernBert" else np.float64
    reference = made_by.from_pretrained(tmp_path / "theirs", dtype=torch.float32, attn_implementation="eager").eval()
    ids, mask, types = batch(reference, T, r, seed)

    model = mini_bert.load(tmp_path / "theirs")
    with torch.no_grad():
        hidden = run(reference.base_model, ids, mask, types).last_hidden_state.numpy()
        answer = run(reference, ids, mask, types)
    difference = np.abs(model.encode(ids, mask, token_types=types)[0] - hidden)[mask].max()
    assert difference <= 1e-5 * size_of(hidden)
    where: Any = None
    if case.kind != "Model":
        logits, expected = model.forward(ids, mask, token_types=types)[0], output_of(answer).numpy()
        where = places(model, mask, expected)
        assert logits.shape == expected.shape
        assert np.abs(logits - expected)[where].max(initial=0) <= 1e-4 * size_of(expected)

    exact = mini_bert.load(tmp_path / "theirs", dtype=dtype)
    tolerance = 1e-4 if dtype is np.float32 else 1e-5 if family in ROUNDED else 1e-6
    precise = reference.to(torch.float32 if dtype is np.float32 else torch.float64)
    outcome = run(precise.base_model, ids, mask, types).last_hidden_state if where is None else output_of(
        run(precise, ids, mask, types))
    cotangent = np.zeros(tuple(outcome.shape), dtype)
    chosen = mask if where is None else where
    cotangent[chosen] = np.random.default_rng(seed).standard_normal(cotangent[chosen].shape)
    (outcome * torch.tensor(cotangent)).sum().backward()
    grads = MiniBERTGradients(exact)
    if where is None:
        grads.backward_from_hidden(cotangent, exact.encode(ids, mask, token_types=types)[1])
    else:
        grads.backward_from_logits(cotangent, exact.forward(ids, mask, token_types=types)[1])
    if cotangent.any():
        assert compared([exact], [grads.gradients], precise, some_unread=True) <= tolerance

    model.save(tmp_path / "ours")
    again, info = made_by.from_pretrained(tmp_path / "ours", dtype=torch.float32, output_loading_info=True,
                                          attn_implementation="eager")
    assert not any(info[what] for what in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    with torch.no_grad():
        repeated = run(again.eval(), ids, mask, types)
    for name, expected in answer.items():
        if torch.is_tensor(expected):
            assert np.abs((repeated[name] - expected).numpy()).max() <= 1e-5 * size_of(expected.numpy()), name
