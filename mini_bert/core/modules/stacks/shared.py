"""ALBERT's stack: few layers, each applied many times. A layer's gradients are the sums over its applications.

With the defaults one layer is applied L times. With `groups=G`, the L calls are parted into G runs, each with layers of
its own; with `inner=K`, a call runs K layers in turn, so that `num_layers` is K times the number of calls.
"""

from ....errors import ConfigError
from ...config import ModelConfig
from ...module import Module
from ...registry import make, register
from .plain import PlainStack


@register("stack", "shared")
class SharedStack(PlainStack):
    def __init__(self, config: ModelConfig, groups: int = 1, inner: int = 1):
        for name, value in (("groups", groups), ("inner", inner)):
            if type(value) is not int or not 1 <= value <= config.num_layers:
                raise ConfigError(f"shared: {name} must be a whole number from 1 to num_layers, not {value}.")
        if config.num_layers % inner or groups > config.num_layers // inner:
            raise ConfigError(f"shared: {config.num_layers} layers cannot be run by {groups} groups of {inner}.")
        self.groups, self.inner = groups, inner
        super().__init__(config)

    def _blocks(self, config: ModelConfig) -> list[Module]:
        blocks = [make("block", config.block, config, number) for number in range(self.groups * self.inner)]
        calls = config.num_layers // self.inner
        group_of = [int(call / (calls / self.groups)) for call in range(calls)]      # as ALBERT rounds it
        return [blocks[group * self.inner + k] for group in group_of for k in range(self.inner)]
