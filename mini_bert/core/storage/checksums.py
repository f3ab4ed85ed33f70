"""checksums.json: the digest of every file of a directory, written last and verified when it is opened."""

import json
from collections.abc import Set
from hashlib import blake2b
from pathlib import Path

from ...errors import CheckpointError
from ...files import write_files
from ...readers import is_file, open_file, read_json

CHECKSUMS = "checksums.json"


def write_checksums(directory: Path) -> None:
    """Cover all files that the directory has now."""
    sums = {file.name: _checksum(file) for file in sorted(directory.iterdir())}
    write_files(directory, {CHECKSUMS: json.dumps(sums, indent=2).encode()})


def covered(directory: Path) -> set[str]:
    """The names of the files that the checksums cover; none if they cannot be read."""
    try:
        return set(read_json(directory / CHECKSUMS, CheckpointError))
    except CheckpointError:
        return set()


def verify(directory: Path, needed: Set[str], only: Set[str] | None = None) -> None:
    """Refuse a directory that lacks a needed file or has changed since it was written; `only` these files, if given."""
    try:
        sums = read_json(directory / CHECKSUMS, CheckpointError)
        if not needed <= sums.keys() or not all(Path(name).name == name for name in sums):
            raise ValueError
        damaged = [name for name, digest in sums.items()
                   if (only is None or name in only) and _checksum(directory / name) != digest]
    except (CheckpointError, OSError, ValueError):
        raise CheckpointError(f"{directory} is not a whole checkpoint: its {CHECKSUMS}, or a file that it names, "
                              "is missing or cannot be read.") from None
    if damaged:
        raise CheckpointError(f"{directory / damaged[0]} has changed since it was written: its checksum differs.")


def verify_if_checked(directory: Path, files: Set[str]) -> None:
    """Verify these files of a directory that has checksums; others may have none."""
    if is_file(directory / CHECKSUMS):
        verify(directory, files, files)


def _checksum(file: Path) -> str:
    digest = blake2b(digest_size=16)
    with open_file(file, CheckpointError) as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
