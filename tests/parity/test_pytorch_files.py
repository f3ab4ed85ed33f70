"""Weights that PyTorch itself wrote: the same model from pytorch_model.bin as from safetensors."""

import json

import numpy as np
import pytest

import mini_bert

torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make parity` installs it")
transformers = pytest.importorskip("transformers", reason="transformers is not installed; `make parity` installs it")

IDS = np.random.default_rng(0).integers(5, 90, (2, 17))


def bert(dtype, seed: int = 0):
    torch.manual_seed(seed)
    config = transformers.BertConfig(vocab_size=90, hidden_size=24, num_hidden_layers=3, num_attention_heads=3,
                                     intermediate_size=40, max_position_embeddings=20, initializer_range=0.2)
    return transformers.BertForMaskedLM(config).to(dtype).eval()


def directories(model, tmp_path):
    """A directory as transformers saves it, and one with the config alone."""
    model.save_pretrained(tmp_path / "safetensors")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "config.json").write_bytes((tmp_path / "safetensors" / "config.json").read_bytes())
    return tmp_path / "safetensors", tmp_path / "bin"


def assert_same(one, other):
    one, other = mini_bert.load(one), mini_bert.load(other)
    assert one.config == other.config
    assert np.array_equal(one.params.flat, other.params.flat)
    assert np.array_equal(one.encode(IDS)[0], other.encode(IDS)[0])
    assert np.array_equal(one.forward(IDS)[0], other.forward(IDS)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}, {"pickle_protocol": 4}], ids=str)
def test_torch_save_gives_the_model_that_safetensors_give(dtype, options, tmp_path):
    """The head is tied: its weight and the embeddings are two names of one storage."""
    model = bert(dtype)
    safe, other = directories(model, tmp_path)
    state = model.state_dict()
    tied = ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight")
    assert len({state[name].data_ptr() for name in tied}) == 1
    torch.save(state, other / "pytorch_model.bin", **options)
    assert_same(safe, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_hidden_states_are_those_of_transformers(dtype, tmp_path):
    model = bert(dtype)
    _, other = directories(model, tmp_path)
    torch.save(model.state_dict(), other / "pytorch_model.bin")
    with torch.no_grad():
        expected = model.float().bert(torch.tensor(IDS)).last_hidden_state.numpy()
    assert np.abs(mini_bert.load(other).encode(IDS)[0] - expected).max() <= 1e-5


def test_parameters_views_and_buffers_are_read(tmp_path):
    """named_parameters in place of state_dict, a weight that is the transpose of another layout, and position_ids."""
    model = bert(torch.float32)
    safe, other = directories(model, tmp_path)
    state = dict(model.named_parameters())
    name = "bert.encoder.layer.0.output.dense.weight"
    state[name] = torch.nn.Parameter(state[name].detach().T.contiguous()).T
    state["bert.embeddings.position_ids"] = torch.arange(20).expand((1, -1))
    torch.save(state, other / "pytorch_model.bin")
    assert_same(safe, other)


def test_the_shards_of_both_formats_are_read(tmp_path):
    model = bert(torch.float32)
    safe, other = directories(model, tmp_path)
    model.save_pretrained(tmp_path / "shards", max_shard_size="10KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    assert_same(safe, tmp_path / "shards")
    names, files = list(model.state_dict()), {}
    for number in range(3):
        part = {name: model.state_dict()[name] for name in names[number::3]}
        file = f"pytorch_model-0000{number + 1}-of-00003.bin"
        torch.save(part, other / file)
        files |= dict.fromkeys(part, file)
    (other / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    assert_same(safe, other)


def test_a_module_that_was_saved_whole_is_refused(tmp_path):
    model = bert(torch.float32)
    _, other = directories(model, tmp_path)
    torch.save(model, other / "pytorch_model.bin")
    with pytest.raises(mini_bert.CheckpointError, match=r"BertForMaskedLM|torch\.nn|opcode"):
        mini_bert.load(other)
