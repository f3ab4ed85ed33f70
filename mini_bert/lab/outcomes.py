"""Results of an experiment, a file each in DIR/outcomes.

A run whose result is there is not trained again, even if its own directory is gone: so an experiment can go on in
another place from these small files alone. Each says what its result depends on: configs, corpus and ruler. One that
depends on anything else is refused, and not replaced; a setting that is newer than the file had its default.
"""

import json
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..core.config import ModelConfig
from ..core.storage.digests import DIGEST, json_digest
from ..errors import CheckpointError
from ..files import write_files
from ..readers import read_json_if_there
from ..training.config import TrainingConfig

FOLDER = "outcomes"


def kept(out: Path, name: str, settings: Mapping[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result with this name and these settings; computed if there is none. Both must be JSON data."""
    folder, file = out / FOLDER, f"{_file_name(name)}.json"
    wanted = json.loads(json.dumps(settings))
    known = read_json_if_there(folder / file, CheckpointError)
    if known is not None:
        if known.pop(DIGEST, None) != json_digest(known) or not isinstance(known.get("result"), dict):
            raise CheckpointError(f"{folder / file} has changed since it was written: its digest differs.")
        before, now = _with_defaults(known.get("settings")), _with_defaults(wanted)
        if before != now:
            difference = _difference(before, now)
            raise CheckpointError(f"{folder / file} is the result of other settings, {difference}; choose another "
                                  "--out, or remove the file.")
        return dict(known["result"])
    content = {"name": name, "settings": wanted, "result": json.loads(json.dumps(compute()))}
    text = json.dumps({**content, DIGEST: json_digest(content)}, indent=1)
    write_files(folder, {file: text.encode()})
    return dict(content["result"])


def _with_defaults(settings: Any) -> Any:
    """The settings with what their configs, at any depth, do not mention."""
    if not isinstance(settings, dict):
        return settings
    defaults = {"model": ModelConfig().to_dict(), "training": TrainingConfig().to_dict()}
    return {key: {**defaults.get(key, {}), **_with_defaults(value)} if isinstance(value, dict) else value
            for key, value in settings.items()}


def _file_name(name: str) -> str:
    """Of letters and digits; two names never share a file."""
    plain = re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")
    return plain if plain == name else f"{plain[:80]}-{blake2b(name.encode(), digest_size=3).hexdigest()}"


def _difference(known: Any, wanted: Any, name: str = "settings") -> str:
    """The first setting that differs, in words."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        for key in [*wanted, *(key for key in known if key not in wanted)]:
            if known.get(key) != wanted.get(key):
                return _difference(known.get(key), wanted.get(key), key)
    return f"{name}={str(known)[:100]} and not {str(wanted)[:100]}"
