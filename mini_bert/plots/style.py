"""One look for all figures: colours that the colour-blind tell apart, and that stay apart in grey.

Lines differ in colour and in dashes; amounts are shown in cividis, which grows steadily in lightness, and amounts with
a sign from orange over white to violet. A figure is matplotlib's own, made without pyplot: nothing global is changed,
and a notebook shows it where it is the last value of a cell.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from os import PathLike, fsync
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import numpy.typing as npt

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:                  # an extra; the package works without it
    raise ModuleNotFoundError("Figures need matplotlib: pip install 'mini-bert[viz]'.", name=error.name) from None

Array = npt.NDArray[Any]
P = ParamSpec("P")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")       # Okabe and Ito
DASHES = ("-", (0, (6, 2)), (0, (2, 2)), (0, (6, 2, 2, 2)), (0, (4, 4)), (0, (1, 3)), (0, (10, 3)))
AMOUNTS, SIGNED = "cividis", "PuOr"
FORMATS = ("png", "svg", "pdf")
_RULES: dict[Any, Any] = {
    "font.size": 9.0, "axes.titlesize": 10.0, "axes.titlelocation": "left", "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "svg.hashsalt": "mini-bert", "svg.fonttype": "none", "figure.dpi": 110.0,
    "savefig.dpi": 160.0, "figure.facecolor": "white", "savefig.facecolor": "white"}


class Picture(Figure):
    """A figure that can be saved, and that a notebook shows."""

    def _repr_png_(self) -> bytes:
        return self.data("png")

    def data(self, kind: str) -> bytes:
        """The file, as bytes; the same figure gives the same bytes."""
        into = BytesIO()
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        with style():
            super().savefig(into, format=kind, bbox_inches="tight", metadata=stamp)
        return into.getvalue()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a .png, .svg or .pdf; the file is whole before it has its name."""
        target = Path(path)
        kind = target.suffix.lower().lstrip(".")
        if kind not in FORMATS:
            raise ValueError(f"A figure is written as .{', .'.join(FORMATS)}, not as {target.name!r}.")
        if not target.parent.is_dir():
            raise ValueError(f"There is no directory {target.parent} to write {target.name} to.")
        partial = target.with_name(f".{target.name}.partial")
        try:
            with partial.open("wb") as file:
                file.write(self.data(kind))
                file.flush()
                fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return target


@contextmanager
def style() -> Iterator[None]:
    with mpl.rc_context(_RULES):
        yield


def styled(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """A function that makes a figure makes it under the rules above."""
    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Picture:
        with style():
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float = 6.4, height: float = 3.8) -> Picture:
    """An empty figure; sizes are inches."""
    return Picture(figsize=(width, height), layout="constrained")


def single_axes(width: float = 6.4, height: float = 3.8) -> tuple[Picture, Axes]:
    """A figure with one pair of axes."""
    made = new_figure(width, height)
    return made, made.add_subplot()


def draw_line(axes: Axes, x: Any, y: Any, number: int, label: str | None = None, **style: Any) -> None:
    """The line of this number: a colour and dashes of its own."""
    k = number % len(COLOURS)
    axes.plot(x, y, color=COLOURS[k], linestyle=DASHES[k], linewidth=1.6, label=label, **style)


def draw_matrix(axes: Axes, values: Array, *, signed: bool = False, low: float | None = None,
         high: float | None = None) -> Any:
    """A matrix as coloured cells, without grid lines."""
    if signed:
        high = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
        low = -high
    axes.grid(visible=False)
    return axes.imshow(values, cmap=SIGNED if signed else AMOUNTS, vmin=low, vmax=high, aspect="auto",
                       interpolation="nearest")


def label_cells(axes: Axes, columns: Any = None, rows: Any = None, *, size: float = 8.0) -> None:
    """Names along a matrix; the columns' are turned where they are long or many."""
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        if names is not None:
            axis.set_ticks(range(len(names)), labels=list(map(str, names)), fontsize=size)
    if columns is not None and (len(columns) > 8 or max(map(len, map(str, columns)), default=0) > 4):
        axes.tick_params(axis="x", rotation=90)
