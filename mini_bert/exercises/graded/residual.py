"""Exercise: the backward of a feed-forward network with a residual connection."""

from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ...core.ops.layernorm import layernorm_backward
from ...core.ops.linear import linear_backward
from ...core.ops.relu import relu_backward
from ..compared import BackwardExercise
from ..exercise import Clues, Pieces, Wrong
from ..solutions.residual import residual_forward

_BRANCH = "dx dW1 db1 dW2 db2"


def _pieces(p: Pieces) -> dict[str, Any]:
    _, (expand, relu, contract, ln) = residual_forward(*p.inputs)
    dsum, *_ = layernorm_backward(p.dy, ln)
    return {"expand": expand, "relu": relu, "contract": contract, "dsum": dsum, "through": p.dx - dsum}


def _branch(p: Pieces, dsum: Array, around: Array | float = 0.0, relu: bool = True) -> tuple[Any, ...]:
    """The gradients of the branch for a given dsum, and `around` for the residual path."""
    dhidden, dW2, db2 = linear_backward(dsum, p.contract)
    if relu:
        dhidden = relu_backward(dhidden, p.relu)
    dx, dW1, db1 = linear_backward(dhidden, p.expand)
    return dx + around, dW1, db1, dW2, db2


def _inputs(rng: np.random.Generator, N: int, H: int, I: int) -> list[Array]:
    """Inputs that keep ReLU's input away from its kink, where finite differences mix two slopes."""
    while True:
        inputs: list[Array] = [rng.standard_normal(shape) for shape in ((N, H), (H, I), (I,), (I, H), (H,), (H,), (H,))]
        if np.abs(inputs[0] @ inputs[1] + inputs[2]).min() > 1e-2:
            return inputs


EXERCISE = BackwardExercise(
    "residual", "a feed-forward network with a residual connection", 3, "math/model.md",
    hints=("Read the forward from its last line to its first, and write the backward of each line in that order.",
           "x + f has the slope 1 in both terms: the LayerNorm's dx, call it dsum, is the gradient of f and also of x "
           "through the residual path.",
           "dsum through W2, the rectifier and W1 is one part of dx; dsum itself is the other. Where a value is used "
           "twice, its gradients add up."),
    checks=[Check("rows", lambda rng: _inputs(rng, 3, 4, 6)),
            Check("another shape", lambda rng: _inputs(rng, 2, 3, 5))],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"the number of rows N": len(p.x)},
        wrong=[
            Wrong("dx", "The residual path around the network is missing: x is added to f, so dsum is part of dx.",
                  lambda p: p.through),
            Wrong("dx", "The path through the network is missing: x is its input, so the gradient through W1 is part "
                        "of dx.", lambda p: p.dsum),
            Wrong("dx", "dy is used for the residual path; the LayerNorm is between dy and the sum.",
                  lambda p: p.through + p.dy),
            Wrong("dx", "The two paths are averaged; their gradients add up.", lambda p: p.dx / 2),
            Wrong("dx", "The residual path is counted twice.", lambda p: p.dx + p.dsum),
            Wrong(_BRANCH, "The LayerNorm's backward is missing: dy is used for the network and the residual path.",
                  lambda p: _branch(p, p.dy, p.dy)),
            Wrong("dx dW1 db1", "The rectifier's backward is missing.",
                  lambda p: _branch(p, p.dsum, p.dsum, relu=False)[:3]),
            Wrong(_BRANCH, "Half of dsum goes to each term; a sum passes all of it to both of its terms.",
                  lambda p: _branch(p, p.dsum / 2, p.dsum / 2)),
        ]))
