"""The protocol of clipping, and from a config's word to what it names."""

from collections.abc import Sequence
from typing import Protocol

from ...core.params import Parameters
from ...core.registry import check_options, make_with, parse_word, takes
from ...errors import ConfigError
from ...parallel.processes import Processes
from ...workers import Workers

USUAL_NORM = 1.0              # max_grad_norm, where a config does not set it


class Clipping(Protocol):
    """Limits the gradients of a step. A word in the slot `clipping` names a class that is made from (params).

    Several processes each clip their own shard of the gradients. `together` are the runs of the flat buffer that a
    shard must have as a whole; in the others, each number is clipped by itself.
    """

    together: Sequence[slice]

    def __call__(self, gradients: Parameters, norm: float, count: int, workers: Workers) -> float:
        """The factor with which the optimiser takes the gradients.

        The gradients are `count` times those of the mean loss, whose norm over all that learns is `norm`. They may be
        changed in place.
        """


def clipping_from(text: str, params: Parameters, max_grad_norm: float) -> Clipping:
    """What `norm` or `adaptive(limit=0.02)` names."""
    if "max_grad_norm" not in takes("clipping", text) and max_grad_norm not in (0, USUAL_NORM):
        raise ConfigError(f"max_grad_norm is set, but clipping is {text}, which takes none.")
    made: Clipping = make_with("clipping", text, (params,), {"max_grad_norm": max_grad_norm})
    return made


def runs_together(clipping: Clipping, processes: Processes) -> Sequence[slice]:
    """Its `together`, which a clipping need not have unless several processes share it."""
    if processes.size > 1 and not hasattr(clipping, "together"):
        raise ConfigError(f"The clipping {type(clipping).__name__} does not say what it needs together, so several "
                          "processes cannot share it.")
    return getattr(clipping, "together", ())


def check_clipping(text: str) -> None:
    """Refuse a word, or an option of it, that names nothing."""
    check_options("clipping", parse_word(text, "clipping"))
