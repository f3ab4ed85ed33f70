"""The table from the parts of a model to what writes them as nodes of ONNX.

    @emits(RMSNorm)
    def rmsnorm(norm, graph, x): ...

A part is looked up by its class; a file that registers a word of a config may register the class's emitter beside it.
A class that has none is refused by name, its subclasses too: what they compute may differ.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from ...errors import ConfigError

Emitter = TypeVar("Emitter", bound=Callable[..., Any])
_EMITTERS: dict[type, Callable[..., Any]] = {}


def emits(*kinds: type) -> Callable[[Emitter], Emitter]:
    """The decorated function(part, graph, ...) writes parts of these classes."""
    def enter(emitter: Emitter) -> Emitter:
        for kind in kinds:
            _EMITTERS[kind] = emitter
        return emitter

    return enter


def emit(part: Any, *given: Any) -> Any:
    """What the emitter of this part makes of the graph and the values that are given."""
    emitter = _EMITTERS.get(type(part))
    if emitter is None:
        kind = type(part).__name__
        raise ConfigError(f"{kind} has no form in ONNX yet, so this model cannot be written as ONNX; a file gives it "
                          f"one with mini_bert.interop.onnx.emits({kind}).")
    return emitter(part, *given)
