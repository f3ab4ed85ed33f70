"""What the layouts of Hugging Face share: an architecture's file says in tables how transformers spells its models.

    tensors     `encoder` (behind `prefix` in classes with a head) and `heads` (never behind it): here
    config      its fields, classes and heads of tasks: descriptions.py

A model fits a layout if its config comes back from the description that the layout makes of it.
"""

import re
from collections.abc import Mapping, Set
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec, parameter_specs
from ...core.params import Parameters
from ...core.storage.model_files import CONFIG, Opened, Tensors
from ...errors import CheckpointError, ConfigError
from .descriptions import Descriptions, has_own_decoder, naming
from .stored import Names, Shape, Stored
from .tables import NOT_KEPT, labels_of, loss_of


class HuggingFaceLayout(Descriptions):
    """The base of all. The class attributes are an architecture's tables; tensors are named without the prefix."""

    metadata = {"format": "pt"}           # transformers requires it

    prefix: ClassVar[str]                                         # of the encoder, in classes with a head: "bert."
    encoder: ClassVar[Names]
    heads: ClassVar[Names] = {}
    tied: ClassVar[Mapping[str, str]] = {}                        # copies of other tensors
    ignored: ClassVar[str] = r"embeddings\.(position|token_type)_ids"       # tensors that are no parameters
    renamed: ClassVar[Mapping[str, str]] = {}                     # parts of old names, and what they are now

    # ---------------------------------------------------------------- for an architecture to override

    def numbering(self, layer: int, config: ModelConfig) -> dict[str, int]:
        """What stands for {i}, and for other letters in braces, in the names of a layer's tensors."""
        return {"i": layer}

    def surplus(self, names: Set[str]) -> Set[str]:
        """Tensors that no part of ours reads, given all names in the file."""
        return set()

    # ---------------------------------------------------------------- the protocol of layouts

    @property
    def model_types(self) -> tuple[str, ...]:
        return (self.model_type,)

    def claims(self, config: Mapping[str, Any]) -> bool:
        return config.get("model_type") == self.model_type

    def read(self, config: Mapping[str, Any], tensors: Tensors, source: str) -> Opened:
        bare, spelled = self._bare(tensors, source)
        self._drop_tied(bare, config, source)
        for name in self.surplus(set(bare)):
            del bare[name]
        kind = self.kind_in(config)
        task = self._read_task(kind, config, bare, source)
        ours = self._read_config(config, set(bare), str(Path(source) / CONFIG))
        found, used = Tensors(), set()
        for name, stored, shape in self._places(ours, task):
            tensor = bare.get(stored.name)
            if tensor is not None:
                wanted = stored.shape(shape, ours)
                if tensor.shape != wanted:
                    raise CheckpointError(f"{spelled.get(stored.name, stored.name)} in {source} has the shape "
                                          f"{tensor.shape}; its config says {wanted}.")
                found[name] = stored.unpack(tensor, ours)
                used.add(stored.name)
        extra = {spelled.get(name, name): tensor for name, tensor in bare.items()
                 if name not in used and not self._of_unknown_head(config, name, spelled.get(name, name))}
        kept = {key: value for key, value in config.items() if key not in NOT_KEPT}
        return Opened(ours, found | extra, task, {**kept, "model_type": self.model_type})

    def on_disk(self, config: ModelConfig, task: TaskSpec | None, name: str, shape: Shape) -> tuple[str, Shape]:
        stored = self._stored(config, task)[name]
        return self._prefix(config, task, name) + stored.name, stored.shape(shape, config)

    def fits(self, config: ModelConfig, task: TaskSpec | None) -> bool:
        try:
            names = {stored.name for _, stored, _ in self._places(config, task)}
            described = self._describe(config, task)
            again = self._read_config(described, names, self.model_type)
            same_head = task is None or self._heads_agree(self.kind_of(config, task), described, task)
        except (ConfigError, KeyError, ValueError):       # no name for a parameter, no word for a slot, other terms
            return False
        return again == config and same_head

    def write(self, config: ModelConfig, task: TaskSpec | None, params: Parameters) -> tuple[dict[str, Any], Tensors]:
        together: dict[str, list[tuple[Stored, str]]] = {}
        for name, stored, _ in self._places(config, task):
            together.setdefault(stored.name, []).append((stored, name))
        tensors = {}
        for theirs, parts in together.items():
            parts.sort(key=lambda part: part[0].part)
            stored, name = parts[0]
            values = [params[ours] for _, ours in parts]
            tensors[self._prefix(config, task, name) + theirs] = stored.pack(values, config)
        if has_own_decoder(config):                      # its bias then has two names, of which transformers reads one
            tensors |= {copy: tensors[original] for copy, original in self.tied.items() if original in tensors}
        return {**self._describe(config, task), "dtype": str(params.dtype)}, tensors

    # ---------------------------------------------------------------- names

    def _stored(self, config: ModelConfig, task: TaskSpec | None) -> Names:
        """Where each parameter lies that such a model can have."""
        return _expanded(self, config, self.kind_of(config, task) if task else "")

    def _places(self, config: ModelConfig, task: TaskSpec | None) -> list[tuple[str, Stored, Shape]]:
        """(our name, where it lies, our shape) of every parameter of such a model."""
        stored = self._stored(config, task)
        return [(spec.name, stored[spec.name], spec.shape) for spec in parameter_specs(config, task)]

    def _prefix(self, config: ModelConfig, task: TaskSpec | None, ours: str) -> str:
        """What stands before the name of our parameter's tensor in the class that holds such a model."""
        of_encoder = ours in self.encoder or re.sub(r"_\d+$", "_{i}", ours) in self.encoder
        return self.prefix if of_encoder and self.kind_of(config, task) != "Model" else ""

    def _bare(self, tensors: Tensors, source: str) -> tuple[Tensors, dict[str, str]]:
        """The tensors without prefix and under their present names, and how the file spells each name."""
        bare, spelled = Tensors(), dict[str, str]()
        for name, tensor in tensors.items():
            short = name.removeprefix(self.prefix)
            for old, new in self.renamed.items():
                short = short.replace(old, new)
            if re.fullmatch(self.ignored, short):
                continue
            if short in bare:
                raise CheckpointError(f"{source} has {name} twice, under its old and its new name.")
            bare[short], spelled[short] = tensor, name
        return bare, spelled

    def _of_unknown_head(self, config: Mapping[str, Any], name: str, spelled: str) -> bool:
        """Does a tensor belong to a head that a class of another library has? Such heads are left aside."""
        known = not self._class(config) or self._class(config).startswith(self.family)
        parts = {stored.name.partition(".")[0] for stored in self.encoder.values()}
        return not known and not spelled.startswith(self.prefix) and name.partition(".")[0] not in parts

    def _drop_tied(self, tensors: Tensors, config: Mapping[str, Any], source: str) -> None:
        """Remove the copies of tied tensors; refuse a copy that differs from the original.

        With `tie_word_embeddings: false` the decoder is no copy, and its bias is that under the decoder's name.
        """
        apart = config.get("tie_word_embeddings", True) is False
        for copy, original in self.tied.items():
            if copy not in tensors or (apart and original == self.encoder["token_embeddings"].name):
                continue
            if apart or original not in tensors:
                tensors[original] = tensors[copy]
            elif not np.array_equal(tensors[copy], tensors[original]):
                raise CheckpointError(f"{source}: {copy} differs from {original}, but its config does not say that "
                                      "they are not tied (tie_word_embeddings).")
            del tensors[copy]

    # ---------------------------------------------------------------- heads of tasks

    def _read_task(self, kind: str, config: Mapping[str, Any], tensors: Tensors, source: str) -> TaskSpec | None:
        if kind in self.tasks:
            last = tensors.get(self.tasks[kind].tensors["task_W"].name)
            labels = labels_of(config, source)
            outputs = len(last) if last is not None and last.ndim == 2 else len(labels) or 2
            names = labels if len(labels) == outputs else tuple(f"LABEL_{i}" for i in range(outputs))
            with naming(str(Path(source) / CONFIG)):
                return TaskSpec(self.task_head(kind, config), outputs, names, loss_of(config, outputs))
        of_tasks = {stored.name for task in self.tasks.values() for name, stored in task.tensors.items()
                    if name.startswith("task_")} - {stored.name for stored in (*self.encoder.values(),
                                                                                *self.heads.values())}
        found = sorted(of_tasks & set(tensors))
        if found:
            choices = ", ".join(self.family + name for name in self.tasks)
            raise CheckpointError(f"{source} has a task head ({found[0]}), and its config names "
                                  f"{self._class(config)[:100] or 'no class'}; the classes that can be opened with one "
                                  f"are {choices}.")
        return None

@lru_cache(maxsize=16)
def _expanded(layout: HuggingFaceLayout, config: ModelConfig, kind: str) -> Names:
    """Where each parameter lies, layer by layer, in a class with the task's head of this kind."""
    names = {**layout.encoder, **layout.heads, **(layout.tasks[kind].tensors if kind else {})}
    found: Names = {}
    for ours, stored in names.items():
        if "{i}" not in ours:
            found[ours] = stored
            continue
        for layer in range(config.num_layers):
            found[ours.replace("{i}", str(layer))] = stored.numbered(layout.numbering(layer, config))
    return found
