"""--import FILE: a command that makes or opens a model can use words of a user's own file."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

Imports = Annotated[list[str] | None, typer.Option(
    "--import", metavar="FILE", help="A Python file that registers words of your own (may be repeated); see "
    "docs/extending.md.", show_default=False)]


def load_imports(files: list[str] | None) -> None:
    """Run the files, whose words are known from then on."""
    if files:
        from ..plugins import import_file  # not above: it brings the core along, which `--help` does not need

        for file in files:
            import_file(file)


def with_imports(command: Callable[..., Any] | None) -> Callable[..., Any]:
    """The command with the option added, whose files are loaded before it begins."""
    assert command is not None
    signature = inspect.signature(command)
    if "imports" in signature.parameters:
        return command

    @wraps(command)
    def loading(*arguments: Any, imports: list[str] | None = None, **options: Any) -> Any:
        load_imports(imports)
        return command(*arguments, **options)

    option = inspect.Parameter("imports", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Imports)
    loading.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option])
    loading.__annotations__ = {**command.__annotations__, "imports": Imports}
    return loading
