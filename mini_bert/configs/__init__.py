"""The shipped presets, and YAML files in the same form."""

from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.config import ModelConfig
from ..errors import ConfigError

_PRESETS = Path(__file__).parent / "model"
_ALIASES = {"default": "mini"}


def preset_names() -> list[str]:
    """The model presets that ship, in alphabetical order."""
    return sorted(file.stem for file in _PRESETS.glob("*.yaml"))


def load_preset(name: str) -> ModelConfig:
    """The shipped model config of this name; `default` is `mini`."""
    name = _ALIASES.get(str(name), str(name))
    if name not in preset_names():
        near = get_close_matches(name[:100], preset_names(), n=1, cutoff=0.0)[0]
        raise ConfigError(f"There is no preset {name[:100]!r}; the nearest is {near!r}, and all are "
                          f"{', '.join(preset_names())}.")
    return _parse((_PRESETS / f"{name}.yaml").read_text("utf-8"), f"The preset {name}")


def describe_preset(name: str) -> str:
    """The sentence at the head of a preset's file."""
    return (_PRESETS / f"{name}.yaml").read_text("utf-8").splitlines()[0].lstrip("# ")


def load_config(name_or_file: str | PathLike[str]) -> ModelConfig:
    """A preset by name, or else a YAML file by path."""
    path = Path(name_or_file)
    is_name = path.name == str(name_or_file) and path.suffix not in (".yaml", ".yml")
    if is_name and (str(path) in (*preset_names(), *_ALIASES) or not _is_file(path)):
        return load_preset(str(path))
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    return _parse(text, str(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):             # a name that no file can have
        return False


def _parse(text: str, source: str) -> ModelConfig:
    import yaml

    try:
        values: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())[:300]}.") from None
    return ModelConfig.from_dict({} if values is None else values, source)
