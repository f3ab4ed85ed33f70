"""Options of the commands that read tables."""

from typing import Annotated

import typer

from ..errors import InputError

TextColumnOption = Annotated[list[str] | None, typer.Option(
    "--text-column", metavar="NAME", help="The column of the text, by name or number; twice for a pair of texts. "
    "Default: a usual name, or the column with by far the longest texts.", show_default=False)]
LabelColumnOption = Annotated[list[str] | None, typer.Option(
    "--label-column", metavar="NAME", help="The column of the label; may be repeated for labels that each have a "
                                           "column of ones and zeros. Default: a usual name, or the only column with "
                                           "few values.", show_default=False)]
EncodingOption = Annotated[str | None, typer.Option(
    "--encoding", metavar="NAME", help="The encoding of text that is not UTF-8 and has no byte-order mark, such "
    "as cp1252 for a table that Excel saved in Western Europe.", show_default=False)]


def one_column(names: list[str] | None) -> str | None:
    """The column of a command that reads single texts."""
    if names is not None and len(names) > 1:
        raise InputError("--text-column is given twice, which is for pairs of texts.")
    return names[0] if names else None
