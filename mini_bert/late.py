"""Parts of the package that add to the tables of lower parts, imported when such a table is first used.

`core` knows only its own file layout, and `text` knows nothing about the hub; both ask here, so that importing the
package does not import these parts, but using it finds them.
"""

from importlib import import_module

# table -> the module that adds to it when it is imported
_ADDING = {"layouts": "mini_bert.interop.huggingface", "names of data": "mini_bert.interop.hub"}


def complete(table: str) -> None:
    """Let a table have everything that ships with the package."""
    import_module(_ADDING[table])
