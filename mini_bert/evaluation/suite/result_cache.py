"""A cache of results on disk, so that repeating an evaluation is instant.

The key of a result is a digest of everything that it depends on: the files of model and data, the options, and the
source code of the package and of the user's own files that registered words. The cache is in MINI_BERT_CACHE, or in
mini-bert in the user's cache folder; it may be deleted at any time. An entry has a digest of its result: one that has
changed since it was written is computed again.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ...core.registry import plugin_paths
from ...core.storage.digests import DIGEST, json_digest
from ...errors import CheckpointError, DataError
from ...files import cache_folder, write_files
from ...parallel.processes import from_first, on_first, world
from ...pretrained import model_directory
from ...readers import open_file, read_json_if_there

_PACKAGE = Path(__file__).parents[2]
_OF_A_MODEL = (".safetensors", ".bin", ".json", ".txt")       # weights, config and tokenizer


def cached_result(what: str, options: Mapping[str, Any], files: Iterable[str | Path],
                  compute: Callable[[], dict[str, Any]], *, fresh: bool = False) -> dict[str, Any]:
    """The cached result of `compute` for these options, files and code; computed if there is none, or if `fresh`.

    Results must be JSON data. Of a directory, such as a model's, the files that can belong to a model count, up to one
    level below; of a name that is not a file, such as hub:NAME, the name counts.
    """
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([what, dict(options), _code()], sort_keys=True, default=str).encode())
    for file in (*files, *plugin_paths()):
        digest.update(content_digest(model_directory(file)).encode())
    folder, name = cache_folder(), f"{what}-{digest.hexdigest()}.json"
    known = None if fresh else from_first(world(), lambda: _known(folder / name))
    if known is not None:
        return known
    result: dict[str, Any] = json.loads(json.dumps(compute()))        # the same as when it is read from the cache
    with suppress(CheckpointError):       # the cache cannot be written; the result is still valid
        on_first(world(), lambda: write_files(folder, {name: json.dumps(
            {"result": result, DIGEST: json_digest(result)}).encode()}))
    return result


def _known(file: Path) -> dict[str, Any] | None:
    """A result that is in the cache; a damaged one is computed again."""
    with suppress(DataError):
        known = read_json_if_there(file, DataError)
        if known is not None and known.get(DIGEST) == json_digest(known.get("result")):
            return dict(known["result"])
    return None


def content_digest(path: Path) -> str:
    """Of a file, or of the files of a directory that can belong to a model."""
    if path.is_dir():
        files = sorted(file for pattern in ("*", "*/*") for file in path.glob(pattern)
                       if file.suffix in _OF_A_MODEL and file.is_file())
        parts = [f"{file.relative_to(path).as_posix()}:{content_digest(file)}" for file in files]
        return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    digest = blake2b(digest_size=16)
    if not path.is_file():
        digest.update(f"no file: {path}".encode())
    else:
        with open_file(path, DataError) as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


@cache
def _code() -> str:
    """A digest of the source files of the package."""
    digest = blake2b(digest_size=16)
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
