"""Results that are remembered by what they come from, so that the same evaluation again is instant.

The key of a result is a digest of everything it depends on: the model's and the data's files, the options, and the
package's own code. Results lie in MINI_BERT_CACHE, or in mini-bert in the user's folder for caches; they may be
removed at any time.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ...errors import CheckpointError
from ...files import write_files
from ...pretrained import model_directory

_PACKAGE = Path(__file__).parents[2]
_OF_A_MODEL = (".safetensors", ".json", ".txt")       # weights or their parts, and what describes them


def remembered(what: str, options: Mapping[str, Any], files: Iterable[str | Path],
               compute: Callable[[], dict[str, Any]], *, fresh: bool = False) -> dict[str, Any]:
    """The result of `compute`, or what it gave before for the same options, files and code; `fresh` computes anyway.

    Results must be what JSON can hold. Of a directory, such as a model's, the files count that a model may be made of,
    those one level below too; of what is no file, such as hub:NAME, the name.
    """
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([what, dict(options), _code()], sort_keys=True, default=str).encode())
    for file in files:
        digest.update(_digest(model_directory(file)).encode())
    folder, name = _folder(), f"{what}-{digest.hexdigest()}.json"
    if not fresh:
        try:
            known: dict[str, Any] = json.loads((folder / name).read_bytes())
        except (OSError, ValueError):
            pass
        else:
            return known
    result: dict[str, Any] = json.loads(json.dumps(compute()))        # the same now as when it is read again
    with suppress(CheckpointError):       # no place for it: the result is none the worse
        write_files(folder, {name: json.dumps(result).encode()})
    return result


def _folder() -> Path:
    chosen = os.environ.get("MINI_BERT_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mini-bert"


def _digest(path: Path) -> str:
    if path.is_dir():
        files = sorted(file for pattern in ("*", "*/*") for file in path.glob(pattern)
                       if file.suffix in _OF_A_MODEL and file.is_file())
        parts = [f"{file.relative_to(path).as_posix()}:{_digest(file)}" for file in files]
        return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    digest = blake2b(digest_size=16)
    if not path.is_file():
        digest.update(f"no file: {path}".encode())
    else:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


@cache
def _code() -> str:
    """A digest of the package's own files."""
    digest = blake2b(digest_size=16)
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
