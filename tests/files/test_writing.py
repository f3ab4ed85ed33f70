"""Files that are written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from mini_bert.errors import CheckpointError
from mini_bert.files import finish_renames, write_files, writing


def test_a_file_is_replaced(tmp_path: Path) -> None:
    for content in (b"old", b"new"):
        write_files(tmp_path, {"page.html": content})
    assert (tmp_path / "page.html").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_pipe_a_directory_and_a_link_are_refused_by_name_and_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("directory")
    (tmp_path / "broken").symlink_to("nowhere")
    before = {path.name: path.lstat() for path in tmp_path.iterdir()}
    for name in before:
        with pytest.raises(CheckpointError, match=f"{name} is a .*, and is not replaced by a file"):
            write_files(tmp_path, {"first": b"1", name: b"2"})
    assert {path.name: path.lstat() for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_is_full_when_the_file_is_closed_is_one_sentence_with_the_directory(tmp_path: Path,
                                                                                        monkeypatch) -> None:
    monkeypatch.setattr(writing, "_create", lambda directory, name: (directory / "x", open("/dev/full", "wb")))  # noqa
    with pytest.raises(CheckpointError, match=f"Cannot write to {tmp_path}: No space left"):
        write_files(tmp_path, {"page.html": b"small"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may make a device")
def test_a_device_is_not_replaced_even_by_root(tmp_path: Path) -> None:
    null = tmp_path / "null"
    try:
        os.mknod(null, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this system lets nobody make a device")
    with pytest.raises(CheckpointError, match="is a device"):
        write_files(tmp_path, {"null": b"1"})
    assert stat.S_ISCHR(null.stat().st_mode)


def test_files_that_belong_together_are_replaced_together_even_if_a_rename_is_the_last_thing(tmp_path: Path) -> None:
    old, new = {"config": b"1", "weights": b"1" * 50}, {"config": b"2", "weights": b"2" * 60}

    def interrupted(after: int) -> None:
        """Write the new files in a process that ends before its rename number `after`."""
        renames, rename = iter(range(after)), Path.replace
        Path.replace = lambda path, name: rename(path, name) if next(renames, None) is not None else os._exit(7)
        write_files(tmp_path, new)

    for after, expected in enumerate((old, new, new)):
        write_files(tmp_path, old)
        child = os.fork()
        if child == 0:
            interrupted(after)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        finish_renames(tmp_path)
        found = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name[0] != "."}
        assert found == expected
        write_files(tmp_path, new)                        # which leaves nothing else
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == new


@pytest.mark.parametrize("content", [b"", b"../x\n../y", b".a.0123456789abcdef.partial\n../a", b"a\nb", b"\xff\n", b"x" * 100])
def test_a_list_of_renames_that_nobody_of_ours_wrote_does_nothing(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b", ".a.0123456789abcdef.partial"):
        (folder / name).write_text(name)
    (folder / writing.RENAMES).write_bytes(content)
    finish_renames(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != writing.RENAMES} == {
        name: name.encode() for name in ("a", "b", ".a.0123456789abcdef.partial")}
    assert not (tmp_path / "a").exists()


def test_a_list_of_renames_that_is_a_pipe_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / writing.RENAMES)
    finish_renames(tmp_path)
    assert (tmp_path / writing.RENAMES).exists()
