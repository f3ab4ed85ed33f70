"""The protocols of a model's parts: all the interfaces that a variant has to know.

A part holds names and sizes, never arrays: `forward(params, x, ctx)` reads the values from the Parameters that it is
given and returns its cache; `backward(dy, cache, grads, ctx)` adds to the gradients under the same names. One part
therefore serves any parameters (averaged, perturbed, of another precision), and a part that is applied twice gets the
sum of both gradients.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from .arrays import Array, BoolArray
from .context import Context
from .formulas import Steps, StepSpec
from .params import Gradients, Parameters, ParamSpec, Tie

Layout = Iterator[ParamSpec | Tie]
BiasGradients = tuple[Array | None, Array | None]


class Sizes(NamedTuple):
    """Of one pass: tokens in the batch, rows of them that are computed to the end, and tokens per sequence."""

    tokens: int
    rows: int
    length: int


class Module(Protocol):
    """A part of a model."""

    def layout(self) -> Layout:
        """Its parameters, in the order of the data."""

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, Any]:
        """The result, and the cache that the backward needs."""

    def backward(self, dy: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """The gradient of x; those of the parameters are added to `grads`."""

    def steps(self, x: str) -> Steps:
        """What it computes from the value named x, for the explorer; the last step is its result."""

    def floats(self, sizes: Sizes) -> int:
        """How many numbers its cache keeps beyond its input, for the forecast of memory."""


class Norm(Protocol):
    """A normalisation of rows (N, H): a smaller Module, without a context."""

    def layout(self) -> Layout: ...
    def forward(self, params: Parameters, x: Array) -> tuple[Array, Any]: ...
    def backward(self, dy: Array, cache: Any, grads: Gradients) -> Array: ...
    def step(self, name: str, title: str, symbol: str, x: str) -> StepSpec: ...
    def floats(self, sizes: Sizes) -> int: ...


class ScoreTerm(Protocol):
    """Something that acts on attention's queries and keys, or adds to its scores. Attention holds a list of them.

    Q is (B, A, m, d_k) and K (B, A, T, d_k); `ctx.query_positions()` and `ctx.key_positions()` say where they are in
    their text. `core/modules/attention/scores` has a base class whose methods do nothing.
    """

    def layout(self) -> Layout: ...

    def rotate(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array, Array, Any]:
        """Q and K as they enter the product, and a cache."""

    def rotate_backward(self, dQ: Array, dK: Array, cache: Any, grads: Gradients, ctx: Context) -> tuple[Array, Array]:
        """The gradients of the Q and K that `rotate` was given."""

    def bias(self, params: Parameters, Q: Array, K: Array, ctx: Context) -> tuple[Array | None, Any]:
        """What is added to Q K^T / sqrt(d_k), broadcast to (B, A, m, T), or None; and a cache."""

    def bias_backward(self, dscores: Array, cache: Any, grads: Gradients, ctx: Context) -> BiasGradients:
        """From d loss / d scores (B, A, m, T): what the bias sends back to Q and K, or None."""

    @property
    def hides_future(self) -> bool:
        """May no query see a later key?"""

    @property
    def hides_future_if_asked(self) -> bool:
        """Or in the sequences of a pass that ask for it? (Context.causal)"""

    def allowed(self, ctx: Context) -> BoolArray | None:
        """The keys that a query may see (1 or B, m, T), or None for all."""

    def steps(self, Q: str, K: str) -> tuple[Steps, str, str, str | None]:
        """Its steps, the names of Q and K behind it, and the name of its bias, if it adds one."""

    def floats(self, sizes: Sizes) -> int: ...


class Positions(Protocol):
    """Tells the first layer where a token is. `x` is (B, T, H) and is changed in place."""

    def layout(self) -> Layout: ...
    def forward(self, params: Parameters, x: Array, ctx: Context) -> None: ...
    def backward(self, dx: Array, grads: Gradients, ctx: Context) -> None: ...
    def steps(self) -> Steps: ...


class Stack(Protocol):
    """How the layers of a model are run: from the embeddings (B*T, H) to the selected rows (M, H)."""

    layers: Sequence[Any]                 # the block that runs at each depth
    below: int                            # how many of them compute all tokens; those above, the selected ones alone
    orders: bool                          # can a pass be told in which order tokens are predicted? (Context.order)
    remembers: bool                       # does a pass leave what a memory is made from? (core/memory.py)

    def layout(self) -> Layout: ...

    def forward(self, params: Parameters, x: Array, ctx: Context) -> tuple[Array, list[dict[str, Any]]]:
        """The result, and a cache for each depth."""

    def backward(self, dy: Array, caches: list[dict[str, Any]], grads: Gradients, ctx: Context, *,
                 forget: bool = False) -> Array:
        """The gradient of x. With `forget`, each depth's cache is dropped as soon as it is not needed any more."""

    def steps(self, x: str) -> Steps: ...
    def floats(self, sizes: Sizes) -> int: ...


class Head(Protocol):
    """What stands on the encoder: MLM heads, poolers and the heads of tasks.

    A head says which tokens it reads; the encoder computes no others to the end.
    """

    def layout(self) -> Layout: ...

    def reads(self, mask: BoolArray, places: BoolArray | None) -> BoolArray:
        """The tokens (B, T) whose rows it takes: of the real ones in `mask`, or those in `places`."""

    def forward(self, params: Parameters, hidden: Array, ctx: Context) -> tuple[Array, Any]:
        """hidden (M, H), a row for each token that `ctx.select` has -> outputs (N, C)."""

    def backward(self, dy: Array, cache: Any, grads: Gradients, ctx: Context) -> Array:
        """dy (N, C) -> dhidden (M, H)."""

    def steps(self, h: str) -> Steps: ...
    def floats(self, sizes: Sizes) -> int: ...


def names_of(modules: Iterable[Any]) -> set[str]:
    """The parameters that these modules use, ties under the name of what they are tied to."""
    return {item.target if isinstance(item, Tie) else item.name for module in modules for item in module.layout()}

