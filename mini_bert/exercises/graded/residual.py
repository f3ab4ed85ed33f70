"""Exercise: the backward of a feed-forward network on a residual path."""

from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.gradcheck import Check
from ...core.ops.layernorm import layernorm_backward
from ...core.ops.linear import linear_backward
from ...core.ops.relu import relu_backward
from ..compared import Backward
from ..exercise import Clues, Pieces, Wrong
from ..solutions.residual import residual_forward

_BRANCH = "dx dW1 db1 dW2 db2"


def _pieces(p: Pieces) -> dict[str, Any]:
    _, (expand, relu, contract, ln) = residual_forward(*p.inputs)
    dsum, *_ = layernorm_backward(p.dy, ln)
    return {"expand": expand, "relu": relu, "contract": contract, "dsum": dsum, "through": p.dx - dsum}


def _branch(p: Pieces, dsum: Array, around: Array | float = 0.0, relu: bool = True) -> tuple[Any, ...]:
    """The gradients of the branch if dsum were what enters it, and `around` what goes past it."""
    dhidden, dW2, db2 = linear_backward(dsum, p.contract)
    if relu:
        dhidden = relu_backward(dhidden, p.relu)
    dx, dW1, db1 = linear_backward(dhidden, p.expand)
    return dx + around, dW1, db1, dW2, db2


def _inputs(rng: np.random.Generator, N: int, H: int, I: int) -> list[Array]:
    """Drawn again if the rectifier's input comes near its kink, where a difference would straddle two slopes."""
    while True:
        inputs: list[Array] = [rng.standard_normal(shape) for shape in ((N, H), (H, I), (I,), (I, H), (H,), (H,), (H,))]
        if np.abs(inputs[0] @ inputs[1] + inputs[2]).min() > 1e-2:
            return inputs


EXERCISE = Backward(
    "residual", "a feed-forward network on a residual path", 3, "math/model.md",
    hints=("Read the forward from its last line to its first, and write the backward of each line in that order.",
           "x + f has the slope one in both terms: the LayerNorm's dx, call it dsum, is the gradient of f and also of "
           "x on its way around the network.",
           "dsum goes through W2, the rectifier and W1, and comes out as one part of dx; dsum itself is the other. "
           "Where a value is used twice its gradients add."),
    checks=[Check("rows", lambda rng: _inputs(rng, 3, 4, 6)),
            Check("another shape", lambda rng: _inputs(rng, 2, 3, 5))],
    pieces=_pieces,
    clues=Clues(
        sizes=lambda p: {"the number of rows N": len(p.x)},
        wrong=[
            Wrong("dx", "The way around the network is lost: x is also added to f directly, so dsum is part of dx.",
                  lambda p: p.through),
            Wrong("dx", "The way through the network is lost: x is its input, so what comes back through W1 is part "
                        "of dx.", lambda p: p.dsum),
            Wrong("dx", "dy is added for the way around; between it and the sum there is the LayerNorm.",
                  lambda p: p.through + p.dy),
            Wrong("dx", "The two ways are averaged; gradients of the two ways add up.", lambda p: p.dx / 2),
            Wrong("dx", "The way around is counted twice.", lambda p: p.dx + p.dsum),
            Wrong(_BRANCH, "The LayerNorm is left out: dy enters the network and the way around it unchanged.",
                  lambda p: _branch(p, p.dy, p.dy)),
            Wrong("dx dW1 db1", "The rectifier is left out on the way back.",
                  lambda p: _branch(p, p.dsum, p.dsum, relu=False)[:3]),
            Wrong(_BRANCH, "Half of dsum goes each way; a sum sends the whole of it to both of its terms.",
                  lambda p: _branch(p, p.dsum / 2, p.dsum / 2)),
        ]))
