"""The derivations of the steps, as pages: docs/math of the repository, or where an installation has put it.

Formulas become MathML on the server, so that a page needs no script.
"""

import html
import re
import sysconfig
from functools import cache
from pathlib import Path

_FOLDERS = (Path(__file__).parents[2] / "docs" / "math", Path(sysconfig.get_path("data")) / "share/mini-bert/math")
# code first: what looks like a formula in it is none
_PARTS = re.compile(r"(?P<code>^```.*?^```|`[^`\n]+`)|\$\$(?P<block>.+?)\$\$|\$(?P<inline>[^$\n]+(?:\n[^$\n]+)?)\$",
                    re.DOTALL | re.MULTILINE)
_LINK = re.compile(r'<a href="(?P<page>[^"#:]*)(?P<anchor>#[^"]*)?">(?P<text>.*?)</a>', re.DOTALL)
_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} – Mini-BERT</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/base.css">
<link rel="stylesheet" href="/reading.css">
</head>
<body class="reading">
{body}
</body>
</html>
"""


@cache
def derivations() -> dict[str, Path]:
    """The pages by name; empty where the installation has none."""
    folder = next((folder for folder in _FOLDERS if folder.is_dir()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.md"))}


@cache
def derivation_page(name: str) -> bytes:
    """One derivation as HTML."""
    from latex2mathml.converter import convert
    from markdown import markdown

    formulas: list[str] = []

    def formula(match: re.Match[str]) -> str:
        if match["code"] is not None:
            return match["code"]
        kind = "block" if match["block"] is not None else "inline"
        formulas.append(convert((match["block"] or match["inline"]).strip(), display=kind))
        return f"\ue000{len(formulas) - 1}\ue001"           # letters of private use: Markdown leaves them alone

    text = _PARTS.sub(formula, derivations()[name].read_text("utf-8"))
    body = markdown(text, extensions=["fenced_code", "tables", "toc", "sane_lists"])
    body = _LINK.sub(_link, re.sub(r' style="[^"]*"', "", body))
    body = re.sub("\ue000(\\d+)\ue001", lambda match: formulas[int(match[1])], body)
    title = text.lstrip().split("\n", 1)[0].lstrip("# ")
    return _FRAME.format(title=html.escape(title), body=body).encode()


def _link(match: re.Match[str]) -> str:
    """Links to other derivations and within a page stay; what else they name is not served here."""
    page, anchor = match["page"], match["anchor"] or ""
    if not page:
        return match[0]
    name = page.removesuffix(".md")
    return f'<a href="/derivation/{name}{anchor}">{match["text"]}</a>' if name in derivations() else match["text"]
