"""A model in a directory: config.json and model.safetensors, or the weights as older checkpoints have them.

How the two files spell a model is a Layout. Ours is here; others register themselves (Hugging Face's
BERT: interop/huggingface). Reading checks everything before a model is made: which tensors there
are, their shapes, and that every number is finite. Which files hold weights: weight_files.py. No pickle is ever run.

The metadata of model.safetensors has a digest of the arrays and one of the config that they were saved with. Weights
that were written before there were digests may have the two in digests.json; files from elsewhere have none.
"""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ...errors import CheckpointError
from ...files import finish_renames, save_files
from ...late import complete
from ...readers import exists, read_json, shown
from ..arrays import Array
from ..config import ModelConfig
from ..modules.assembly import TaskSpec, parameter_specs
from ..params import Parameters
from ..precision.narrow import KINDS, NarrowMatrix
from ..precision.narrow_params import NarrowParameters, is_narrowed
from .checksums import verify_if_checked
from .digests import DIGEST, json_digest, tensors_digest
from .plugin_words import PLUGINS, plugins_of, require_plugins
from .safetensors_file import NARROW, changed, safetensors_chunks
from .weight_files import WEIGHTS, read_weights

VOCABULARY = "vocab_digest"           # in config.json: the fingerprint of the vocabulary, if it was saved with one
CONFIG = "config.json"
DIGESTS, CONFIG_DIGEST = "digests.json", "config_digest"
_TASK, _MOST_OUTPUTS = "task_head", 1_000_000         # in config.json: the head of a task

Tensors = dict[str, Array]
Content = bytes | Iterable[bytes | memoryview]
Shape = tuple[int, ...]


class Opened(NamedTuple):
    """What a layout finds in a directory: our config, the arrays under our names, and a task's head, if it has one."""

    config: ModelConfig
    tensors: Tensors
    task: TaskSpec | None = None
    described: Mapping[str, Any] = MappingProxyType({})       # config.json, if it is in another layout than ours
    vocab_digest: str | None = None   # of the vocabulary that the model was saved with, if it is known
    narrow: str = ""                  # what the matrices are kept as, if not in the precision of the model: int8


class Layout(Protocol):
    """A way to write a config and named arrays to disk."""

    metadata: dict[str, str]          # for the header of the safetensors file

    @property
    def model_types(self) -> tuple[str, ...]:
        """The values of model_type that it can read."""

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Keys of config.json for a model that was not read from this layout."""

    def claims(self, config: Mapping[str, Any]) -> bool:
        """Is this config.json written in this layout?"""

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> Opened:
        """Our config, and the arrays under our names and in our orientation; others under the names in the file."""

    def on_disk(self, config: ModelConfig, task: TaskSpec | None, name: str, shape: Shape) -> tuple[str, Shape]:
        """The name and shape in the file of the tensor that holds one of our parameters."""

    def fits(self, config: ModelConfig, task: TaskSpec | None) -> bool:
        """Can this layout hold such a model?"""

    def write(self, config: ModelConfig, task: TaskSpec | None, params: Parameters) -> tuple[dict[str, Any], Tensors]:
        """config.json's content and the arrays under the layout's names."""


class MiniLayout:
    """Ours: the fields of ModelConfig, and the parameters under their own names."""

    metadata = {"format": "mini-bert"}
    defaults: Mapping[str, Any] = MappingProxyType({})
    model_types = ("mini-bert",)
    _marker = {"model_type": "mini-bert", "format_version": 1}

    def claims(self, config: Mapping[str, Any]) -> bool:
        return config.get("model_type") == "mini-bert"

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> Opened:
        if config.get("format_version") != 1:
            raise CheckpointError(f"{source} has format_version {config.get('format_version')!r}; "
                                  "this version of Mini-BERT reads 1.")
        require_plugins(config.get(PLUGINS, {}), source, CONFIG)
        fields = {key: value for key, value in config.items() if key not in (*self._marker, PLUGINS, _TASK, NARROW)}
        ours = ModelConfig.from_dict(fields, f"{source}/{CONFIG}")
        task = _read_task(config[_TASK], f"{source}/{CONFIG}") if _TASK in config else None
        if (narrow := config.get(NARROW, "")) and narrow not in KINDS:
            raise CheckpointError(f"{source}/{CONFIG} has {NARROW} {str(narrow)[:100]!r}; they can be "
                                  f"{', '.join(KINDS)}.")
        return Opened(ours, tensors, task, narrow=narrow)

    def on_disk(self, config: ModelConfig, task: TaskSpec | None, name: str, shape: Shape) -> tuple[str, Shape]:
        return name, shape

    def fits(self, config: ModelConfig, task: TaskSpec | None) -> bool:
        return True

    def write(self, config: ModelConfig, task: TaskSpec | None, params: Parameters) -> tuple[dict[str, Any], Tensors]:
        words = [*config.words(), *([] if task is None else [("task_head", task.head), ("task_loss", task.loss)])]
        described = {} if task is None else {_TASK: {**task._asdict(), "labels": list(task.labels)}}
        return {**self._marker, **config.to_dict(), **described, **plugins_of(words)}, \
            params.stored() if isinstance(params, NarrowParameters) else dict(params)


def _read_task(described: Any, source: str) -> TaskSpec:
    head, outputs, labels = (described.get(key) if isinstance(described, dict) else None
                             for key in ("head", "outputs", "labels"))
    loss = described.get("loss", "cross_entropy") if isinstance(described, dict) else None
    if not isinstance(head, str) or not isinstance(loss, str) or type(outputs) is not int \
            or not 1 <= outputs <= _MOST_OUTPUTS or not isinstance(labels, list) \
            or not all(isinstance(label, str) for label in labels):
        raise CheckpointError(f"{source}: {_TASK} must have a head, a number of outputs, a list of labels and a loss.")
    return TaskSpec(head, outputs, tuple(labels), loss)


_layouts: list[Layout] = [MiniLayout()]


def register_layout(layout: Layout) -> None:
    """Make a layout known; the one registered last is asked first."""
    _known_layouts().insert(0, layout)


def _known_layouts() -> list[Layout]:
    complete("layouts")
    return _layouts


def write_model(config: ModelConfig, params: Parameters, directory: str | PathLike[str], *,
                dtype: npt.DTypeLike | None = None, vocab_digest: str | None = None, task: TaskSpec | None = None,
                described: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Write a model's two files, in this precision if given; both are whole on disk before either takes its name.

    The layout is the first that can hold the model; that of the config.json which the model was read from, `described`,
    comes before others, and what we have no field for is written again.
    """
    save_files(Path(directory), model_contents(config, params, dtype=dtype, vocab_digest=vocab_digest, task=task,
                                               described=described))


def layout_for(config: ModelConfig, task: TaskSpec | None, described: Mapping[str, Any]) -> Layout:
    """The layout that such a model is written in."""
    known = described.get("model_type")
    by_choice = sorted(_known_layouts(), key=lambda layout: known not in layout.model_types)
    return next(layout for layout in by_choice if layout.fits(config, task))


def model_contents(config: ModelConfig, params: Parameters, *, dtype: npt.DTypeLike | None = None,
                   vocab_digest: str | None = None, task: TaskSpec | None = None,
                   described: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Content]:
    """The two files of a model, by name; see write_model."""
    if (broken := _first_not_finite(dict(params))) is not None:
        raise CheckpointError(f"{broken} has values that are not finite; "
                              "a model with NaN or infinity is not saved.")
    narrow = {NARROW: params.word} if isinstance(params, NarrowParameters) else {}
    if narrow and dtype is not None:
        raise CheckpointError(f"The weights of this model are {narrow[NARROW]}, and are saved as they are.")
    layout: Layout = MiniLayout() if narrow else layout_for(config, task, described)
    description, tensors = layout.write(config, task, params)
    again = described.get("model_type") in layout.model_types
    description = {**(described if again else layout.defaults), **description, **narrow}
    if vocab_digest is not None:
        description[VOCABULARY] = vocab_digest
    if dtype is not None:
        tensors = _converted(tensors, np.dtype(dtype))
    text = json.dumps(description, indent=2) + "\n"
    metadata = {**layout.metadata, **narrow, CONFIG_DIGEST: json_digest(json.loads(text))}
    return {WEIGHTS: safetensors_chunks(tensors, metadata), CONFIG: text.encode()}


def _converted(tensors: Tensors, dtype: np.dtype[Any]) -> Tensors:
    with np.errstate(over="ignore"):
        converted = {name: tensor.astype(dtype) for name, tensor in tensors.items()}
    if (broken := _first_not_finite(converted)) is not None:
        raise CheckpointError(f"{broken} has values that are too large for {dtype}.")
    return converted


def read_model(directory: str | PathLike[str], dtype: np.dtype[Any]) -> Opened:
    """The config and the parameters in a directory: complete, of the right shapes, and finite in `dtype`."""
    path = _model_directory(Path(directory))
    finish_renames(path)
    description = read_json(path / CONFIG, CheckpointError,
                            absent=f"{shown(path)} has no {CONFIG}, so it is not a model's directory.")
    tensors, unchanged = _read_whole(path, json_digest(description))
    digest = description.pop(VOCABULARY, None)
    if digest is not None and not isinstance(digest, str):
        raise CheckpointError(f"{path / CONFIG} has the {VOCABULARY} {str(digest)[:100]}, which is not text.")
    layout = next((layout for layout in _known_layouts() if layout.claims(description)), None)
    if layout is None:
        raise _unknown_type(path / CONFIG, description)
    opened = layout.read(description, tensors, str(path))
    return opened._replace(tensors=_verified(opened, path, layout, dtype, unchanged), vocab_digest=digest)


def _unknown_type(path: Path, description: Mapping[str, Any]) -> CheckpointError:
    known = sorted({name for layout in _known_layouts() for name in layout.model_types})
    word = description.get("model_type")
    near = get_close_matches(str(word)[:100], known, n=1, cutoff=0.0)[0]
    return CheckpointError(f"{path} has model_type {str(word)[:100]!r}; the nearest that can be opened is {near!r}, "
                           f"and all are {', '.join(known)}.")


def _model_directory(directory: Path) -> Path:
    """The directory itself, or the part of a sentence-transformers directory that holds the encoder."""
    if not exists(directory):
        raise CheckpointError(f"There is no directory {str(directory)[:200]}.")
    if not directory.is_dir():
        raise CheckpointError(f"{directory} is a file; name a directory that holds {CONFIG} and {WEIGHTS}. "
                              "Pickled files (.pkl, .pt) are not opened, as they can run code; of a directory's "
                              "pytorch_model.bin the tensors are read, and nothing is run.")
    if not (directory / CONFIG).exists() and (directory / "modules.json").exists():
        modules = read_json(directory / "modules.json", CheckpointError, list)
        part = str(modules[0].get("path", "")) if modules and isinstance(modules[0], dict) else ""
        if part and (len(Path(part).parts) != 1 or Path(part).name in ("", "..")):
            raise CheckpointError(f"{shown(directory / 'modules.json')} names {part[:100]!r}, which is not a folder "
                                  "inside that directory.")
        return directory / part
    return directory


def _read_whole(directory: Path, config_digest: str) -> tuple[Tensors, bool]:
    """The arrays, if neither they nor the config have changed since they were saved together; and is that certain?"""
    tensors, digests = read_weights(directory)
    if DIGEST not in digests and (directory / DIGESTS).exists():
        digests = read_json(directory / DIGESTS, CheckpointError)
        if digests.get(DIGEST) != tensors_digest(tensors):
            raise changed(directory / WEIGHTS)
    if digests.get(CONFIG_DIGEST, config_digest) != config_digest:
        raise CheckpointError(f"{directory / CONFIG} is not the config that {WEIGHTS} was saved with: one of them has "
                              "changed since it was written.")
    verify_if_checked(directory, {CONFIG} if DIGEST in digests else {CONFIG, WEIGHTS})
    return tensors, DIGEST in digests


def _verified(opened: Opened, path: Path, layout: Layout, dtype: np.dtype[Any], unchanged: bool) -> Tensors:
    """The tensors in this precision, if they are exactly the parameters of such a model, and finite.

    Those that are `unchanged` since we saved them were finite then.
    """
    config, tensors, task, *_ = opened
    if opened.narrow:
        tensors = _with_narrow(opened, path, dtype)
    expected = {spec.name: spec.shape for spec in parameter_specs(config, task)}
    missing = dict.fromkeys(layout.on_disk(config, task, name, shape)[0] for name, shape in expected.items()
                            if name not in tensors)
    extra = [name for name in tensors if name not in expected]
    problems = [f"{what}: {', '.join(which)}"
                for what, which in (("missing", missing), ("not expected", extra)) if which]
    if problems:
        raise CheckpointError(f"The tensors in {path} do not fit its config; {'; '.join(problems)}.")
    result = {}
    for name, shape in expected.items():
        theirs, theirs_shape = layout.on_disk(config, task, name, shape)
        tensor = tensors[name]
        if tensor.shape != shape:
            found = layout.on_disk(config, task, name, tensor.shape)[1]
            raise CheckpointError(f"{theirs} in {path} has the shape {found}; its config says {theirs_shape}.")
        if isinstance(tensor, NarrowMatrix):              # it is of finite numbers
            result[name] = tensor
            continue
        if tensor.dtype.kind != "f":
            raise CheckpointError(f"{theirs} in {path} holds {tensor.dtype}, not floating-point numbers.")
        with np.errstate(over="ignore"):
            result[name] = tensor.astype(dtype, copy=False)
        if not (unchanged and tensor.dtype == dtype) and not np.isfinite(result[name]).all():
            raise CheckpointError(f"{theirs} in {path} has values that are not finite in {dtype}.")
    return result


def _with_narrow(opened: Opened, path: Path, dtype: np.dtype[Any]) -> dict[str, Any]:
    """The tensors of a file with narrow matrices, each of these put together from its parts."""
    kind, left, made = KINDS[opened.narrow], dict(opened.tensors), dict[str, Any]()
    for spec in parameter_specs(opened.config, opened.task):
        if not is_narrowed(spec) or spec.name not in left:
            continue
        parts = {name.removeprefix(spec.name): left.pop(name) for name in (spec.name, f"{spec.name}.scale")
                 if name in left}
        if parts[""].ndim != 2:
            raise CheckpointError(f"{spec.name} in {path} has the shape {parts[''].shape}; its config says "
                                  f"{spec.shape}.")
        try:
            made[spec.name] = kind.of_parts(parts, dtype)
        except ValueError as error:
            raise CheckpointError(f"{spec.name} in {path} {error}.") from None
    return left | made


def _first_not_finite(tensors: Tensors) -> str | None:
    return next((name for name, tensor in tensors.items() if not np.isfinite(tensor).all()), None)
