"""Floating-point operations of the matrix products of a pass, counted while it runs.

A product (n, k) (k, m) is n k m multiplications and as many additions. The parameters are given to the model as arrays
that count every product they take part in, and so does whatever is computed from them. Nothing has to describe its
own cost, so the count holds for any variant. What is element-wise is left out, as it is for every published figure, and
so are products with a vector, by which some operations sum over rows.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..core.config import ModelConfig
from ..core.gradients import add_mlm_gradients
from ..core.model import MiniBERT
from ..core.params import Parameters
from ..objectives.objective import Batch, Objective, Part


class Flops(NamedTuple):
    """For one sequence."""

    forward: int              # all tokens, without the head for words
    step: int                 # forward, loss and backward with some masked tokens, as training computes them


def count_flops(config: ModelConfig, length: int | None = None, masked: float = 0.15) -> Flops:
    """The operations for a sequence of `length` tokens, of which a share is masked in the training step."""
    T = config.max_seq_length if length is None else length
    model = MiniBERT(config, seed=0)
    ids = np.arange(T)[None] % config.vocab_size
    with counted([model.params]) as total:
        model.encode(ids, forward_only=True)
        forward, total[0] = total[0], 0
        if not model.modules.predicts_words:
            return Flops(forward, 0)
        chosen = np.zeros((1, T), bool)
        chosen[0, np.linspace(0, T - 1, max(1, round(masked * T))).astype(int)] = True
        add_mlm_gradients(model, model.params.zeros_like(), ids, ids, chosen)
        return Flops(forward, total[0])


def step_flops(objective: Objective[Batch, Part], batch: Batch) -> int:
    """The operations of forward, losses and backward of one step of any objective, with all models that it has."""
    parts = objective.micro_batches(batch)
    factors = dict.fromkeys(objective.losses, 1.0)
    grads = objective.params.zeros_like()
    with counted(list(_parameters_in(objective, set()))) as total, np.errstate(over="ignore", invalid="ignore"):
        for part in parts:
            objective.add_gradients(part, grads, None, factors)
        return total[0]


@contextmanager
def counted(several: list[Parameters]) -> Iterator[list[int]]:
    """Inside, the products that these parameters take part in are counted: the list's one number."""
    total = [0]
    counting = _counting(total)
    with ExitStack() as stack:
        for params in several:
            stack.enter_context(params.viewed_as(counting))
        yield total


def _parameters_in(thing: Any, seen: set[int]) -> Iterator[Parameters]:
    """All Parameters that an object has, at any depth: of its models, its teacher, or several that are joined."""
    if id(thing) in seen or isinstance(thing, str | bytes | np.ndarray | type):
        return
    seen.add(id(thing))
    if isinstance(thing, Parameters):
        yield thing
    inside = list(thing.values()) if isinstance(thing, Mapping) and not isinstance(thing, Parameters) else \
        list(thing) if isinstance(thing, list | tuple) else list(getattr(thing, "__dict__", {}).values())
    for item in inside:
        yield from _parameters_in(item, seen)


def _counting(total: list[int]) -> type[np.ndarray[Any, Any]]:
    class Counting(np.ndarray[Any, Any]):
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Any, ...] | None = None,
                            **options: Any) -> Any:
            if out is not None:
                options["out"] = tuple(_plain(array) for array in out)
            result = getattr(ufunc, method)(*(_plain(array) for array in inputs), **options)
            if ufunc is np.matmul and np.ndim(inputs[0]) > 1 and np.ndim(inputs[1]) > 1:
                total[0] += 2 * prod(np.shape(result)) * np.shape(inputs[0])[-1]
            if out is not None:
                return out[0] if len(out) == 1 else out
            return result.view(Counting) if isinstance(result, np.ndarray) else result

    return Counting


def _plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, np.ndarray) else array
