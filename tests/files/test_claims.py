"""Directories that appear whole or not at all, and what becomes of what a killed process leaves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mini_bert.errors import CheckpointError
from mini_bert.files import claimed, claims, lock_directory, recover, remove_directory, save_files, write_files

BUSY = CheckpointError("Another process is here.")
WORD = "0123456789abcdef"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(target: Path, text: str) -> None:
    with claimed(target, BUSY) as claim, claim.filled() as folder:
        write_files(folder, {"a": text.encode(), "b": text.encode()})


def fail_halfway(target: Path, error: Exception) -> None:
    with claimed(target, BUSY) as claim, claim.filled() as folder:
        (folder / "a").write_text("half")
        raise error


@pytest.fixture(params=["exchange", "two renames"])
def way(request, monkeypatch):
    """With and without a system that exchanges two names in one step."""
    if request.param == "two renames":
        monkeypatch.setattr(claims, "exchange", lambda first, second: False)


@pytest.mark.usefixtures("way")
def test_a_directory_is_made_and_replaced(tmp_path):
    make(tmp_path / "new" / "below", "one")
    make(tmp_path / "new" / "below", "two")
    assert (tmp_path / "new" / "below" / "a").read_text() == "two"
    assert names(tmp_path / "new") == ["below"]


@pytest.mark.usefixtures("way")
def test_an_error_leaves_what_was_there(tmp_path):
    make(tmp_path / "made", "one")
    with pytest.raises(CheckpointError, match=r"Cannot write .*made: No space"):
        fail_halfway(tmp_path / "made", OSError(28, "No space left on device"))
    assert names(tmp_path) == ["made"]
    assert (tmp_path / "made" / "a").read_text() == "one"
    with pytest.raises(ZeroDivisionError):
        fail_halfway(tmp_path / "x" / "y", ZeroDivisionError())
    assert names(tmp_path) == ["made"]                         # the missing parent is gone again


def test_a_check_can_refuse_to_replace(tmp_path):
    make(tmp_path / "made", "one")

    def refuse(folder: Path) -> None:
        raise CheckpointError(f"{folder.name} is precious.")

    with pytest.raises(CheckpointError, match="made is precious"), claimed(tmp_path / "made", BUSY) as claim, \
            claim.filled(refuse):
        pass
    assert (tmp_path / "made" / "a").read_text() == "one"
    assert names(tmp_path) == ["made"]


def test_a_claim_belongs_to_one_process_until_it_is_killed(tmp_path):
    program = ("import sys, time\nfrom pathlib import Path\nfrom mini_bert.files import claimed\n"
               "with claimed(Path(sys.argv[1]), SystemExit(1)) as claim, claim.filled() as folder:\n"
               "    (folder / 'a').write_text('half')\n    print('ready', flush=True)\n    time.sleep(60)\n")
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "made")], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    with pytest.raises(CheckpointError, match="Another process is here"):
        make(tmp_path / "made", "mine")
    assert len(names(tmp_path)) == 2                           # the claim and the directory of the other process
    process.send_signal(signal.SIGKILL)
    process.communicate()
    make(tmp_path / "made", "mine")
    assert names(tmp_path) == ["made"]


def test_an_old_directory_that_was_set_aside_comes_back(tmp_path):
    make(tmp_path / "made", "one")
    (tmp_path / "made").rename(tmp_path / f".made.{WORD}.old")
    (tmp_path / f".made.{WORD}.new").mkdir()
    (tmp_path / ".made.mini-bert").write_text(f"{WORD}\n")
    recover(tmp_path)
    assert names(tmp_path) == ["made"]
    assert (tmp_path / "made" / "a").read_text() == "one"


def test_only_what_the_claim_names_is_removed(tmp_path):
    for name in (f".made.{WORD}.new", ".made.fedcba9876543210.new", ".made.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    (tmp_path / ".made.mini-bert").write_text(f"{WORD}\n")
    make(tmp_path / "made", "one")
    assert names(tmp_path) == [".made.fedcba9876543210.new", ".made.partial", "made"]


def test_links_are_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "work").write_text("work")
    (tmp_path / f".made.{WORD}.new").symlink_to(tmp_path / "precious")
    (tmp_path / ".made.mini-bert").write_text(f"{WORD}\n")
    make(tmp_path / "made", "one")
    assert (tmp_path / "precious" / "work").read_text() == "work"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to(tmp_path / "precious")
    remove_directory(tmp_path / "other", BUSY)
    assert (tmp_path / "precious" / "work").read_text() == "work"


@pytest.mark.parametrize("content", ["the diary of somebody", "x" * 200, WORD + WORD])
def test_a_file_of_somebody_else_is_not_taken_for_a_claim(tmp_path, content):
    (tmp_path / ".made.mini-bert").write_text(content)
    with pytest.raises(CheckpointError, match="is in the way"):
        make(tmp_path / "made", "one")
    assert (tmp_path / ".made.mini-bert").read_text() == content
    assert names(tmp_path) == [".made.mini-bert"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_claim_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / ".made.mini-bert")
    with pytest.raises(CheckpointError, match="is in the way"):
        make(tmp_path / "made", "one")


def test_of_many_processes_at_once_exactly_one_makes_the_directory(tmp_path):
    program = ("import sys\nfrom pathlib import Path\nfrom mini_bert.errors import CheckpointError\n"
               "from mini_bert.files import claimed\nsys.stdin.read()\n"
               "def refuse(folder): raise CheckpointError('exists')\n"
               "try:\n"
               "    with claimed(Path(sys.argv[1]), CheckpointError('busy')) as claim, claim.filled(refuse) as new:\n"
               "        (new / 'a').write_text(sys.argv[2])\n"
               "except CheckpointError as error:\n    print(error)\n    raise SystemExit(2)\n")
    for attempt in range(3):
        processes = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / f"made{attempt}"), str(number)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for number in range(4)]
        time.sleep(0.2)
        for process in processes:
            process.stdin.close()
        said = set()
        for process in processes:
            with process.stdout:
                said.add(process.stdout.read().strip())
        codes = [process.wait() for process in processes]
        assert sorted(codes) == [0, 2, 2, 2]
        assert said <= {"", "busy", "exists"}
        assert (tmp_path / f"made{attempt}" / "a").read_text() == str(codes.index(0))
    assert names(tmp_path) == ["made0", "made1", "made2"]


def test_files_appear_together_in_a_new_directory(tmp_path, monkeypatch):
    seen = []
    real = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, target: (seen.append((tmp_path / "made").exists()),
                                                               real(self, target)))
    save_files(tmp_path / "made", {"a": b"1", "b": b"2"})
    assert seen == [False, False]
    assert names(tmp_path / "made") == ["a", "b"]


def test_temporary_files_of_killed_processes_are_removed_and_no_others(tmp_path):
    (tmp_path / f".a.{WORD}.partial").write_text("left")
    (tmp_path / ".a.partial").write_text("mine")
    (tmp_path / "target").write_text("work")
    (tmp_path / ".a.aaaaaaaaaaaaaaaa.partial").symlink_to(tmp_path / "target")
    write_files(tmp_path, {"a": b"1"})
    assert names(tmp_path) == [".a.aaaaaaaaaaaaaaaa.partial", ".a.partial", "a", "target"]
    assert (tmp_path / "target").read_text() == "work"


def test_the_lock_of_a_directory_goes_with_it_to_its_new_name(tmp_path):
    (tmp_path / "a").mkdir()
    lock = lock_directory(tmp_path / "a", BUSY)
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(CheckpointError, match="Another process"):
        lock_directory(tmp_path / "b", BUSY)
    lock.release()
    lock_directory(tmp_path / "b", BUSY).release()
