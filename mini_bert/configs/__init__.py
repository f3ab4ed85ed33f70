"""The shipped presets, and YAML files in the same form."""

from difflib import get_close_matches
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
    name = _ALIASES.get(name, name)
    if name not in preset_names():
        near = get_close_matches(name, preset_names(), n=1, cutoff=0.0)[0]
        raise ConfigError(f"There is no preset {name!r}; the nearest is {near!r}, and all are "
                          f"{', '.join(preset_names())}.")
    return _parse((_PRESETS / f"{name}.yaml").read_text("utf-8"), f"The preset {name}")


def describe_preset(name: str) -> str:
    """The sentence at the head of a preset's file."""
    return (_PRESETS / f"{name}.yaml").read_text("utf-8").splitlines()[0].lstrip("# ")


def load_config(name_or_file: str) -> ModelConfig:
    """A preset by name, or a YAML file by path: whatever ends in .yaml or .yml, or exists, is a path."""
    path = Path(name_or_file)
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        return load_preset(name_or_file)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from None
    return _parse(text, str(path))


def _parse(text: str, source: str) -> ModelConfig:
    import yaml

    try:
        values: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())}.") from None
    return ModelConfig.from_dict({} if values is None else values, source)
