"""mini-bert new: starting files for variants of your own."""

from pathlib import Path
from typing import Annotated

import typer

from ...checks.check_all import PROVED
from ...core.registry import words
from ...errors import InputError
from ...files import write_files
from ...templates import KINDS, template
from ..output import Output

app = typer.Typer(no_args_is_help=True, help="Write a starting file for a variant of your own.")


@app.callback()
def new() -> None:
    """Write a starting file for a variant of your own."""


@app.command("variant")
def variant_command(
        name: Annotated[str, typer.Argument(help="The word by which configs will name it, such as squared_relu.")],
        kind: Annotated[str, typer.Option(help=f"What it is: {', '.join(KINDS)}.")] = "activation",
        out: Annotated[Path | None, typer.Option(help="The file to write; NAME.py unless given.",
                                                 show_default=False)] = None, *, output: Output) -> None:
    """Write a commented Python file with a complete variant, its derivation and its gradient checks.

    The file works as it is; change its formula and its backward, and prove it.

    Example: mini-bert new variant squared_relu && mini-bert gradcheck squared_relu --import squared_relu.py
    """
    file = Path(f"{name}.py") if out is None else out
    if file.exists():
        raise InputError(f"{file} exists already; choose another name with --out.")
    text = template(kind, name)
    if name in words(kind):
        raise InputError(f"There is {name!r} among the words of {kind} already; choose another word.")
    write_files(file.parent, {file.name: text.encode()})
    prove = f" Prove it: mini-bert gradcheck {name} --import {file}" if kind in PROVED else ""
    output.result({"file": str(file), "kind": kind, "name": name}, f"Wrote {file}.{prove}")
