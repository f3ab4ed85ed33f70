"""Files: what is saved comes back, and nothing else is taken for a model."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import mini_bert
from larger_bert import LargerBERT
from mini_bert import CheckpointError, ConfigError, MiniBERT, MiniBertError, ModelConfig, load_preset
from mini_bert.checks.check_all import models_to_check
from mini_bert.core.storage.checksums import verify


@pytest.fixture
def saved(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("config", models_to_check().values(), ids=models_to_check())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_model_comes_back_bit_for_bit(config, dtype, tmp_path):
    model = MiniBERT(config, dtype=dtype, seed=3)
    model.save(tmp_path)
    again = mini_bert.load(tmp_path, dtype=dtype)
    assert again.config == model.config
    assert np.array_equal(again.params.flat, model.params.flat)


def test_the_files_are_the_two_and_readable_by_others(saved, model):
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors"]
    assert set(load_file(saved / "model.safetensors")) == set(model.params)
    assert json.loads((saved / "config.json").read_text())["model_type"] == "mini-bert"
    (saved / "other").touch()
    assert (saved / "config.json").stat().st_mode == (saved / "other").stat().st_mode


def test_saving_again_replaces_and_leaves_other_files(saved, model):
    (saved / "vocab.txt").write_text("[PAD]\n")
    model.params.flat += 1
    model.save(saved)
    assert np.array_equal(mini_bert.load(saved, dtype=np.float64).params.flat, model.params.flat)
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "model.safetensors", "vocab.txt"]


def test_a_flipped_bit_is_noticed_or_changes_nothing(saved, model, rng):
    """Bits of the header that only say how something is written change nothing; those of the weights are noticed."""
    content = (saved / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    for part in (range(8 * header), range(8 * header, 8 * len(content))):
        for place in rng.choice(part, 200).tolist():
            flipped = bytearray(content)
            flipped[place // 8] ^= 1 << place % 8
            (saved / "model.safetensors").write_bytes(flipped)
            try:
                again = mini_bert.load(saved, dtype=np.float64)
            except MiniBertError:
                continue
            assert place < 8 * header
            assert np.array_equal(again.params.flat, model.params.flat)


def test_zeroed_exchanged_and_shifted_pieces_are_noticed(tmp_path):
    model = MiniBERT(load_preset("small"))
    model.params.flat[...] = np.random.default_rng(0).standard_normal(model.params.flat.size)
    model.save(tmp_path)
    content = (tmp_path / "model.safetensors").read_bytes()
    page, start = 4096, len(content) // 2
    a, b = content[start : start + page], content[start + page : start + 2 * page]
    for damage in (bytes(page) + b, b + a, a[8:] + b + a[:8], a[:8] + a[16:24] + a[8:16] + a[24:] + b):
        (tmp_path / "model.safetensors").write_bytes(content[:start] + damage + content[start + 2 * page :])
        with pytest.raises(CheckpointError, match="has changed since it was written"):
            mini_bert.load(tmp_path)


def test_a_config_and_weights_of_two_saves_are_not_taken_for_a_model(saved, model, tmp_path):
    MiniBERT(replace(model.config, num_heads=1), dtype=np.float64).save(tmp_path / "other")       # of the same shapes
    (tmp_path / "other" / "config.json").replace(saved / "config.json")
    with pytest.raises(CheckpointError, match=r"not the config that model\.safetensors was saved with"):
        mini_bert.load(saved)


def test_a_config_may_be_spaced_and_ordered_otherwise(saved, model):
    content = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(dict(reversed(content.items()))))
    assert mini_bert.load(saved).config == model.config


def test_files_without_a_digest_are_opened(saved, model):
    save_file(load_file(saved / "model.safetensors"), saved / "model.safetensors")
    assert np.array_equal(mini_bert.load(saved, dtype=np.float64).params.flat, model.params.flat)


def test_half_precision_files_are_opened(saved, model):
    tensors = load_file(saved / "model.safetensors")
    save_file({name: tensor.astype(np.float16) for name, tensor in tensors.items()}, saved / "model.safetensors")
    assert np.allclose(mini_bert.load(saved).params.flat, model.params.flat, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("every", [1, 2])
def test_bfloat16_files_are_opened(saved, model, every):
    """bfloat16 is the upper half of float32; the file is written byte by byte, with it in all or half of its arrays."""
    header, data = {}, b""
    for place, (name, tensor) in enumerate(load_file(saved / "model.safetensors").items()):
        single = tensor.astype("<f4")
        part = single.tobytes() if place % every else (single.view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "F32" if place % every else "BF16", "shape": tensor.shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    encoded = json.dumps(header).encode()
    (saved / "model.safetensors").write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)
    assert np.allclose(mini_bert.load(saved).params.flat, model.params.flat, rtol=1e-2)


def test_a_model_with_nan_is_neither_saved_nor_loaded(saved, model, tmp_path):
    model.params["W_V_1"][0, 0] = np.nan
    with pytest.raises(CheckpointError, match="W_V_1"):
        model.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    tensors = load_file(saved / "model.safetensors")
    tensors["b2_0"] = np.full_like(tensors["b2_0"], np.inf)
    save_file(tensors, saved / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"b2_0.*not finite"):
        mini_bert.load(saved)


def test_numbers_too_large_for_the_precision_are_refused(saved, model):
    model.params["b2_0"][0] = 1e300
    model.save(saved)
    assert mini_bert.load(saved, dtype=np.float64).params["b2_0"][0] == 1e300
    with pytest.raises(CheckpointError, match=r"b2_0.*float32"):
        mini_bert.load(saved)


def test_missing_extra_and_misshapen_tensors_are_named(saved):
    tensors = load_file(saved / "model.safetensors")
    renamed = dict(tensors)
    renamed["W_Q_7"] = renamed.pop("W_Q_1")
    save_file(renamed, saved / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"missing: W_Q_1; not expected: W_Q_7"):
        mini_bert.load(saved)
    save_file({**tensors, "W1_0": np.zeros((2, 2))}, saved / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"W1_0.*\(2, 2\).*\(16, 32\)"):
        mini_bert.load(saved)
    save_file({**tensors, "W1_0": np.zeros((16, 32), int)}, saved / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"W1_0.*int64"):
        mini_bert.load(saved)


@pytest.mark.parametrize("cut", [0, 3, 8, 100, -1])
def test_a_truncated_file_is_refused(saved, cut):
    whole = (saved / "model.safetensors").read_bytes()
    (saved / "model.safetensors").write_bytes(whole[:cut])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        mini_bert.load(saved)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"[]", b"\xff\xfe",
                                     b'{"model_type": "gpt2"}', b'{"a": 1}',
                                     b'{"model_type": "mini-bert", "format_version": 9}',
                                     b'{"model_type": "mini-bert", "format_version": 1, "hidden_sise": 3}',
                                     b'{"model_type": "mini-bert", "format_version": 1, "num_layers": 1e30}',
                                     b'{"model_type": "mini-bert", "format_version": 1, "vocab_size": 99999999999}'])
def test_a_foreign_or_broken_config_is_refused(saved, content):
    (saved / "config.json").write_bytes(content)
    with pytest.raises(MiniBertError, match=r"config\.json|model"):
        mini_bert.load(saved)


def test_what_is_not_a_models_directory_is_refused(tmp_path, saved):
    for name in ("absent", "x" * 300):
        with pytest.raises(CheckpointError, match="no directory"):
            mini_bert.load(tmp_path / name)
    with pytest.raises(CheckpointError, match="is a file"):
        mini_bert.load(saved / "config.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        mini_bert.load(tmp_path / "empty")
    (saved / "model.safetensors").rename(saved / "tf_model.h5")
    with pytest.raises(CheckpointError, match=r"no model\.safetensors and no pytorch_model\.bin.*tf_model\.h5"):
        mini_bert.load(saved)


def test_a_pickle_is_never_opened(tmp_path):
    import pickle

    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "exploded"),))

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(CheckpointError, match="Pickled"):
        mini_bert.load(tmp_path / "model.pkl")
    assert not (tmp_path / "exploded").exists()


def test_an_unwritable_place_is_one_sentence_and_leaves_nothing(model, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="Cannot write"):
        model.save(tmp_path / "file")


def test_a_write_that_fails_halfway_keeps_the_old_files(saved, model, monkeypatch):
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    model.params.flat += 1

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        model.save(saved)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_load_checkpoint_changes_the_model_in_place(saved, model, debug):
    other = MiniBERT(debug, dtype=np.float64, seed=9)
    view = other.params["W_Q_0"]
    other.load_checkpoint(saved)
    assert np.array_equal(other.params.flat, model.params.flat)
    assert np.array_equal(view, model.params["W_Q_0"])


def test_load_checkpoint_of_another_model_changes_nothing(saved):
    other = MiniBERT(ModelConfig.from_dict({**load_preset("debug").to_dict(), "num_heads": 4}))
    before = other.params.flat.copy()
    with pytest.raises(ConfigError, match=r"num_heads \(4 here, 2 there\)"):
        other.load_checkpoint(saved)
    assert np.array_equal(other.params.flat, before)


def test_subclasses_load_as_themselves(debug, tmp_path):
    LargerBERT(debug).save(tmp_path)
    assert isinstance(LargerBERT.load(tmp_path), LargerBERT)


def test_half_precision_halves_the_file_and_loads(tmp_path, debug):
    model = MiniBERT(debug, seed=2)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "half", dtype="float16")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    loaded = MiniBERT.load(tmp_path / "half")
    assert loaded.params.flat.dtype == np.float32
    np.testing.assert_allclose(loaded.params.flat, model.params.flat, rtol=1e-3, atol=1e-6)


def test_numbers_beyond_half_precision_are_refused(tmp_path, debug):
    model = MiniBERT(debug)
    model.params["W_Q_0"][0, 0] = 1e6
    with pytest.raises(CheckpointError, match="W_Q_0 has values that are too large for float16"):
        model.save(tmp_path / "half", dtype="float16")
    assert not (tmp_path / "half").exists()


@pytest.mark.parametrize("name", ["../other", "/etc/hostname", "a/b", "..", ""])
def test_checksums_do_not_lead_out_of_the_directory(tmp_path, name):
    (tmp_path / "a").write_text("a")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "checksums.json").write_text(json.dumps({name: "x"}))
    with pytest.raises(CheckpointError, match="is not a whole checkpoint"):
        verify(tmp_path / "inside", set())
