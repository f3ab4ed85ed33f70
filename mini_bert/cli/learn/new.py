"""mini-bert new: starting files for variants of your own, and a folder to try the commands in."""

from pathlib import Path
from typing import Annotated

import typer

from ...checks.check_all import PROVED
from ...core.registry import words
from ...errors import InputError
from ...files import write_files
from ...templates import KINDS, template
from ..output import Output

app = typer.Typer(no_args_is_help=True, help="Start a variant of your own, or make a folder to practise in.")


@app.callback()
def new() -> None:
    """Start a variant of your own, or make a folder to practise in."""


@app.command("variant")
def variant_command(
        name: Annotated[str, typer.Argument(metavar="NAME", help="The name for it in configs, such as squared_relu.")],
        kind: Annotated[str, typer.Option(help=f"What it is: {', '.join(KINDS)}.")] = "activation",
        out: Annotated[Path | None, typer.Option(help="The file to write; NAME.py unless given.",
                                                 show_default=False)] = None, *, output: Output) -> None:
    """Write a commented Python file with a complete variant, its derivation and its gradient checks.

    The file works as it is; change its formula and its backward pass, and check it again.

    Example: mini-bert new variant squared_relu && mini-bert gradcheck squared_relu --import squared_relu.py
    """
    file = Path(f"{name}.py") if out is None else out
    if file.exists():
        raise InputError(f"{file} exists already; choose another name with --out.")
    text = template(kind, name)
    if name in words(kind):
        raise InputError(f"There is {name!r} among the words of {kind} already; choose another word.")
    write_files(file.parent, {file.name: text.encode()})
    prove = f" Check it: mini-bert gradcheck {name} --import {file}" if kind in PROVED else ""
    output.result({"file": str(file), "kind": kind, "name": name}, f"Wrote {file}.{prove}")


@app.command("practice")
def practice_command(folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")], *,
                     output: Output) -> None:
    """Make a folder of small texts and tables, with a vocabulary, a corpus and a short training run.

    The guide, the tutorials and the examples of every --help run in it. It takes less than a minute.

    Example: mini-bert new practice my-guide
    """
    from ...practice.folder import make_practice_folder  # here: it trains, which a variant's file does not need

    make_practice_folder(folder, output.say)
    output.result({"folder": str(folder), "files": sorted(path.name for path in folder.iterdir())},
                  f"Made {folder}. Next: cd {folder}")
