"""How one of our parameters lies in a Hugging Face file: under which name, transposed, or packed with others.

    ours (in, out)   theirs (out, in)      a Linear's weight                             linear("W_Q", "…query")
    ours (in, out)   theirs (in, out)      a Conv1D's weight, as in GPT-2                conv("W1", "…c_fc")
    ours Q, K, V     theirs Q | K | V      several of ours in one tensor, in order       packed("W_Q W_K W_V", "…Wqkv")

A name with {i} stands for those of all layers, and ours then ends in the layer's number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...core.arrays import Array
from ...core.config import ModelConfig

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Stored:
    """A tensor of theirs. With `parts`, it holds that many of ours of one shape, and this is number `part`."""

    name: str
    transposed: bool = False
    part: int = 0
    parts: int = 1

    def shape(self, ours: Shape, config: ModelConfig) -> Shape:
        """The shape of the whole tensor, from that of our parameter."""
        whole = (*ours[:-1], ours[-1] * self.parts)           # outputs are our last axis
        return whole[::-1] if self.transposed else whole

    def unpack(self, tensor: Array, config: ModelConfig) -> Array:
        """Our parameter, from their tensor."""
        whole = tensor.T if self.transposed else tensor
        return whole if self.parts == 1 else np.split(whole, self.parts, axis=-1)[self.part]

    def pack(self, ours: Sequence[Array], config: ModelConfig) -> Array:
        """Their tensor, from all of our parameters that it holds, in order."""
        whole = ours[0] if self.parts == 1 else np.concatenate(ours, axis=-1)
        return whole.T if self.transposed else whole

    def numbered(self, numbers: Mapping[str, int]) -> "Stored":
        """With the layer's number in place of {i}, and so on."""
        return replace(self, name=self.name.format_map(numbers))


Names = dict[str, Stored]         # our name, with {i} where theirs has it: where it lies


def table(ours: str, theirs: str) -> Names:
    """A table of embeddings: the same rows in both."""
    return {_layered(ours, theirs): Stored(f"{theirs}.weight")}


def array(ours: str, theirs: str) -> Names:
    """An array that has the same shape in both, under its full name."""
    return {_layered(ours, theirs): Stored(theirs)}


def linear(ours: str, theirs: str, *, bias: bool = True) -> Names:
    """A linear map, theirs as (out, in). Its bias is ours with b in place of W."""
    return _map(ours, theirs, True, bias)


def conv(ours: str, theirs: str, *, bias: bool = True) -> Names:
    """A linear map that is stored as we store it, (in, out)."""
    return _map(ours, theirs, False, bias)


def packed(ours: str, theirs: str, *, transposed: bool = True, bias: bool = True) -> Names:
    """Several linear maps of one width in one: `ours` names them in their order, as "W_Q W_K W_V"."""
    names = ours.split()
    found: Names = {}
    for part, name in enumerate(names):
        for key, stored in _map(name, theirs, transposed, bias).items():
            found[key] = replace(stored, part=part, parts=len(names))
    return found


def norm(ours: str, theirs: str, *, bias: bool = True) -> Names:
    """A LayerNorm: our gamma and beta are its weight and bias."""
    names = {_layered(f"{ours}_gamma", theirs): Stored(f"{theirs}.weight")}
    return {**names, _layered(f"{ours}_beta", theirs): Stored(f"{theirs}.bias")} if bias else names


def _map(ours: str, theirs: str, transposed: bool, bias: bool) -> Names:
    names = {_layered(ours, theirs): Stored(f"{theirs}.weight", transposed)}
    b = ours.replace("W", "b", 1)
    return {**names, _layered(b, theirs): Stored(f"{theirs}.bias")} if bias else names


def _layered(ours: str, theirs: str) -> str:
    return ours + "_{i}" if "{i}" in theirs else ours
