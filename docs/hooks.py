"""Makes the pages, which are written to be read on GitHub, work on the site too. mkdocs.yml names this file.

Links. A page links to source files by their path in the repository, and to a function, class or method by its name
(`../../mini_bert/core/model.py#MiniBERT.forward`). Every file that is linked becomes a page of the site: code with
numbered lines, a notebook with its outputs, Markdown as it is. A name becomes the anchor of its first line. The site
then needs no address of the repository, and a link to a file or a name that does not exist stops the build.

Formulas. What stands between dollars is turned into MathML here, so that the reader's browser loads nothing more; the
font for them is put beside the pages.
"""

import ast
import html
import json
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT = Path(__file__).parents[1]
FONTS = ROOT / "mini_bert" / "explorer" / "fonts"         # the explorer's, which the site uses as well
HOME = {"README.md": "docs/index.md"}                     # the same page in other words
log = logging.getLogger("mkdocs.hooks.mini_bert")

# code first, so that nothing in it is taken for a link
LINK = re.compile(r"(?P<code>^(?P<fence> *(?:```+|~~~+)).*?^(?P=fence)|`[^`\n]*`)|(?P<head>\]\()(?P<target>[^)\s]+)\)",
                  re.DOTALL | re.MULTILINE)
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
BARE = re.compile(r"\\\((.*?)\\\)")                      # a formula of a heading, in the table of contents

_sources: dict[str, str] = {}                             # a page of the site: the file that it shows


# ---------------------------------------------------------------- links

def site_page(path: str) -> str:
    """The page of the site that shows a file of the repository."""
    path = HOME.get(path, path)
    if path.startswith("docs/") and not path.endswith((".py", ".yaml")):
        return path.removeprefix("docs/")
    if path.endswith(".ipynb"):
        return path.removesuffix(".ipynb") + ".md"
    return f"repository/{path}" + ("" if path.endswith(".md") else ".md")


def linked_files(text: str, at: str) -> list[str]:
    """The files of the repository that a page links to, as paths from its root."""
    found = [_resolve(match["target"], at) for match in LINK.finditer(text) if match["target"]]
    return [path for path, _ in filter(None, found)]


def _resolve(target: str, at: str) -> tuple[str, str] | None:
    """The path and the anchor of a link in the file `at`; None for other addresses and for what does not exist."""
    if re.match(r"[a-z]+:|#|/", target):
        return None
    path, _, anchor = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(at), path))
    if path.startswith("..") or not (ROOT / path).exists():
        return None
    if (ROOT / path / "README.md").exists():
        path += "/README.md"
    if path.endswith(".py") and anchor:
        line = symbol_line(ROOT / path, anchor)
        return None if line is None else (path, f"L{line}")
    return path, anchor


def symbol_line(file: Path, symbol: str) -> int | None:
    """The line on which a function, a class or a method (`Class.method`) begins; None if the file has no such name."""
    scope: Any = ast.parse(file.read_text("utf-8"))
    for name in symbol.split("."):
        scope = next((node for node in scope.body if getattr(node, "name", None) == name), None)
        if scope is None:
            return None
    return int(scope.lineno)


def with_site_links(text: str, at: str) -> str:
    """A page's text, with its links to files led to the pages that show them."""
    here = posixpath.dirname(site_page(at))

    def replace(match: re.Match[str]) -> str:
        found = match["target"] and _resolve(match["target"], at)
        if not found:
            return match[0]                               # mkdocs itself complains of what is dead
        path, anchor = found
        return f"]({posixpath.relpath(site_page(path), here or '.')}{'#' * bool(anchor)}{anchor})"

    return LINK.sub(replace, text)


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each file that is linked from a page, and from those pages in turn."""
    from mkdocs.structure.files import File, InclusionLevel

    _sources.clear()
    for name in ("stix-two-math.woff2", "OFL.txt"):
        files.append(File.generated(config, f"fonts/{name}", content=(FONTS / name).read_bytes()))
    waiting = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    waiting += [f"notebooks/{path.name}" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    known = {site_page(path) for path in waiting if path.startswith("docs/")}
    while waiting:
        path = waiting.pop()
        page = site_page(path)
        if page not in known and page.endswith(".md"):
            inclusion = InclusionLevel.INCLUDED if page.startswith("notebooks/") else InclusionLevel.NOT_IN_NAV
            files.append(File.generated(config, page, content=shown(path), inclusion=inclusion))
            known.add(page)
        if page.endswith(".md"):
            _sources[page] = path
        if path.endswith((".md", ".ipynb")):
            waiting += [p for p in linked_files(shown(path), path) if site_page(p) not in known]
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return with_site_links(markdown, _sources.get(page.file.src_uri, f"docs/{page.file.src_uri}"))


# ---------------------------------------------------------------- files as pages

def shown(path: str) -> str:
    """A file of the repository as the Markdown of a page."""
    file = ROOT / path
    if file.suffix == ".md":
        return file.read_text("utf-8")
    if file.suffix == ".ipynb":
        return notebook_page(json.loads(file.read_text("utf-8")))
    if file.is_dir():
        names = sorted(f"{item.name}{'/' * item.is_dir()}" for item in file.iterdir())
        return "\n".join([_aside(path), *(f"- `{name}`" for name in names)])
    return _aside(path) + code_page(file.name, file.read_text("utf-8"))


def _aside(path: str) -> str:
    return f"---\ntitle: {path}\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"


def code_page(name: str, text: str) -> str:
    """Code in colours, each line with the anchor that GitHub gives it."""
    try:
        lexer = get_lexer_for_filename(name, stripnl=False)
    except ClassNotFound:
        lexer = TextLexer(stripnl=False)
    lines = highlight(text, lexer, HtmlFormatter(nowrap=True)).splitlines()
    numbered = "\n".join(f'<span id="L{n}" class="line">{line}</span>' for n, line in enumerate(lines, 1))
    return f'<div class="highlight source"><pre><code>{numbered}</code></pre></div>\n'


def notebook_page(notebook: dict[str, Any]) -> str:
    """The cells of a notebook in order, with what they printed and drew."""
    return "\n\n".join(text for cell in notebook["cells"] for text in _cell(cell))


def _cell(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return [source]
    shown = [f"```python\n{source}\n```"] if source else []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        if "image/png" in data:
            shown.append(f'<img alt="figure" src="data:image/png;base64,{"".join(data["image/png"].split())}">')
        elif "image/svg+xml" in data:
            shown.append("".join(data["image/svg+xml"]))
        elif text := "".join(output.get("text", data.get("text/plain", []))).rstrip():
            shown.append(f"```text\n{text}\n```")
    return shown


# ---------------------------------------------------------------- formulas

def with_mathml(page: str, name: str) -> str:
    """The HTML of a page, with its formulas as MathML."""
    from latex2mathml.converter import convert  # only where the site is built

    def replace(match: re.Match[str]) -> str:
        latex = html.unescape(match[2]).strip()
        made: str = convert(latex, display="block" if match[1] == "div" else "inline")
        if "\\" in made or "<mi>&</mi>" in made:          # a command or an alignment that the converter does not know
            log.warning(f"{name}: a formula is not understood: {latex}")
        return made

    return FORMULA.sub(replace, page)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    headings = list(page.toc)
    while headings:
        heading = headings.pop()
        shown = BARE.sub(r'<span class="arithmatex">\\(\1\\)</span>', heading.title)
        heading.title = with_mathml(shown, page.file.src_uri)
        headings += heading.children
    return with_mathml(html, page.file.src_uri)
