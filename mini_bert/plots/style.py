"""The style of all figures, and the few things they are drawn with.

Lines take their colours and dashes from `palette`. Matrices use the colour map cividis, whose lightness increases
steadily; signed ones run from orange through white to violet. Figures are made without pyplot, so the settings of
matplotlib stay as they are; a notebook shows a figure that is the last value of a cell.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import numpy.typing as npt

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:                  # matplotlib is an extra
    raise ModuleNotFoundError("Figures need matplotlib: pip install 'mini-bert[viz]'.", name=error.name) from None

from ..files import write_files
from ..palette import COLOURS, DASHES

Array = npt.NDArray[Any]
P = ParamSpec("P")
_CHARACTER = 0.6              # width of a character in the size of its font, about
UNSIGNED, SIGNED = "cividis", "PuOr"         # colour maps
FORMATS = ("png", "svg", "pdf")
_RULES: dict[Any, Any] = {
    "font.size": 9.0, "axes.titlesize": 10.0, "axes.titlelocation": "left", "axes.grid": True, "axes.axisbelow": True,
    "grid.color": "#dddddd", "grid.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False,
    "legend.frameon": False, "svg.hashsalt": "mini-bert", "svg.fonttype": "none", "figure.dpi": 110.0,
    "savefig.dpi": 160.0, "figure.facecolor": "white", "savefig.facecolor": "white"}


class Picture(Figure):
    """A matplotlib figure that notebooks show, and that is saved in one piece."""

    def _repr_png_(self) -> bytes:
        return self.data("png")

    def data(self, kind: str) -> bytes:
        """The content of a file of this format; equal figures give equal bytes."""
        into = BytesIO()
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        with style():
            super().savefig(into, format=kind, bbox_inches="tight", metadata=stamp)
        return into.getvalue()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a .png, .svg or .pdf file; a crash leaves no half of it."""
        target = Path(path)
        kind = target.suffix.lower().lstrip(".")
        if kind not in FORMATS:
            raise ValueError(f"{target.name!r} must end in .{', .'.join(FORMATS)}.")
        if not target.parent.is_dir():
            raise ValueError(f"There is no directory {target.parent} to write {target.name} to.")
        write_files(target.parent, {target.name: self.data(kind)})
        return target


@contextmanager
def style() -> Iterator[None]:
    """Figures made inside have the package's style."""
    with mpl.rc_context(_RULES):
        yield


def styled(draw: Callable[P, Picture]) -> Callable[P, Picture]:
    """Decorate a function that makes a figure, so that it runs inside `style()`."""
    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Picture:
        with style():
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float = 6.4, height: float = 3.8) -> Picture:
    """An empty figure; sizes are in inches."""
    return Picture(figsize=(width, height), layout="constrained")


def single_axes(width: float = 6.4, height: float = 3.8) -> tuple[Picture, Axes]:
    """A figure with one pair of axes."""
    figure = new_figure(width, height)
    return figure, figure.add_subplot()


def draw_line(axes: Axes, x: Any, y: Any, number: int, label: str | None = None, **style: Any) -> None:
    """A line with the colour and dashes of this number."""
    dashes = DASHES[number % len(DASHES)]
    axes.plot(x, y, color=COLOURS[number % len(COLOURS)], linestyle=(0, dashes) if dashes else "-", linewidth=1.6,
              label=label, **style)


def draw_level(axes: Axes, name: str, value: float, x: float) -> None:
    """A labelled horizontal line, such as a baseline's; the label ends at x."""
    axes.axhline(value, color="#666666", linewidth=0.8, linestyle=":")
    axes.annotate(name, (x, value), ha="right", va="bottom", fontsize=8, color="#444444")


def draw_matrix(axes: Axes, values: Array, *, signed: bool = False, low: float = 0.0, high: float = 1.0) -> Any:
    """A matrix as coloured cells, from `low` to `high`; `signed` numbers around zero, as far as they go."""
    if signed:
        high = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
        low = -high
    axes.grid(visible=False)
    return axes.imshow(values, cmap=SIGNED if signed else UNSIGNED, vmin=low, vmax=high, aspect="auto",
                       interpolation="nearest")


def label_cells(axes: Axes, columns: Any = None, rows: Any = None, *, size: float = 8.0) -> None:
    """Names of the columns and rows of a matrix; column names are rotated where they have no room side by side."""
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        if names is not None:
            axis.set_ticks(range(len(names)), labels=list(map(str, names)), fontsize=size)
    if columns is not None:
        longest = max(map(len, map(str, columns)), default=0)
        room = axes.get_window_extent().width * 72 / axes.figure.dpi       # in points
        if longest * size * _CHARACTER * len(columns) > room:
            axes.tick_params(axis="x", rotation=90)
