"""The shipped presets, and YAML files in the same form."""

from difflib import get_close_matches
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.config import ModelConfig
from ..errors import ConfigError
from ..readers import is_file, parse_yaml, read_text, read_yaml

_PRESETS = Path(__file__).parent / "model"
_TRAINING = Path(__file__).parent / "training"
_EVALUATION = Path(__file__).parent / "evaluation"
_ALIASES = {"default": "mini", "base": "mini", "large": "larger", "mini_bert_base": "mini", "mini_bert_small": "small",
            "mini_bert_large": "larger", "larger_bert": "larger"}


def preset_names() -> list[str]:
    """The model presets that ship, in alphabetical order."""
    return sorted(file.stem for file in _PRESETS.glob("*.yaml"))


def load_preset(name: str) -> ModelConfig:
    """The shipped model config of this name, or of an alias such as `default` for `mini`."""
    name = _ALIASES.get(str(name), str(name))
    if name not in preset_names():
        near = get_close_matches(name[:100], preset_names(), n=1, cutoff=0.0)[0]
        raise ConfigError(f"There is no preset {name[:100]!r}; the nearest is {near!r}, and all are "
                          f"{', '.join(preset_names())}.")
    return _preset(name)


@cache
def _preset(name: str) -> ModelConfig:
    source = f"The preset {name}"
    return ModelConfig.from_dict(parse_yaml(_preset_text(name), ConfigError, source), source)


def describe_preset(name: str) -> str:
    """The sentence at the head of a preset's file."""
    return _preset_text(name).splitlines()[0].lstrip("# ")


def load_config(name_or_file: str | PathLike[str]) -> ModelConfig:
    """The model of a preset by name, or of a YAML file by path."""
    model, _ = load_sections(name_or_file)
    return model


def load_sections(name_or_file: str | PathLike[str]) -> tuple[ModelConfig, dict[str, Any]]:
    """The model config, and what there is of a training config.

    A preset's name gives both; a file has sections `model`, a preset's name or the fields of a model, and
    `training`, or the fields of a model alone.
    """
    path = Path(name_or_file)
    is_name = path.name == str(name_or_file) and path.suffix not in (".yaml", ".yml")
    if is_name and (str(path) in (*preset_names(), *_ALIASES) or not is_file(path)):
        return load_preset(str(path)), _training_preset(_ALIASES.get(str(path), str(path)))
    values = read_yaml(path, ConfigError) or {}
    if not isinstance(values, dict) or not {"model", "training"} & values.keys():
        return ModelConfig.from_dict(values, str(path)), {}
    for key in values:
        if key not in ("model", "training"):
            raise ConfigError(f"{path} has the section {key!r}; a config has the sections model and training.")
    model, training = values.get("model") or {}, values.get("training") or {}
    if not isinstance(training, dict):
        raise ConfigError(f"{path}, training, must be a mapping of names to values.")
    if isinstance(model, str):
        return load_preset(model), training
    return ModelConfig.from_dict(model, f"{path}, model"), training


def load_options(name_or_file: str | PathLike[str]) -> dict[str, Any]:
    """The options of a command: a shipped file by name, such as `intrinsic` or `finetuning`, or a YAML file by path."""
    shipped = {file.stem: file for file in (*sorted(_EVALUATION.glob("*.yaml")), _TRAINING / "finetuning.yaml")}
    path = shipped.get(str(name_or_file), Path(name_or_file))
    if not is_file(path):
        raise ConfigError(f"There is no config file {str(name_or_file)[:200]}; name a YAML file, or one of "
                          f"{', '.join(shipped)}.")
    values = read_yaml(path, ConfigError) or {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must map names of options to values.")
    return values


def _training_preset(name: str) -> dict[str, Any]:
    file = _TRAINING / f"{name}.yaml"
    return dict(read_yaml(file, ConfigError)) if file.is_file() else {}


def _preset_text(name: str) -> str:
    return read_text(_PRESETS / f"{name}.yaml", ConfigError)
