"""The explorer's views in a cell of a notebook."""

from collections.abc import Sequence
from html import escape
from os import PathLike
from pathlib import Path

from ..files import PAGES, output_file, write_files
from .export import exported
from .opening import open_session, opening_query

HEIGHT = 780                  # pixels of the cell


class View:
    """The views of one sentence: the last value of a cell shows them, `save` writes them to a file."""

    def __init__(self, html: str, text: str, height: int = HEIGHT):
        self.html, self.text, self.height = html, text, height

    def __repr__(self) -> str:
        return f"<the explorer's views of {self.text!r}; a notebook shows them, save(FILE) writes them>"

    def _repr_html_(self) -> str:
        # a frame of its own: neither its styles nor its scripts reach the notebook
        return (f'<iframe srcdoc="{escape(self.html)}" sandbox="allow-scripts" title="Mini-BERT explorer" '
                f'style="width: 100%; height: {self.height}px; border: 1px solid #8888; border-radius: 6px"></iframe>')

    def save(self, file: str | PathLike[str]) -> None:
        """Write one HTML file, which opens in any browser."""
        path = output_file(Path(file), PAGES)
        write_files(path.parent, {path.name: self.html.encode()})


def explore(text: str, model: str | PathLike[str] = "mini", *, mask: Sequence[int] = (),
            targets: Sequence[str] = (), pair: str = "", run: str | PathLike[str] | None = None,
            against: str | PathLike[str] | None = None, seed: int = 0, height: int = HEIGHT) -> View:
    """The explorer's views of a sentence, to be shown in a notebook or saved as a file.

    `mask` are positions to mask, 0 being [CLS]; without any, and without a [MASK] in the text, some words are chosen
    by the seed. `targets` are right answers such as "6:time". `run` adds the checkpoints of a run, `against` a second
    model. The gradients of large parameters are left out, to keep the notebook small.
    """
    session = open_session(model if run is None or model != "mini" else None, run, against)
    query = opening_query(session, text, ",".join(map(str, mask)), targets, choose=True, seed=seed, pair=pair)
    content, _ = exported(session, query, light=True)
    return View(content.decode(), text, height)
