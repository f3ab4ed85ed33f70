"""A model in a directory: config.json and model.safetensors.

How the two files spell a model is a Layout. Ours is here; others register themselves (Hugging Face's
BERT: interop/huggingface.py). Reading checks everything before a model is made: which tensors there
are, their shapes, and that every number is finite. No pickle is ever opened.
"""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError
from ...files import write_files
from ..arrays import Array
from ..config import ModelConfig
from ..modules.assembly import parameter_specs
from ..params import Parameters
from ..registry import SLOTS, parse_word, plugin_file, words
from .safetensors_file import safetensors_chunks

PLUGINS = "plugins"                   # in config.json: words from elsewhere, and the name of the file that has each
VOCABULARY = "vocab_digest"           # in config.json: the fingerprint of the vocabulary, if it was saved with one
CONFIG, WEIGHTS, SHARDS = "config.json", "model.safetensors", "model.safetensors.index.json"

Tensors = dict[str, Array]


class Layout(Protocol):
    """A way to write a config and named arrays to disk."""

    metadata: dict[str, str]          # for the header of the safetensors file

    def claims(self, config: Mapping[str, Any]) -> bool:
        """Is this config.json written in this layout?"""

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> tuple[ModelConfig, Tensors]:
        """Our config, and the arrays under our names and in our orientation."""

    def on_disk(self, config: ModelConfig, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The name and shape of one of our parameters in the file."""

    def fits(self, config: ModelConfig) -> bool:
        """Can this layout hold such a model?"""

    def write(self, config: ModelConfig, params: Parameters) -> tuple[dict[str, Any], Tensors]:
        """config.json's content and the arrays under the layout's names."""


class MiniLayout:
    """Ours: the fields of ModelConfig, and the parameters under their own names."""

    metadata = {"format": "mini-bert"}
    _marker = {"model_type": "mini-bert", "format_version": 1}

    def claims(self, config: Mapping[str, Any]) -> bool:
        return config.get("model_type") == "mini-bert"

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> tuple[ModelConfig, Tensors]:
        if config.get("format_version") != 1:
            raise CheckpointError(f"{source} has format_version {config.get('format_version')!r}; "
                                  "this version of Mini-BERT reads 1.")
        _require_plugins(config.get(PLUGINS, {}), source)
        fields = {key: value for key, value in config.items() if key not in (*self._marker, PLUGINS)}
        return ModelConfig.from_dict(fields, f"{source}/{CONFIG}"), tensors

    def on_disk(self, config: ModelConfig, name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        return name, shape

    def fits(self, config: ModelConfig) -> bool:
        return True

    def write(self, config: ModelConfig, params: Parameters) -> tuple[dict[str, Any], Tensors]:
        plugins = {f"{slot}: {word}": file for slot, word in config.words()
                   if (file := plugin_file(slot, word)) is not None}
        return {**self._marker, **config.to_dict(), **({PLUGINS: plugins} if plugins else {})}, dict(params)


def _require_plugins(plugins: Any, source: str) -> None:
    """Refuse a model that needs words which nobody has registered."""
    if not isinstance(plugins, dict):
        raise CheckpointError(f"{source}/{CONFIG} has {PLUGINS} that are not an object.")
    for key, file in plugins.items():
        slot, _, word = str(key).partition(": ")
        if slot not in SLOTS:
            raise CheckpointError(f"{source}/{CONFIG} names a slot that there is not: {slot[:100]!r}.")
        if parse_word(word, slot).name not in words(slot):
            raise CheckpointError(f"{source} needs the {slot} {word[:100]!r}, which {str(file)[:100]} registered when "
                                  "it was saved: name that file with --import, or load it with mini_bert.import_file.")


_layouts: list[Layout] = [MiniLayout()]


def register_layout(layout: Layout) -> None:
    """Make a layout known; the one registered last is asked first."""
    _layouts.insert(0, layout)


def write_model(config: ModelConfig, params: Parameters, directory: str | PathLike[str], *,
                dtype: npt.DTypeLike | None = None, vocab_digest: str | None = None) -> None:
    """Write a model's two files, in this precision if given; both are whole on disk before either takes its name."""
    if not np.isfinite(params.flat).all():
        raise CheckpointError(f"{_first_not_finite(dict(params))} has values that are not finite; "
                              "a model with NaN or infinity is not saved.")
    layout = next(layout for layout in _layouts if layout.fits(config))
    description, tensors = layout.write(config, params)
    if vocab_digest is not None:
        description[VOCABULARY] = vocab_digest
    if dtype is not None:
        tensors = _converted(tensors, np.dtype(dtype))
    write_files(Path(directory), {WEIGHTS: safetensors_chunks(tensors, layout.metadata),
                                  CONFIG: (json.dumps(description, indent=2) + "\n").encode()})


def _converted(tensors: Tensors, dtype: np.dtype[Any]) -> Tensors:
    with np.errstate(over="ignore"):
        converted = {name: tensor.astype(dtype) for name, tensor in tensors.items()}
    if (broken := _first_not_finite(converted)) is not None:
        raise CheckpointError(f"{broken} has values that are too large for {dtype}.")
    return converted


def read_model(directory: str | PathLike[str], dtype: np.dtype[Any]) -> tuple[ModelConfig, Tensors, str | None]:
    """The config and the parameters in a directory: complete, of the right shapes, and finite in `dtype`.

    And the fingerprint of the vocabulary that they were saved with, if there is one.
    """
    path = _model_directory(Path(directory))
    description = _read_json(path / CONFIG)
    digest = description.pop(VOCABULARY, None)
    if digest is not None and not isinstance(digest, str):
        raise CheckpointError(f"{path / CONFIG} has the {VOCABULARY} {str(digest)[:100]}, which is not text.")
    layout = next((layout for layout in _layouts if layout.claims(description)), None)
    if layout is None:
        raise CheckpointError(f"{path / CONFIG} has model_type {description.get('model_type')!r}; "
                              "the types that can be opened are 'mini-bert' and 'bert'.")
    config, tensors = layout.read(description, _read_tensors(path), str(path))
    return config, _verified(config, tensors, path, layout, dtype), digest


def _model_directory(directory: Path) -> Path:
    """The directory itself, or the part of a sentence-transformers directory that holds the encoder."""
    try:
        there, is_directory = directory.exists(), directory.is_dir()
    except (OSError, ValueError):             # a name that nothing can have
        there, is_directory = False, False
    if not there:
        raise CheckpointError(f"There is no directory {str(directory)[:200]}.")
    if not is_directory:
        raise CheckpointError(f"{directory} is a file; name a directory that holds {CONFIG} and {WEIGHTS}. "
                              "Pickled checkpoints (.pkl, .bin, .pt) are not opened, as they can run code.")
    if not (directory / CONFIG).exists() and (directory / "modules.json").exists():
        modules = _read_json(directory / "modules.json", list)
        part = str(modules[0].get("path", "")) if modules and isinstance(modules[0], dict) else ""
        if part and Path(part).name == part:
            return directory / part
    return directory


def _read_json(path: Path, kind: type = dict) -> Any:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{path.parent} has no {path.name}, so it is not a model's directory.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read as JSON: {error}.") from None
    if not isinstance(content, kind):
        raise CheckpointError(f"{path} holds a JSON {type(content).__name__}, not a {kind.__name__}.")
    return content


def _read_tensors(directory: Path) -> Tensors:
    if (directory / WEIGHTS).exists():
        return _read_safetensors(directory / WEIGHTS)
    if (directory / SHARDS).exists():
        files = _read_json(directory / SHARDS).get("weight_map")
        if not isinstance(files, dict) or not all(Path(str(name)).name == name != ".." for name in files.values()):
            raise CheckpointError(f"{directory / SHARDS} has no valid weight_map.")
        return {name: tensor for file in sorted(set(files.values()))
                for name, tensor in _read_safetensors(directory / file).items()}
    others = [file.name for file in directory.iterdir() if file.suffix in {".bin", ".pt", ".pkl", ".ckpt", ".h5"}]
    hint = f" It has {others[0]}, a format that is not opened: save the model as safetensors." if others else ""
    raise CheckpointError(f"{directory} has no {WEIGHTS}.{hint}")


def _read_safetensors(path: Path) -> Tensors:
    from safetensors import SafetensorError, deserialize, safe_open

    try:
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            if all(file.get_slice(name).get_dtype() != "BF16" for name in names):
                return {name: file.get_tensor(name) for name in names}
        raw: list[tuple[str, dict[str, Any]]] = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
        return {name: _decode(view["dtype"], view["data"]).reshape(view["shape"]) for name, view in raw}
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is not a readable safetensors file: {error}.") from None


def _decode(kind: str, data: bytes) -> Array:
    """The numbers in `data`, little-endian and of a kind such as F32, I64 or BF16."""
    if kind == "BF16":        # NumPy has none: its sixteen bits are the upper half of a float32
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, f"<{kind[0].lower()}{int(kind[1:]) // 8}")


def _verified(config: ModelConfig, tensors: Tensors, path: Path, layout: Layout, dtype: np.dtype[Any]) -> Tensors:
    """The tensors in this precision, if they are exactly the parameters of such a model, and finite."""
    expected = {spec.name: spec.shape for spec in parameter_specs(config)}
    missing = [layout.on_disk(config, name, shape)[0] for name, shape in expected.items() if name not in tensors]
    extra = [name for name in tensors if name not in expected]
    problems = [f"{what}: {', '.join(which)}"
                for what, which in (("missing", missing), ("not expected", extra)) if which]
    if problems:
        raise CheckpointError(f"The tensors in {path} do not fit its config; {'; '.join(problems)}.")
    result = {}
    for name, shape in expected.items():
        theirs, theirs_shape = layout.on_disk(config, name, shape)
        tensor = tensors[name]
        if tensor.shape != shape:
            found = layout.on_disk(config, name, tensor.shape)[1]
            raise CheckpointError(f"{theirs} in {path} has the shape {found}; its config says {theirs_shape}.")
        if tensor.dtype.kind != "f":
            raise CheckpointError(f"{theirs} in {path} holds {tensor.dtype}, not floating-point numbers.")
        with np.errstate(over="ignore"):
            result[name] = tensor.astype(dtype, copy=False)
        if not np.isfinite(result[name]).all():
            raise CheckpointError(f"{theirs} in {path} has values that are not finite in {dtype}.")
    return result


def _first_not_finite(tensors: Tensors) -> str | None:
    return next((name for name, tensor in tensors.items() if not np.isfinite(tensor).all()), None)
