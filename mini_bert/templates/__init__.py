"""Starting files for variants of your own, one per kind: what `mini-bert new variant` writes. In the texts NAME is the
word and CLASS its class."""

from importlib.resources import files
from importlib.util import find_spec
from keyword import iskeyword, issoftkeyword

from ..errors import InputError

KINDS = ("activation", "score_term", "block", "task_head", "objective", "optimiser")


def template(kind: str, name: str) -> str:
    """The starting file of a variant called `name`."""
    if kind not in KINDS:
        raise InputError(f"There is no kind of variant {kind[:40]!r}; choose one of {', '.join(KINDS)}.")
    if not name.isidentifier() or not name[0].islower():
        raise InputError(f"{name[:40]!r} cannot be the word of a variant: use small letters, digits and _.")
    if iskeyword(name) or issoftkeyword(name):
        raise InputError(f"{name!r} is a Python keyword; choose another.")
    if find_spec(name) is not None:
        raise InputError(f"{name[:40]!r} is the name of a Python module, which {name[:40]}.py would hide; choose "
                         "another word.")
    text = (files(__package__) / f"{kind}.txt").read_text("utf-8")
    return text.replace("NAME", name).replace("CLASS", "".join(part.capitalize() for part in name.split("_")))
