"""pytorch_model.bin: the tensors come back as torch.save wrote them, alone and in a model's directory."""

import io
import json
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save
from torch_writer import state_dict, tensor, torch_saved, zipped

import mini_bert
from mini_bert import CheckpointError
from mini_bert.core.storage.pytorch_file import read_pytorch

REAL = Path(__file__).parents[1] / "reference" / "torch_save"      # by tests/reference/make_torch_save.py
FOUR = np.arange(4, dtype="<f4").tobytes()


@pytest.fixture
def read(tmp_path):
    def read(content: bytes) -> dict[str, np.ndarray]:
        (tmp_path / "some.bin").write_bytes(content)
        return read_pytorch(tmp_path / "some.bin")

    return read


# -------------------------------------------------------------------- what is read

@pytest.mark.parametrize("form", ["zip", "stream"])
def test_files_of_torch_save_are_read_with_every_kind_of_tensor(form):
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    expected = {
        "table": table, "tied": table, "transposed": table.T, "part": table[1:, 2:], "parameter": table + 0.5,
        "scalar": np.array(2.5), "half": np.array([1.5, -2], np.float16),
        "brain": np.array([1.5, -2, 2.0**100], np.float32), "empty": np.zeros((0, 3), np.float32),
        "truth": np.array([True, False]), "byte": np.array([0, 255], np.uint8),
        **{f"int{bits}": np.array([-3, 7], f"i{bits // 8}") for bits in (8, 16, 32, 64)}}
    found = read_pytorch(REAL / f"{form}.bin")
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        assert np.array_equal(found[name], array), name
    assert np.shares_memory(found["table"], found["transposed"])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_since_2_is_read(read, protocol):
    """Python writes the opcodes; the persistent ids and names are those of torch.save."""
    content = zipfile.ZipFile(REAL / "zip.bin")
    names = {"FloatStorage": type("FloatStorage", (), {"__module__": "torch"})}
    rebuild = type("_rebuild_tensor_v2", (), {"__module__": "torch._utils"})

    class Stored:
        pass

    class Tensor:
        def __reduce__(self):
            return rebuild, (Stored(), 0, (3, 4), (4, 1), False, {})

    class Writer(pickle._Pickler):
        def persistent_id(self, value):
            return ("storage", names["FloatStorage"], "0", "cpu", 12) if isinstance(value, Stored) else None

        def save_type(self, value):
            if protocol < 4:
                self.write(f"c{value.__module__}\n{value.__name__}\n".encode())
            else:
                self.save(value.__module__)
                self.save(value.__name__)
                self.write(b"\x93")
            self.memoize(value)

        dispatch = {**pickle._Pickler.dispatch, type: save_type}

    written = io.BytesIO()
    Writer(written, protocol).dump({f"tensor.{number}": Tensor() for number in range(300)})
    found = read(zipped(written.getvalue(), {"0": content.read("zip/data/0")}))
    assert len(found) == 300
    assert np.array_equal(found["tensor.299"], np.arange(12).reshape(3, 4))


def test_an_ordered_dict_of_python_2_is_read(read):
    pairs = b"](](U\x01a" + tensor("0", 4, (4,)) + b"ee"
    assert list(read(zipped(b"\x80\x02ccollections\nOrderedDict\n" + pairs + b"\x85R.", {"0": FOUR}))) == ["a"]


def test_a_storage_is_read_once_however_many_tensors_share_it(read):
    count, size = 1 << 20, 64
    pickled = state_dict({f"t{place}": tensor("0", count, (count,)) for place in range(size)})
    content = zipped(pickled, {"0": bytes(4 * count)})
    tracemalloc.start()
    try:
        assert len(read(content)) == size
        assert tracemalloc.get_traced_memory()[1] < 3 * 4 * count
    finally:
        tracemalloc.stop()


def test_views_within_their_storage_are_read(read):
    views = {"last": tensor("0", 4, (1,), (1 << 50,), 3), "column": tensor("0", 4, (2,), (2,), 1),
             "same": tensor("0", 4, (3,), (0,), 2), "none": tensor("0", 4, (0,), (1,), 4), "one": tensor("0", 4, ())}
    found = read(zipped(state_dict(views), {"0": FOUR}))
    assert {name: array.tolist() for name, array in found.items()} == {
        "last": [3], "column": [1, 3], "same": [2, 2, 2], "none": [], "one": 0}


# -------------------------------------------------------------------- a model's directory

@pytest.fixture
def saved_arrays(model, tmp_path):
    """A model's directory without its weights, the weights, and the model's numbers."""
    model.save(tmp_path / "model")
    arrays = load_file(tmp_path / "model" / "model.safetensors")
    (tmp_path / "model" / "model.safetensors").unlink()
    return tmp_path / "model", arrays, model.params.flat


def write_shards(directory, arrays, write, index_name, change=lambda files, index: None):
    names = sorted(arrays)
    files = {file: {name: arrays[name] for name in part} for file, part in (("a", names[:5]), ("b", names[5:]))}
    index = {name: file for file, part in files.items() for name in part}
    change(files, index)
    for file, part in files.items():
        (directory / file).write_bytes(write(part))
    (directory / index_name).write_text(json.dumps({"metadata": {}, "weight_map": index}))


KINDS = pytest.mark.parametrize(("write", "index"), [
    (torch_saved, "pytorch_model.bin.index.json"), (save, "model.safetensors.index.json")], ids=["bin", "safetensors"])


@pytest.mark.parametrize("zip_form", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_model_with_pytorch_weights_is_opened(saved_arrays, zip_form, dtype):
    directory, arrays, flat = saved_arrays
    arrays = {name: array.astype(dtype) for name, array in arrays.items()}
    (directory / "pytorch_model.bin").write_bytes(torch_saved(arrays, zip_form=zip_form))
    found = mini_bert.load(directory, dtype=np.float64).params.flat
    assert np.allclose(found, flat, rtol=1e-3, atol=1e-3)
    assert dtype != np.float64 or np.array_equal(found, flat)


def test_safetensors_are_preferred(model, tmp_path):
    model.save(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"damaged")
    assert np.array_equal(mini_bert.load(tmp_path, dtype=np.float64).params.flat, model.params.flat)


@KINDS
def test_shards_are_put_together(saved_arrays, write, index):
    directory, arrays, flat = saved_arrays
    write_shards(directory, arrays, write, index)
    assert np.array_equal(mini_bert.load(directory, dtype=np.float64).params.flat, flat)


@pytest.mark.parametrize(("change", "sentence"), [
    (lambda files, index: index.update(W_Q_0="../a"), r"'\.\./a', which is not a file of its directory"),
    (lambda files, index: index.update(W_Q_0=".."), r"'\.\.', which is not a file of its directory"),
    (lambda files, index: index.update(W_Q_0=""), r"'', which is not a file of its directory"),
    (lambda files, index: index.update(W_Q_0="/etc/passwd"), "'/etc/passwd', which is not a file of its directory"),
    (lambda files, index: index.update(W_Q_0="c"), r"names the shard 'c', which is missing"),
    (lambda files, index: index.update(W_Q_0="x" * 300), "which is missing"),
    (lambda files, index: index.update(W_Q_9="a"), r"a has no 'W_Q_9', which .* says is there"),
    (lambda files, index: files["a"].update(files["b"]), r"in two shards, a and b"),
    (lambda files, index: index.update(W_Q_0=5), "no valid weight_map"),
    (lambda files, index: index.clear(), "no valid weight_map"),
])
@KINDS
def test_shards_that_do_not_fit_their_index_are_named(saved_arrays, write, index, change, sentence):
    directory, arrays, _ = saved_arrays
    write_shards(directory, arrays, write, index, change)
    with pytest.raises(CheckpointError, match=sentence):
        mini_bert.load(directory)


@pytest.mark.skipif(os.name != "posix", reason="needs FIFOs and devices")
def test_a_pipe_a_device_and_a_directory_are_refused_at_once(saved_arrays):
    directory, _, _ = saved_arrays
    place = directory / "pytorch_model.bin"
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), os.mkdir):
        make(place)
        with pytest.raises(CheckpointError, match="not a regular file"):
            mini_bert.load(directory)
        place.rmdir() if place.is_dir() else place.unlink()
