"""Live comparison with PyTorch and transformers; run by `make parity` in an environment of its own."""

from pathlib import Path

import numpy as np
import pytest

import mini_bert
from mini_bert import MiniBERT, MiniBERTGradients, ModelConfig, load_preset, mask_tokens
from mini_bert.interop.huggingface import BertLayout

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

LENGTHS = [40, 23, 9, 2]


def batch(config: ModelConfig):
    """Ids with padding, token types, and masked positions."""
    rng = np.random.default_rng(0)
    mask = np.arange(LENGTHS[0]) < np.array(LENGTHS)[:, None]
    ids = np.where(mask, rng.integers(5, config.vocab_size, mask.shape), 0)
    types = np.where(mask, rng.integers(0, 2, mask.shape), 0)
    masked, targets, positions = mask_tokens(ids, config.vocab_size)
    return masked, targets, positions, mask, types


def theirs(directory: Path):
    """The model that transformers makes of what we saved; every tensor must be found and used."""
    model, info = transformers.AutoModelForMaskedLM.from_pretrained(
        directory, output_loading_info=True, attn_implementation="eager", dtype=torch.float32)
    assert not info["missing_keys"], info
    assert not info["unexpected_keys"], info
    assert not info["mismatched_keys"], info
    return model.eval()


@pytest.mark.parametrize("change", [{}, {"activation": "gelu_tanh"}, {"activation": "relu"}], ids=str)
def test_random_bert_tiny_gives_the_same_logits_loss_and_gradients(change, tmp_path, record_property):
    config = ModelConfig.from_dict({**load_preset("bert-tiny").to_dict(), **change})
    model = MiniBERT(config, seed=1)
    rng = np.random.default_rng(2)      # biases and LayerNorms off their zeros and ones
    for value in model.params.values():
        if value.ndim == 1:
            value += 0.1 * rng.standard_normal(value.shape).astype(np.float32)
    model.save(tmp_path)
    reference = theirs(tmp_path)
    ids, targets, positions, mask, types = batch(config)

    logits, _ = model.forward(ids, mask, token_types=types)
    output = reference(torch.tensor(ids), torch.tensor(mask).long(), torch.tensor(types),
                       labels=torch.tensor(np.where(positions, targets, -100)))
    difference = np.abs(logits - output.logits.detach().numpy())[mask].max()
    print(f"logits differ by at most {difference:.1e}")
    assert difference <= 1e-5

    grads = MiniBERTGradients(model)
    loss_sum, count = grads.accumulate_mlm(ids, targets, positions, mask, token_types=types)
    assert loss_sum / count == pytest.approx(output.loss.item(), rel=1e-6)
    output.loss.backward()
    grads.gradients.flat /= count
    _, ours = BertLayout().write(config, None, grads.gradients)
    named = dict(reference.named_parameters())
    assert set(ours) == set(named)
    scale = max(float(parameter.grad.norm()) for parameter in named.values())
    worst = {}
    for name, parameter in named.items():
        gradient = parameter.grad.numpy()
        # b_K has no gradient in exact arithmetic; what rounding leaves of it is compared with the largest
        size = max(np.linalg.norm(gradient), 1e-6 * scale)
        worst[name] = np.linalg.norm(ours[name] - gradient) / size
    name = max(worst, key=worst.get)
    print(f"gradients differ by at most {worst[name]:.1e} ({name})")
    assert worst[name] <= 1e-4


SENTENCES = [
    "The cat sat on the mat.",
    "BERT is a bidirectional encoder that was pre-trained on books and on the English Wikipedia; "
    "its hidden states depend on every word of a sentence, before and behind.",
    "Yes.",
    "Numbers like 3.14159, names like Tübingen, and 日本 too.",
]


def test_real_weights_give_the_same_hidden_states(minilm):
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    encoded = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    reference = transformers.AutoModel.from_pretrained(minilm, attn_implementation="eager").eval()
    with torch.no_grad():
        output = reference(**encoded, output_hidden_states=True)

    model = mini_bert.load(minilm)
    mask = encoded["attention_mask"].numpy()
    hidden, cache = model.encode(encoded["input_ids"].numpy(), mask, token_types=encoded["token_type_ids"].numpy())
    assert len(set(mask.sum(axis=1))) > 2                           # sentences of different lengths
    ours = [cache["embeddings"], *(cache[f"hidden_{i}"] for i in range(6))]
    for layer, (mine, expected) in enumerate(zip(ours, output.hidden_states, strict=True)):
        difference = np.abs(mine.reshape(hidden.shape) - expected.numpy())[mask == 1].max()
        print(f"hidden states {layer} differ by at most {difference:.1e}")
        assert difference <= 1e-4
    pooled, _ = model.pool(hidden)
    assert np.abs(pooled - output.pooler_output.numpy()).max() <= 1e-4


def test_an_opened_encoder_is_saved_so_that_transformers_opens_it(minilm, tmp_path):
    model = mini_bert.load(minilm)
    model.save(tmp_path)
    again, info = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    original = transformers.AutoModel.from_pretrained(minilm)
    for (name, a), (_, b) in zip(again.named_parameters(), original.named_parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_pytorchs(approximate):
    from mini_bert.core.ops.gelu import gelu_forward
    from mini_bert.core.ops.gelu_tanh import gelu_tanh_forward

    x = np.linspace(-10, 10, 100_001)
    expected = torch.nn.functional.gelu(torch.tensor(x), approximate=approximate).numpy()
    forward = gelu_forward if approximate == "none" else gelu_tanh_forward
    assert np.abs(forward(x)[0] - expected).max() < 1e-7
