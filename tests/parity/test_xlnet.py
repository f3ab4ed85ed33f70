"""What XLNet alone has: orders of prediction, segments, memories and the one-way form, beside transformers."""

import numpy as np
import pytest

import mini_bert
from mini_bert import MiniBERT, MiniBERTGradients, load_preset
from mini_bert.core.memory import memory_after
from mini_bert.interop.huggingface.xlnet import XLNetLayout

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

SIZES = {"vocab_size": 67, "d_model": 36, "n_layer": 4, "n_head": 3, "d_inner": 50, "dropout": 0.0}


def pair(tmp_path, dtype=np.float32, **settings):
    """Their model with weights far from the initial ones, and ours of its files."""
    torch.manual_seed(3)
    reference = transformers.XLNetLMHeadModel(transformers.XLNetConfig(**SIZES, **settings)).eval()
    with torch.no_grad():
        for parameter in reference.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape))
    reference.save_pretrained(tmp_path)
    return reference, mini_bert.load(tmp_path, dtype=dtype)


def drawn(rng, B=3, T=29, pads="left"):
    """Ids, mask and types, and an order: context of rank 0, targets of rank 1, 2, ..."""
    lengths = np.array([T, T - 8, 5])
    mask = np.arange(T) < lengths[:B, None]
    mask = mask[:, ::-1].copy() if pads == "left" else mask
    order = np.zeros((B, T), int)
    for row in range(B):
        chosen = rng.permutation(np.flatnonzero(mask[row]))[: 2 + 3 * (row == 0)]
        order[row, chosen] = 1 + np.arange(len(chosen))
    return rng.integers(5, 67, (B, T)), mask, rng.integers(0, 3, (B, T)), order


def their_order(order):
    """perm_mask (B, T, T) and target_mapping (B, P, T) of an order; rows of too many targets map to nothing."""
    hidden = order[:, None, :] >= np.where(order > 0, order, 1)[:, :, None]
    counts = (order > 0).sum(axis=1)
    mapping = np.zeros((len(order), counts.max(), order.shape[1]))
    for row, ranks in enumerate(order):
        places = np.flatnonzero(ranks)
        mapping[row, np.arange(len(places)), places] = 1
    return torch.tensor(hidden).float(), torch.tensor(mapping).float(), np.arange(counts.max()) < counts[:, None]


@pytest.mark.parametrize("pads", ["left", "right"])
@pytest.mark.parametrize("segments", [False, True])
def test_predictions_in_an_order_equal_those_with_perm_mask_and_target_mapping(pads, segments, tmp_path, rng):
    reference, model = pair(tmp_path)
    ids, mask, types, order = drawn(rng, pads=pads)
    hidden_from, mapping, filled = their_order(order)
    with torch.no_grad():
        answer = reference(torch.tensor(ids), attention_mask=torch.tensor(mask).float(), perm_mask=hidden_from,
                           target_mapping=mapping, token_type_ids=torch.tensor(types) if segments else None,
                           output_hidden_states=True)
    given = {"token_types": types if segments else None, "order": order, "positions": order > 0}
    hidden, _ = model.encode(ids, mask, **given)
    logits, _ = model.forward(ids, mask, **given)
    assert np.abs(hidden - answer.hidden_states[-1].numpy()[filled]).max() <= 1e-5
    assert np.abs(logits - answer.logits.numpy()[filled]).max() <= 1e-4


def test_gradients_in_an_order_with_segments_equal_theirs(tmp_path, rng):
    reference, model = pair(tmp_path, np.float64)                 # theirs takes an order in float32 alone
    ids, mask, types, order = drawn(rng)
    hidden_from, mapping, filled = their_order(order)
    answer = reference(torch.tensor(ids), attention_mask=torch.tensor(mask).float(), perm_mask=hidden_from,
                       target_mapping=mapping, token_type_ids=torch.tensor(types))
    logits, cache = model.forward(ids, mask, token_types=types, order=order, positions=order > 0)
    dlogits = rng.standard_normal(logits.shape)
    (answer.logits[torch.tensor(filled)] * torch.tensor(dlogits)).sum().backward()
    grads = MiniBERTGradients(model)
    grads.backward_from_logits(dlogits, cache)
    _, named = XLNetLayout().write(model.config, None, grads.gradients)
    theirs = dict(reference.named_parameters(remove_duplicate=False))
    assert {id(theirs[name]) for name in named} == {id(parameter) for parameter in reference.parameters()}
    for name, gradient in named.items():
        expected = theirs[name].grad.numpy()
        assert np.linalg.norm(gradient - expected) <= 1e-4 * np.linalg.norm(expected), name


@pytest.mark.parametrize("settings", [{}, {"attn_type": "uni"}, {"attn_type": "uni", "clamp_len": 6}], ids=str)
def test_memories_equal_theirs(settings, tmp_path, rng):
    reference, model = pair(tmp_path, mem_len=11, **settings)
    ids, types = rng.integers(5, 67, (2, 27)), rng.integers(0, 2, (2, 27))
    mems, memory = None, None
    for start in range(0, 27, 9):
        part, segments = ids[:, start : start + 9], types[:, start : start + 9]
        with torch.no_grad():
            answer = reference.transformer(torch.tensor(part), token_type_ids=torch.tensor(segments), mems=mems)
        hidden, cache = model.encode(part, token_types=segments, memory=memory)
        mems, memory = answer.mems, memory_after(cache, 11)
        assert np.abs(hidden - answer.last_hidden_state.numpy()).max() <= 1e-5
        for ours, theirs in zip(memory.layers, mems, strict=True):
            assert np.abs(ours - theirs.numpy().transpose(1, 0, 2)).max() <= 1e-5


def test_transformer_xl_is_the_one_way_form_without_segments(tmp_path, rng):
    reference, opened = pair(tmp_path, attn_type="uni", ff_activation="relu", layer_norm_eps=1e-5)
    config = opened.config
    xl = MiniBERT(mini_bert.ModelConfig.from_dict({
        **load_preset("transformer-xl").to_dict(), "score_terms": "relative + causal",
        **{name: getattr(config, name) for name in ("num_layers", "num_heads", "hidden_size", "intermediate_size",
                                                    "vocab_size", "max_seq_length")}}))
    for name in xl.params:
        xl.params[name][...] = opened.params[name]
    ids = rng.integers(5, 67, (2, 40))
    with torch.no_grad():
        first = reference(torch.tensor(ids[:, :20]))
        second = reference(torch.tensor(ids[:, 20:]), mems=first.mems)
    logits, cache = xl.forward(ids[:, :20])
    assert np.abs(logits - first.logits.numpy()).max() <= 1e-4
    logits, _ = xl.forward(ids[:, 20:], memory=memory_after(cache, 20))
    assert np.abs(logits - second.logits.numpy()).max() <= 1e-4


def test_the_published_layout_has_as_many_parameters_as_theirs():
    with torch.device("meta"):
        base = transformers.XLNetLMHeadModel(transformers.XLNetConfig(d_model=768, n_layer=12, n_head=12, d_inner=3072))
    count = sum(parameter.numel() for parameter in base.parameters())
    assert count == sum(spec.size for spec in MiniBERT(load_preset("xlnet-base"), seed=None).params.values())
    assert count == 116_750_336


def test_a_small_xlnet_of_ours_is_opened_by_transformers(tmp_path, rng):
    model = MiniBERT(load_preset("mini-xlnet"), seed=1)
    model.save(tmp_path)
    reference, info = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    ids = rng.integers(5, 8192, (2, 64))
    with torch.no_grad():
        expected = reference.eval()(torch.tensor(ids)).logits.numpy()
    assert np.abs(model.forward(ids)[0] - expected).max() <= 1e-4


@pytest.mark.parametrize(("settings", "said"), [({"same_length": True}, "same_length is true; only false is supported"),
                                                ({"bi_data": True}, "bi_data is true; only false is supported")])
def test_what_is_not_known_is_refused_in_a_sentence(settings, said, tmp_path):
    transformers.XLNetModel(transformers.XLNetConfig(**SIZES, **settings)).save_pretrained(tmp_path)
    with pytest.raises(mini_bert.ConfigError, match=said):
        mini_bert.load(tmp_path)
