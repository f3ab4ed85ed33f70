"""An architecture's config.json: what its keys are called, which class saved it, and what a task's head is.

    `fields`        our field: their key and its default
    `fixed`         ours that are always so
    `switches`      words of our config that follow from whether a tensor is there
    `tasks`         classes with a task's head, by the end of their names
    `ours`, `theirs`    what no table can say
"""

import json
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, ClassVar

from ...core.config import ModelConfig
from ...core.modules.assembly import TaskSpec, parameter_specs
from ...core.registry import parse_word
from ...errors import ConfigError
from .tables import POST_LN, SIZES, Switch, TaskClass, activation_word, our_activation, problem_of, untied


class Descriptions:
    """From a config of transformers to ours, and back. The class attributes are an architecture's tables."""

    model_type: ClassVar[str]
    family: ClassVar[str]                                         # what the names of its classes begin with
    fields: ClassVar[Mapping[str, tuple[str, Any]]] = SIZES
    fixed: ClassVar[Mapping[str, Any]] = POST_LN
    activation: ClassVar[tuple[str, str]] = ("hidden_act", "gelu")
    required: ClassVar[Mapping[str, Any]] = {}                    # their keys that we know with this value alone
    constants: ClassVar[Mapping[str, Any]] = {}                   # their keys that are always written so
    defaults: ClassVar[Mapping[str, Any]] = {}                    # and those of models that are not from their files
    switches: ClassVar[Mapping[str, Switch]] = {}
    tasks: ClassVar[Mapping[str, TaskClass]] = {}                 # by the end of the class's name
    language_model: ClassVar[str] = "ForMaskedLM"

    # ---------------------------------------------------------------- for an architecture to override

    def ours(self, config: Mapping[str, Any], names: Set[str]) -> dict[str, Any]:
        """Fields of our config that no table gives, from theirs and from the names of the tensors."""
        return {}

    def theirs(self, config: ModelConfig) -> dict[str, Any]:
        """Keys of their config that no table gives."""
        return {}

    def task_head(self, kind: str, config: Mapping[str, Any]) -> str:
        """Our word for the task's head of this class."""
        return self.tasks[kind].head

    def task_keys(self, config: ModelConfig, task: TaskSpec) -> dict[str, Any]:
        """Keys of their config that describe the task's head, apart from its labels."""
        return {}

    def kind_of(self, config: ModelConfig, task: TaskSpec | None) -> str:
        """The end of the class's name that holds such a model."""
        if task is not None:
            keys = self.task_keys(config, task)
            found = next((kind for kind in self.tasks if self._heads_agree(kind, keys, task)), None)
            if found is None:
                raise ConfigError(f"{self.model_type} has no class with a task head {task.head}.")
            return found
        if config.sentence_head != "none":
            return "ForNextSentencePrediction" if config.mlm_head == "none" else "ForPreTraining"
        return "Model" if config.mlm_head == "none" else self.language_model

    # ---------------------------------------------------------------- for an architecture to use

    def kind_in(self, config: Mapping[str, Any]) -> str:
        """The end of the name of the class that saved the file; "" if the config does not say."""
        return self._class(config).removeprefix(self.family)

    @staticmethod
    def _class(config: Mapping[str, Any]) -> str:
        classes = config.get("architectures")
        return classes[0] if isinstance(classes, list) and classes and isinstance(classes[0], str) else ""

    def whole_number(self, config: Mapping[str, Any], key: str, default: int, *, least: int = 0) -> int:
        """A number of their config, or its default."""
        value = config.get(key, default)
        if type(value) is not int or value < least:
            raise ConfigError(f"{self.model_type}: {key} must be a whole number of at least {least}, not "
                              f"{str(value)[:100]!r}.")
        return value

    # ---------------------------------------------------------------- both ways

    def _read_config(self, config: Mapping[str, Any], names: Set[str], source: str) -> ModelConfig:
        for key, value in self.required.items():
            if config.get(key, value) != value:
                raise ConfigError(f"{source}: {key} is {json.dumps(config[key])[:100]}; only {json.dumps(value)} is "
                                  "supported.")
        with naming(source):
            special = {"activation": our_activation(config, *self.activation), **self.ours(config, names)}
        ours = {**self.fixed, **{ours: config.get(theirs, default) for ours, (theirs, default) in self.fields.items()},
                **{ours: switch.present if switch.tensor in names else switch.absent
                   for ours, switch in self.switches.items()}, **special}
        if config.get("tie_word_embeddings", True) is False:
            ours["mlm_head"] = untied(ours["mlm_head"])
        return ModelConfig.from_dict(ours, source)

    def _describe(self, config: ModelConfig, task: TaskSpec | None) -> dict[str, Any]:
        """Their config."""
        if "token_types" in self.fields and not config.token_types:
            raise ConfigError(f"{self.model_type} always has token types.")
        described = {"model_type": self.model_type, "architectures": [self.family + self.kind_of(config, task)],
                     self.activation[0]: activation_word(config.activation),
                     "tie_word_embeddings": not has_own_decoder(config), **self.required, **self.constants,
                     **{theirs: getattr(config, ours) for ours, (theirs, _) in self.fields.items()},
                     **self.theirs(config)}
        if task is not None:
            labels = task.labels or tuple(f"LABEL_{i}" for i in range(task.outputs))
            described |= {**self.task_keys(config, task), **problem_of(task.loss), "id2label": dict(enumerate(labels)),
                          "label2id": {label: number for number, label in enumerate(labels)}}
        return described

    def _heads_agree(self, kind: str, described: Mapping[str, Any], task: TaskSpec) -> bool:
        return parse_word(self.task_head(kind, described)) == parse_word(task.head)


@contextmanager
def naming(source: str) -> Iterator[None]:
    """What is refused in this block is refused of `source`."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None


def has_own_decoder(config: ModelConfig) -> bool:
    """Has the decoder of the MLM head a matrix of its own?"""
    return any(spec.name == "mlm_head_W" for spec in parameter_specs(config))
