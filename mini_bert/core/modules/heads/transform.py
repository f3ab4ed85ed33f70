"""What many heads do to their rows before they score them: t = act(h W + b), or LN(act(h W + b)).

BERT's MLM head has the model's activation and a norm, ELECTRA's discriminator no norm; of the classifiers RoBERTa's has
tanh, DistilBERT's ReLU, ELECTRA's GELU, ModernBERT's GELU and a norm.
"""

from typing import Any

from ...arrays import Array
from ...config import ModelConfig
from ...context import Context
from ...formulas import Steps, StepSpec
from ...module import Layout, Norm, Sizes
from ...ops import Activation
from ...params import Gradients, Parameters
from ...registry import Word, make
from ..linear import Linear


class Transform:
    """The matrix is `W`, its bias, unless `bias=False`, b in place of W, and the norm, if there is one, `norm`.

    Its values are called `shown`_hidden, `shown`_activation and `shown`_normed. The result is as wide as the model
    unless a `width` is given.
    """

    def __init__(self, config: ModelConfig, W: str, activation: str | Word, *, norm: str | None = None,
                 bias: bool = True, width: int = 0, component: str = "task_head", shown: str = "task",
                 title: str = "Task head", symbol: str = "W_T"):
        H = config.hidden_size
        self.width, self.shown, self.title = width or H, shown, title
        self.linear = Linear(W, W.replace("W", "b") if bias else None, H, self.width, config.init_std,
                             component=component, symbol=symbol)
        self.activation: Activation = make("activation", activation)
        self.ln: Norm | None = None if norm is None else make("norm", config.norm, config, norm, component=component,
                                                              **({} if self.width == H else {"size": self.width}))

    def layout(self) -> Layout:
        yield from self.linear.layout()
        if self.ln is not None:
            yield from self.ln.layout()

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (N, H) -> y (N, width)."""
        mapped, linear = self.linear.forward(params, hidden)
        mapped = ctx.hook(f"{self.shown}_hidden", mapped)
        y, activation = self.activation.apply(mapped, forward_only=ctx.forward_only)
        y, ln = ctx.hook(f"{self.shown}_activation", y), None
        if self.ln is not None:
            y, ln = self.ln.forward(params, y)
            y = ctx.hook(f"{self.shown}_normed", y)
        return y, (linear, activation, ln)

    def backward(self, dy: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dy (N, width) -> dhidden (N, H)."""
        linear, activation, ln = cache
        if self.ln is not None:
            dy = self.ln.backward(ctx.hook(f"{self.shown}_normed", dy), ln, grads)       # y = LN(act(mapped))
        dy = ctx.hook(f"{self.shown}_activation", dy)
        dmapped = ctx.hook(f"{self.shown}_hidden", self.activation.backward(dy, activation, dy))
        return self.linear.backward(dmapped, linear, grads)                              # mapped = hidden W + b

    def steps(self, h: str) -> Steps:
        yield self.linear.step(f"{self.shown}_hidden", f"{self.title}: transform", "v", h, "head",
                               why="A last layer of the head's own, which turns a vector about the text into one "
                                   "about the answer.")
        yield StepSpec(f"{self.shown}_activation", f"{self.title}: activation", "g", self.activation.formula,
                       (f"{self.shown}_hidden",), (), "head")
        if self.ln is not None:
            yield self.ln.step(f"{self.shown}_normed", f"{self.title}: norm", "k", f"{self.shown}_activation")

    def floats(self, sizes: Sizes) -> int:
        return sizes.rows * self.width * (2 + self.activation.extra + (self.ln is not None))
