"""Files that are written whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from mini_bert.errors import CheckpointError
from mini_bert.files import write_files, writing


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
