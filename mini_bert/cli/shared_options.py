"""Options that commands have without declaring them: --json, --quiet, and --import where a model is made or opened."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..parallel.launch import require_alone
from ..settings import LARGEST
from .output import Output

Imports = Annotated[list[str] | None, typer.Option(
    "--import", metavar="FILE", help="A Python file that registers words of your own (may be repeated); see "
    "docs/extending.md.", show_default=False)]
_OUTPUT = {"as_json": Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")],
           "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]}


def load_imports(files: list[str] | None) -> None:
    """Run the files, whose words are known from then on."""
    if files:
        from ..plugins import import_file  # not above: it brings the core along, which `--help` does not need

        for file in files:
            import_file(file)


def with_shared_options(command: Callable[..., Any] | None, *, imports: bool,
                        several: bool = False) -> Callable[..., Any]:
    """The command with the options added: its `output` is made from --json and --quiet, files are imported first.

    Unless it is a command for `several` processes, it is refused where mpirun has started more than one.
    """
    assert command is not None
    signature = inspect.signature(command)
    if "output" not in signature.parameters:              # it has them already
        return command

    @wraps(command)
    def run(*arguments: Any, as_json: bool, quiet: bool, imports: list[str] | None = None, **options: Any) -> Any:
        if not several:
            require_alone()
        load_imports(imports)
        for name, value in options.items():
            if isinstance(value, int) and not -LARGEST <= value <= LARGEST:
                raise InputError(f"--{name.replace('_', '-')} must be a whole number up to {LARGEST}, not "
                                 f"{str(value)[:60]}.")
        return command(*arguments, output=Output(as_json, quiet), **options)

    own = {name: parameter for name, parameter in signature.parameters.items() if name != "output"}
    added: dict[str, Any] = {**_OUTPUT, **({"imports": Imports} if imports else {})}
    run.__signature__ = signature.replace(parameters=[*own.values(), *(     # type: ignore[attr-defined]
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None if name == "imports" else False,
                          annotation=option) for name, option in added.items())])
    run.__annotations__ = {name: command.__annotations__[name] for name in own} | added
    return run
