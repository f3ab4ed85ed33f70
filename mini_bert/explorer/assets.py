"""The files of the page, and its JSON."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..evaluation.result import finite

STATIC = Path(__file__).parent / "static"
MODULES = ("app.js", "api.js", "state.js", "dom.js", "place.js", "colours.js", "heatmap.js", "charts.js", "matrix.js",
           "steps.js", "sentence.js", "forward.js", "attention.js", "backward.js", "step.js", "layers.js",
           "timeline.js", "training.js")
STYLES = ("base.css", "frame.css", "sentence.css", "steps.css", "charts.css", "views.css")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
# all that is served, by its path
FILES = {"/": "index.html", "/icon.svg": "icon.svg", **{f"/{name}": name for name in (*STYLES, *MODULES)}}


def digest() -> str:
    """Of the page's files. Pictures of the page keep it, to tell whether they show the page as it is."""
    found = sha256()
    for name in sorted(FILES.values()):
        content = (STATIC / name).read_bytes()
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()


def to_json(value: Any) -> bytes:
    """JSON has no NaN and no infinity: such a number becomes null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, separators=(",", ":")).encode()
