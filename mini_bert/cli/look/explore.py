"""mini-bert explore: open the explorer in the browser, or export one sentence to a file."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...errors import ConfigError, InputError
from ..output import Output, SeedOption
from ..use.serve import said


def explore_command(
        text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The first sentence to show; it may "
                                                   "contain \\[MASK].")] = None,
        model: Annotated[str | None, typer.Option("--model", "-m", metavar="NAME|DIR", help="A model with its "
                                                  "tokenizer; default: the run's best model, or mini.")] = None,
        run: Annotated[Path | None, typer.Option("--run", metavar="DIR", help="A finished or unfinished run "
                                                 "whose checkpoints to show.")] = None,
        mask: Annotated[str, typer.Option("--mask", metavar="N,N", help="Positions to mask; \\[CLS] is 0.")] = "",
        target: Annotated[list[str] | None, typer.Option("--target", metavar="N:WORD", help="The correct word at a "
                                                         "position; may be repeated.")] = None,
        pair: Annotated[str, typer.Option("--pair", metavar="TEXT", help="A second sentence beside the first, as in "
                                          "tasks on pairs.")] = "",
        against: Annotated[str | None, typer.Option("--against", metavar="NAME|DIR", help="A second model, for the "
                                                    "view that compares two.")] = None,
        host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
        port: Annotated[int | None, typer.Option("--port", min=1, max=65535, help="Default: 8640, or a free port "
                                                 "if that is taken.")] = None,
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
        export: Annotated[Path | None, typer.Option("--export", metavar="FILE", help="Write the views of TEXT to an "
                                                    "HTML file that works offline, instead of serving.")] = None,
        seed: SeedOption = 0, *, output: Output) -> None:
    """Explore a model in the browser: forward, attention, backward, a training step, changes, comparisons, a run.

    Example: mini-bert explore "They met for the first time in Paris." --mask 6

    Example: mini-bert explore --export paris.html "They met for the first [MASK] in Paris." --target 6:time
    """
    from ...explorer.opening import fragment, open_session, opening_query

    if export is not None and text is None:
        raise InputError("--export writes the views of one sentence; give the sentence as TEXT.")
    serve = None if export is not None else _server()
    if pair and text is None:
        raise InputError("--pair is the second sentence; give the first one as TEXT.")
    session = open_session(model, run, against)
    query = None if text is None else opening_query(session, text, mask, target or [],
                                                    choose=export is not None, seed=seed,
                                                    pair=pair)
    if serve is None:
        assert export is not None
        assert query is not None
        from ...explorer.export import export_page

        done = export_page(session, query, export)
        left = f" Too large and left out: {', '.join(done['left_out'])}." if done["left_out"] else ""
        output.result(done, escape(f"{export}: {done['bytes'] / 1e6:.1f} MB, opens in any browser without a "
                                   f"network.{left}"))
        return
    serve(session, host=host, port=port, browser=browser, fragment=fragment(query), say=said(output))


def _server() -> Callable[..., None]:
    """The server's function, if its libraries are installed."""
    for library in ("starlette", "uvicorn", "markdown", "latex2mathml"):
        if find_spec(library) is None:
            raise ConfigError(f"The explorer needs {library}: pip install 'mini-bert[explorer]'.")
    from ...explorer.server import run_server

    return run_server
