"""The files of the page."""

from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).parent / "static"
FONT = Path(__file__).parent / "fonts" / "stix-two-math.woff2"
VIEWS = ("forward", "attention", "backward", "step", "change", "compare", "layers", "training", "live", "timeline")
MODULES = ("app.js", "api.js", "state.js", "dom.js", "place.js", "colours.js", "heatmap.js", "charts.js", "matrix.js",
           "steps.js", "map.js", "sentence.js", "predictions.js", "tour.js", *(f"views/{view}.js" for view in VIEWS))
STYLES = ("base.css", "frame.css", "sentence.css", "map.css", "steps.css", "charts.css", "views.css")
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".woff2": "font/woff2"}
# all that is served, by its address
FILES = {"/": STATIC / "index.html", "/icon.svg": STATIC / "icon.svg", f"/{FONT.name}": FONT,
         "/reading.css": STATIC / "styles" / "reading.css",
         **{f"/{name}": STATIC / "styles" / name for name in STYLES},
         **{f"/{name}": STATIC / name for name in MODULES}}


def digest() -> str:
    """Of the page's files. Pictures of the page keep it, to tell whether they show the page as it is."""
    found = sha256()
    for address, path in sorted(FILES.items()):
        content = path.read_bytes()
        found.update(f"{address} {len(content)}\n".encode() + content)
    return found.hexdigest()
