"""Files named pytorch_model.bin that torch.save would not write: refused with one sentence, and nothing is run."""

import os
import pickle
import pickletools
import random
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_writer import REBUILD, number, numbers, state_dict, storage, streamed, tensor, text, zipped
from torture.mutations import changed

from mini_bert import CheckpointError
from mini_bert.core.storage.opcodes import _OPCODES, _REFUSED
from mini_bert.core.storage.pytorch_file import read_pytorch

REAL = Path(__file__).parents[1] / "reference" / "torch_save"      # by tests/reference/make_torch_save.py
FOUR = np.arange(4, dtype="<f4").tobytes()


def is_refused(file: Path) -> bool:
    """Refused, rather than read; any other outcome is an error."""
    try:
        read_pytorch(file)
    except CheckpointError as error:
        sentence = str(error)
    else:
        return False
    assert "\n" not in sentence
    return True


@pytest.fixture
def refuses(tmp_path):
    """The sentence of a refusal, after which nothing has changed."""
    def refuses(content: bytes, match: str) -> None:
        (tmp_path / "some.bin").write_bytes(content)
        with pytest.raises(CheckpointError, match=match) as refused:
            read_pytorch(tmp_path / "some.bin")
        assert "\n" not in str(refused.value)
        assert [file.name for file in tmp_path.iterdir()] == ["some.bin"]

    return refuses


# -------------------------------------------------------------------- programs

def attacks(marker: Path) -> dict[str, bytes]:
    """Pickles that would make a file if Python's own machine ran them."""
    command = text(f"touch {marker}")

    class Bomb:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    return {
        "posix.system": b"\x80\x02cposix\nsystem\n" + command + b"\x85R.",
        "os.system": b"\x80\x02cos\nsystem\n(" + command + b"tR.",
        "eval": b"\x80\x02cbuiltins\neval\n" + text(f"open({str(marker)!r}, 'w')") + b"\x85R.",
        "Python 2": b"\x80\x02c__builtin__\neval\n" + text(f"open({str(marker)!r}, 'w')") + b"\x85R.",
        "getattr": b"\x80\x02cbuiltins\ngetattr\n" + text("os") + text("system") + b"\x86R" + command + b"\x85R.",
        "stack global": b"\x80\x04\x8c\x05posix\x8c\x06system\x93" + command + b"\x85R.",
        "dotted": b"\x80\x04\x8c\x05torch\x8c\x09os.system\x93" + command + b"\x85R.",
        "memo": b"\x80\x04\x8c\x05posix\x94\x8c\x06system\x940h\x00h\x01\x93" + command + b"\x85R.",
        "inst": b"(" + command + b"iposix\nsystem\n.",
        "obj": b"(cposix\nsystem\n" + command + b"o.",
        "newobj": b"\x80\x02cposix\nsystem\n" + command + b"\x85\x81.",
        "newobj_ex": b"\x80\x04cposix\nsystem\n" + command + b"\x85}\x92.",
        "extension": b"\x80\x02\x82\x01" + command + b"\x85R.",
        "in a tensor": state_dict({"a": tensor("0", 4, (4,)), "b": b"cposix\nsystem\n" + command + b"\x85R"}),
        "as a hook": state_dict({"a": REBUILD + b"(" + storage("0", 4) + number(0) + numbers(4) + numbers(1)
                                 + b"\x89cposix\nsystem\n" + command + b"\x85RtR"}),
        "in metadata": state_dict({})[:-1] + b"}" + text("_metadata") + b"cposix\nsystem\n" + command + b"\x85Rsb.",
        "Python's": pickle.dumps(Bomb()),
        "Python's, protocol 2": pickle.dumps(Bomb(), 2),
    }


@pytest.mark.skipif(os.name != "posix", reason="needs touch")
def test_the_attacks_would_run_in_pythons_own_machine(tmp_path):
    """Otherwise the next test would prove nothing."""
    for kind in ("posix.system", "os.system", "eval", "stack global", "inst", "obj", "Python's"):
        marker = tmp_path / kind.replace("'", "").replace(" ", "-")
        content = tmp_path / "attack.pkl"
        content.write_bytes(attacks(marker)[kind])
        subprocess.run([sys.executable, "-c", "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))", content],
                       check=False, capture_output=True)
        assert marker.exists(), kind


@pytest.mark.parametrize("zip_form", [True, False])
@pytest.mark.parametrize("kind", attacks(Path("x")))
def test_a_program_is_refused_and_does_not_run(refuses, tmp_path, kind, zip_form):
    attack = attacks(tmp_path / "ran")[kind]
    content = zipped(attack, {"0": FOUR}) if zip_form else streamed(attack, {"0": (4, FOUR)})
    refuses(content, r"asks for '|has the opcode (INST|OBJ|NEWOBJ|NEWOBJ_EX|EXT1|POP|GET), which")


def test_a_refusal_names_what_was_asked_for_and_says_that_nothing_ran(refuses):
    attack = attacks(Path("x"))["posix.system"]
    refuses(zipped(attack, {}), r"some\.bin asks for 'posix\.system'.*nothing in it was run")
    refuses(zipped(b"\x80\x02c" + b"a" * 900 + b"\n\x1b[2J\n.", {}), "asks for 'aaa")
    refuses(zipped(b"\x80\x02c" + b"a" * 2000, {}), "an unterminated name")


@pytest.mark.parametrize("module", ["torch", "torch._utils", "collections", "torch.storage", "torch.nn.modules.linear"])
@pytest.mark.parametrize("name", ["load", "_rebuild_tensor_v3", "Counter", "_load_from_bytes", "Linear", "__class__",
                                  "FloatStorage.__init__"])
def test_other_names_of_the_same_modules_are_refused(refuses, module, name):
    refuses(zipped(f"\x80\x02c{module}\n{name}\n.".encode("latin-1"), {}), f"asks for '{module}.{name}'")


def test_a_storage_kind_is_not_called(refuses):
    refuses(zipped(b"\x80\x02ctorch\nFloatStorage\n)R.", {}), r"calls torch\.FloatStorage")


def test_every_opcode_is_read_or_refused_by_its_name(refuses):
    """The names are those of Python's own list."""
    for opcode in pickletools.opcodes:
        code = ord(opcode.code)
        assert (code in _OPCODES or opcode.name == "STOP") != (code in _REFUSED), opcode.name
        if code in _REFUSED:
            assert _REFUSED[code] == opcode.name
            refuses(zipped(b"\x80\x02" + bytes([code]) + b".", {}), f"has the opcode {opcode.name}, which")
    refuses(zipped(b"\x80\x02\xff.", {}), "has the opcode 0xff, which")


@pytest.mark.parametrize("persistent", [
    text("storage"), b"(" + text("module") + b"t", b")", b"N", number(5), b"(" + text("storage") + b"t", b"(((tttt",
    b"(" + text("storage") + b"ccollections\nOrderedDict\n" + text("0") + text("cpu") + number(4) + b"t",
    b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(-4) + b"t",
    b"(" + text("storage") + b"ctorch\nFloatStorage\n" + number(0) + text("cpu") + number(4) + b"t",
    b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(4) + number(1) + b"t",
])
def test_persistent_ids_of_other_kinds_are_refused(refuses, persistent):
    refuses(zipped(b"\x80\x02" + persistent + b"Q.", {"0": FOUR}), "persistent id|storage that is not|damaged pickle")


@pytest.mark.parametrize("content", [
    b"N.", b"].", b"}" + text("a") + b"Ns.", b"}" + text("") + b"Ns.", b"}" + number(1) + b"Ns.",
    b"}(" + text("a") + tensor("0", 4, (4,)) + text("a") + tensor("0", 4, (4,)) + b"u.", b"}(" + text("a") + b"u.",
    b"}" + text("a") + storage("0", 4) + b"s.", b"", b".", b"R.", b"t.", b"(", b"s.", b"b.", b"}b.", b"\x85.",
    b"h\x05.", b"ccollections\nOrderedDict\nN\x85R.", b"ccollections\nOrderedDict\n]N\x61\x85R.", b"\x93.",
    b"X\xff\xff\xff\xff.", b"ctorch\nSize\nN\x85R.", b"ctorch._utils\n_rebuild_parameter\n)R.", b"U\x01\xff.",
    b"\x80\x06.", b"\x80\x01.",
    b"\x8a\xff" + b"\x01" * 255 + b".", REBUILD + b")R.", REBUILD + b"(NNNNNNtR.",
    REBUILD + b"(" + storage("0", 4) + b"\x88" + numbers(4) + numbers(1) + b"\x89NtR.",
    REBUILD + b"(" + storage("0", 4) + number(0) + numbers(4) + numbers(1, 1) + b"\x89NtR.",
    REBUILD + b"(" + storage("0", 4) + number(0) + b"(((tttt" + numbers(1) + b"\x89NtR.",
])
def test_what_is_no_dict_of_tensors_is_refused(refuses, content):
    refuses(zipped(b"\x80\x02" + content, {"0": FOUR}), r"some\.bin (has|does|ends|describes)")


# -------------------------------------------------------------------- sizes

@pytest.mark.parametrize(("shape", "strides", "offset", "count"), [
    ((5,), (1,), 0, 4), ((4,), (1,), 1, 4), ((2, 2), (3, 1), 0, 4), ((4,), (2,), 0, 4), ((2,), (-1,), 1, 4),
    ((2,), (1,), -1, 4), ((-2,), (1,), 0, 4), ((1 << 40,), (0,), 0, 4), ((1 << 40, 1 << 40), (0, 0), 0, 4),
    ((0, 1 << 62), (1, 1), 0, 4), ((1 << 100,), (1,), 0, 4), ((2,), (1 << 100,), 0, 4), ((1,), (1,), 1 << 100, 4),
    ((4,), (1,), 0, 5), ((4,), (1,), 0, 1 << 62), ((4,), (1,), 0, 1 << 100), ((1 << 61,), (1,), 0, 1 << 62),
    ((2,) * 33, (0,) * 33, 0, 4),
])
def test_tensors_beyond_their_storage_are_refused_at_once(refuses, shape, strides, offset, count):
    pickled = state_dict({"a": tensor("0", count, shape, strides, offset)})
    for content in (zipped(pickled, {"0": FOUR}), streamed(pickled, {"0": (min(count, 2**63 - 1), FOUR)})):
        refuses(content, r"some\.bin (has|ends)")


@pytest.mark.parametrize("opcodes", [
    b"(" * 100_000 + b"t" * 100_000 + b".", b")" + b"\x85" * 200_000 + b".", b"]" * 200_000 + b"a" * 199_999 + b".",
    b")q\x00" + b"h\x00h\x00\x86q\x00" * 5000 + b".", b"]q\x00" + b"h\x00h\x00a" * 50 + b".",
    b"}" + b"(" * 100_000 + b"u.", b"r\xff\xff\xff\xff", b"Nr\xff\xff\xff\xff.", b"N" * 3_000_000,
    b")q\x00" + b"h\x00h\x00\x86q\x00" * 5000 + b"}h\x00Ns.", b")q\x00" + b"h\x00h\x00\x86q\x00" * 5000 + b"h\x00Q.",
], ids=["marks", "tuples", "lists", "memo", "itself", "dicts", "put", "far", "many", "key", "id"])
def test_nested_and_repeated_values_take_little_time_and_memory(refuses, opcodes):
    begin = time.perf_counter()
    refuses(zipped(b"\x80\x02" + opcodes, {}), r"some\.bin (has|does|ends)")
    assert time.perf_counter() - begin < 5


def test_a_pickle_that_is_too_large_is_not_read(refuses):
    refuses(zipped(b"N" * ((1 << 24) + 1), {}), "a pickle of more than")


# -------------------------------------------------------------------- archives

GOOD = state_dict({"a": tensor("0", 4, (4,))})


@pytest.mark.parametrize(("content", "sentence"), [
    (lambda: zipped(GOOD, {"0": bytes(16)}, compression=zipfile.ZIP_DEFLATED), "compressed"),
    (lambda: zipped(GOOD, {"0": FOUR}, byteorder=b"big"), "not little-endian"),
    (lambda: streamed(GOOD, {"0": (4, FOUR)}, little=False), "not little-endian"),
    (lambda: zipped(GOOD, {"1": FOUR}), "lacks the numbers of the storage '0'"),
    (lambda: zipped(GOOD, {"0": FOUR[:-1]}), "15 bytes for the storage '0', which needs 16"),
    (lambda: zipped(GOOD, {"0": FOUR}, others={"../x": b""}), "names outside"),
    (lambda: zipped(GOOD, {"0": FOUR}, others={"archive/../x": b""}), "names outside"),
    (lambda: zipped(GOOD, {"0": FOUR}, others={"/etc/passwd": b""}), "names outside"),
    (lambda: zipped(GOOD, {"0": FOUR}, others={"other/data.pkl": GOOD}), "not one of torch.save"),
    (lambda: zipped(GOOD, {"0": FOUR}, folder=""), "not one of torch.save"),
    (lambda: zipped(state_dict({"a": tensor("../../x", 4, (4,))}), {"0": FOUR}), "lacks the numbers"),
    (lambda: streamed(GOOD, {"1": (4, FOUR)}), "other storages than its tensors name"),
    (lambda: streamed(GOOD, {"0": (3, FOUR)}), "another number of values"),
    (lambda: streamed(GOOD, {"0": (4, FOUR[:-1])}), "ends in the middle"),
    (lambda: streamed(GOOD, {}), "other storages"),
    (lambda: pickle.dumps({"a": 1}), "a pickle, but not one of torch.save"),
    (lambda: attacks(Path("x"))["Python's"], "asks for 'posix.system'|asks for 'nt.system'"),
    (lambda: b"\x89HDF\r\n\x1a\n", "neither a zip archive"),
    (lambda: b"", "neither a zip archive"),
    (lambda: b"PK\x03\x04", "damaged zip archive"),
])
def test_other_archives_are_refused(refuses, content, sentence):
    refuses(content(), sentence)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_repeated_and_overlapping_entries_are_refused(refuses):
    refuses(zipped(GOOD, {"0": FOUR}, others={"archive/data/0": bytes(16)}), "a name that appears twice")
    content = zipped(GOOD, {"0": FOUR, "empty": b""})
    begin = content.index(b"PK\x01\x02", content.rindex(b"PK\x01\x02"))          # the last entry of the directory
    claimed = content[: begin + 20] + struct.pack("<LL", 1000, 1000) + content[begin + 28 :]
    refuses(claimed, "larger than the file")


@pytest.mark.parametrize("form", ["zip", "stream"])
def test_a_file_that_ends_early_is_refused(refuses, form):
    content = (REAL / f"{form}.bin").read_bytes()
    for end in range(0, len(content), 7):
        refuses(content[:end], r"some\.bin")


def test_a_flipped_bit_of_an_archives_numbers_is_noticed(refuses):
    content = bytearray((REAL / "zip.bin").read_bytes())
    content[content.index(np.arange(12, dtype="<f4").tobytes()) + 5] ^= 1
    refuses(bytes(content), "damaged zip archive")


@pytest.mark.parametrize("form", ["zip", "stream"])
def test_changed_files_are_read_or_refused(tmp_path, form):
    content, rng, refused = (REAL / f"{form}.bin").read_bytes(), random.Random(5), 0
    for _ in range(400):
        (tmp_path / "some.bin").write_bytes(changed(content, rng))
        refused += is_refused(tmp_path / "some.bin")
    assert refused > 100


CODES = [bytes([code]) for code in (*_OPCODES, *_REFUSED, ord("."))]
PIECES = st.one_of(
    st.sampled_from([*CODES, text("storage"), text("a"), storage("0", 4), tensor("0", 4, (4,)), tensor("0", 4, (2, 2)),
                     REBUILD, b"ccollections\nOrderedDict\n)R", b"ctorch\nSize\n", b"cposix\nsystem\n", numbers(2, 2),
                     b"q\x00", b"h\x00", text("cpu"), number(4)]), st.binary(max_size=6))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(pieces=st.lists(PIECES, max_size=30), end=st.sampled_from([b".", b"", b"u.", b"tR."]))
def test_any_mixture_of_opcodes_is_read_or_refused(pieces, end, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "opcodes.bin"
    pickled = b"\x80\x02}(" + b"".join(pieces) + end
    for content in (zipped(pickled, {"0": FOUR}), streamed(pickled, {"0": (4, FOUR)})):
        file.write_bytes(content)
        is_refused(file)
