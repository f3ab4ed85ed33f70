"""The explorer's views of one sentence in one file, which needs neither a server nor a network.

The page is the same, and its questions are answered from the file. What takes a live model is there for a choice:
the sums behind some cells of each step and a verified entry of each gradient (framed in the pictures), and some steps
of training. What is left out the page says.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from ..errors import InputError, MiniBertError
from ..evaluation.result import to_json
from ..files import PAGES, output_file, write_files
from .answers import ANSWERS, CHANGES
from .assets import FONT, MODULES, STATIC, STYLES
from .queries import Query
from .session import Passes, Session

LARGEST = 160_000             # bytes of a parameter's gradient that is put in
CELLS = 3                     # of a step whose sums are in the file; of a step with heads, one of each head
LIGHT = (16_000, 1)           # the same two where the page has to be small, as in a notebook
CHECKPOINTS = 24
HEADS = 48                    # more are not switched off one by one
STEPS = (("adamw", "0.0001"), ("adamw", "0.001"), ("sgd", "0.01"), ("sgd", "0.1"))
_LIVE = "start mini-bert explore to see it."
MISSING = {"cell": f"This file has the sums of the framed cells alone; for any other, {_LIVE}",
           "verify": f"This file has the framed entries verified, and no others; for any other, {_LIVE}",
           "intervene": f"This file has one head switched off at a time, in small models; {_LIVE}",
           "matrix": f"These numbers are too many for this file; {_LIVE}",
           "other": f"This file has the answers for one sentence; for another, {_LIVE}"}
_POLICY = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; " \
          "font-src data:"

Answers = dict[str, dict[str, Any]]


def export_page(session: Session, query: Query, file: Path) -> dict[str, Any]:
    """Write the file; what is in it, and what was too large for it."""
    output_file(file, PAGES)
    content, told = exported(session, query)
    write_files(file.parent, {file.name: content})
    return {"file": str(file), "bytes": len(content), **told}


def exported(session: Session, query: Query, *, light: bool = False) -> tuple[bytes, dict[str, Any]]:
    """The page, how many answers are in it, and what was too large for it."""
    with session.lock:
        answers, left_out = collected(session, query, *(LIGHT if light else (LARGEST, CELLS)))
    return page({"answers": answers, "missing": MISSING}), {"answers": len(answers), "left_out": left_out}


def parameters_of(query: Query) -> dict[str, str]:
    """A query as the page writes it in its questions."""
    given = {"text": query.text, "pair": query.pair, "mask": ",".join(map(str, query.mask)),
             "target": "\n".join(f"{position}:{word}" for position, word in query.targets)}
    return {name: value for name, value in given.items() if value}


def key_of(name: str, parameters: Mapping[str, str]) -> str:
    """The same as keyOf in api.js."""
    return f"{name}?{urlencode(sorted(parameters.items()), safe='*')}".replace("~", "%7E")


def collected(session: Session, query: Query, largest: int = LARGEST, sums: int = CELLS) -> tuple[Answers, list[str]]:
    """The answers to all questions that the file can answer, and the names of arrays that were left out."""
    base, answers, left_out = parameters_of(query), Answers(), []
    passes = session.passes(query)
    backwards = bool(ANSWERS["info"](session, {})["predicts"] and passes.targets)

    def put(question: str, **more: str) -> None:
        parameters = {**base, **more}
        answers[key_of(question, parameters)] = ANSWERS[question](session, parameters)

    for question in ("sentence", "forward", "attention", "layers", "compare", *(["backward"] if backwards else [])):
        put(question)
    heads = [(layer, head) for layer in range(session.model.config.num_layers)
             for head in range(session.model.config.num_heads)]
    if backwards:
        put("intervene")
        for layer, head in heads if len(heads) <= HEADS else ():
            put("intervene", off=f"{layer}.{head}")
    for row in passes.targets if backwards else ():
        put("saliency", position=str(row + passes.ahead))
    cells: dict[str, list[list[int]]] = {}
    for step in passes.forward.steps[1:]:
        put("matrix", of="forward", name=step.name)
        cells[step.name] = list(_cells(passes, step.array, sums))
        for index in cells[step.name]:
            put("cell", name=step.name, index=",".join(map(str, index)))
    entries: dict[str, list[list[int]]] = {}
    for gradient in passes.backward.steps if backwards else ():
        if gradient.array.nbytes > largest and gradient.is_parameter and gradient.component != "head":
            left_out.append(gradient.name)
            continue
        put("matrix", of="backward", name=gradient.name)
        peak = [int(i) for i in np.unravel_index(np.abs(gradient.array).argmax(), gradient.shape)]
        entries[gradient.name] = [peak]
        put("verify", name=gradient.name, index=",".join(map(str, peak)))
    steps = _steps(session, base, answers) if backwards else []
    _run(session, base, answers)
    answers["info?"] = {**ANSWERS["info"](session, {}), "example": base,
                        "embedded": {"cells": cells, "entries": entries, "steps": steps}}
    return answers, left_out


def _cells(passes: Passes, array: npt.NDArray[Any], most: int) -> Iterator[list[int]]:
    """The numbers farthest from zero in the row of the first mask; of each head, where there are heads."""
    row = (passes.masks or [min(1, len(passes.sentence.ids) - 1)])[0]
    for head in range(len(array)) if array.ndim == 3 else (None,):
        numbers = array[row] if head is None else array[head, row]
        for column in np.argsort(-np.abs(numbers), kind="stable")[: most if head is None else 1].tolist():
            yield [row, column] if head is None else [head, row, column]


def _steps(session: Session, base: dict[str, str], answers: Answers) -> list[dict[str, str]]:
    """Some steps of training, each undone before the next; one that is too long for the model is left out."""
    untouched = {key: ANSWERS["info"](session, {})[key] for key in ("state", "steps", "history", "undoable")}
    taken = []
    for optimiser, rate in STEPS:
        asked = {**base, "optimiser": optimiser, "learning_rate": rate}
        try:
            done = CHANGES["step"](session, asked)
        except InputError:
            continue
        answers[key_of("step", asked)] = {**done, **untouched}
        session.undo()
        taken.append({"optimiser": optimiser, "learning_rate": rate})
    return taken


def _run(session: Session, base: dict[str, str], answers: Answers) -> None:
    """Checkpoints, evenly chosen if they are many."""
    answers["run?"], answers["timeline?"] = ANSWERS["run"](session, {}), ANSWERS["timeline"](session, {})
    run = answers["run?"]["run"]
    if run is None:
        return
    chosen = np.unique(np.linspace(0, len(run["checkpoints"]) - 1, CHECKPOINTS).round().astype(int)) \
        if len(run["checkpoints"]) > CHECKPOINTS else range(len(run["checkpoints"]))
    kept = []
    for number in chosen:
        checkpoint = run["checkpoints"][number]
        asked = {**base, "name": checkpoint["name"], "attention": "1"}
        try:
            answers[key_of("checkpoint", asked)] = ANSWERS["checkpoint"](session, asked)
            kept.append(checkpoint)
        except MiniBertError as error:
            run["notes"].append(str(error))
    if len(kept) < len(run["checkpoints"]):
        run["notes"].append(f"This file has {len(kept)} of {len(run['checkpoints'])} checkpoints.")
    run["checkpoints"] = kept


# -------------------------------------------------------------------- the page


def page(data: Mapping[str, Any]) -> bytes:
    """index.html with its styles, its modules and the answers in it."""
    html = (STATIC / "index.html").read_text("utf-8")
    modules = {f"explorer/{Path(name).name}": _data_url("text/javascript", _module(name).encode())
               for name in MODULES}
    replacements = {
        '<meta charset="utf-8">': f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" '
                                  f'content="{_POLICY}">',
        '<link rel="icon" href="icon.svg" type="image/svg+xml">':
            f'<link rel="icon" href="{_data_url("image/svg+xml", (STATIC / "icon.svg").read_bytes())}">',
        **{f'<link rel="stylesheet" href="{name}">': f"<style>\n{_style(name)}</style>"
           for name in STYLES},
        '<script type="module" src="app.js"></script>':
            f'<script type="importmap">{json.dumps({"imports": modules})}</script>\n'
            f'<script type="application/json" id="answers">{_in_script(to_json(data))}</script>\n'
            '<script type="module">import "explorer/app.js";</script>'}
    for old, new in replacements.items():
        if html.count(old) != 1:
            raise InputError(f"The page has changed: {old} is not in it once.")
        html = html.replace(old, new)
    return html.encode()


def _module(name: str) -> str:
    """A module whose imports are names of the import map: in a data: address nothing is relative."""
    return re.sub(r'from "\.\.?/(?:\w+/)?([\w.]+)"', r'from "explorer/\1"', (STATIC / name).read_text("utf-8"))


def _style(name: str) -> str:
    """A style sheet with its font in it."""
    text = (STATIC / "styles" / name).read_text("utf-8")
    return text.replace(FONT.name, _data_url("font/woff2", FONT.read_bytes()))


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode('ascii')}"


def _in_script(content: bytes) -> str:
    """JSON that cannot end the element around it."""
    return content.decode().replace("<", "\\u003c")
