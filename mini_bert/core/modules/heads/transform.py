"""What a task's head may do to its rows before it scores them: t = act(h W + b), or LN(act(h W + b)).

RoBERTa's classifier has tanh, DistilBERT's ReLU, ELECTRA's GELU, ModernBERT's GELU and a norm.
"""

from typing import Any

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec
from ...module import Layout, Norm, Sizes
from ...ops import Activation
from ...params import Gradients, Parameters
from ...registry import make
from ..linear import Linear


class Transform:
    def __init__(self, config: ModelConfig, activation: str, norm: bool, bias: bool):
        H = config.hidden_size
        self.linear = Linear("task_transform_W", "task_transform_b" if bias else None, H, H, config.init_std,
                             component="task_head", symbol="W_T")
        self.activation: Activation = make("activation", activation)
        self.ln: Norm | None = make("norm", config.norm, config, "task_ln", component="task_head") if norm else None

    def layout(self) -> Layout:
        yield from self.linear.layout()
        if self.ln is not None:
            yield from self.ln.layout()

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (N, H) -> y (N, H)."""
        mapped, linear = self.linear.forward(params, hidden)
        mapped = ctx.hook("task_hidden", mapped)
        y, activation = self.activation.forward(mapped, mapped)
        y, ln = ctx.hook("task_activation", y), None
        if self.ln is not None:
            y, ln = self.ln.forward(params, y)
            y = ctx.hook("task_normed", y)
        return y, (linear, activation, ln)

    def backward(self, dy: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dy (N, H) -> dhidden (N, H)."""
        linear, activation, ln = cache
        if self.ln is not None:
            dy = self.ln.backward(ctx.hook("task_normed", dy), ln, grads)        # y = LN(act(mapped))
        dy = ctx.hook("task_activation", dy)
        dmapped = ctx.hook("task_hidden", self.activation.backward(dy, activation, dy))
        return self.linear.backward(dmapped, linear, grads)                      # mapped = hidden W + b

    def steps(self, h: str) -> Steps:
        yield self.linear.step("task_hidden", "Task head: transform", "v", h, "head")
        yield StepSpec("task_activation", "Task head: activation", "g", self.activation.formula, ("task_hidden",), (),
                       "head")
        if self.ln is not None:
            yield self.ln.step("task_normed", "Task head: norm", "k", "task_activation")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.linear.shape[0] * (2 + self.activation.extra + (self.ln is not None))
