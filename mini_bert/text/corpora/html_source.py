"""The text of HTML: what a browser would show, one line for each paragraph, heading, item or cell.

Scripts, styles and the head are left out, and references such as &amp; are replaced. A page is one document.
"""

import codecs
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from .file_source import FileSource, ReadingReport

HTML_ENDINGS = (".html", ".htm", ".xhtml")
_HIDDEN = {"head", "noscript", "script", "style", "svg", "template", "title"}
_INSIDE_LINES = {"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
                 "i", "img", "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup",
                 "time", "tt", "u", "var", "wbr"}
_HEAD = 2048                  # bytes in which a page says its encoding
_CHARSET = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE)


class HTMLSource(FileSource):
    """An HTML file."""

    def _read(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        parser = _Text()
        for line in super()._read(report, strict):
            parser.feed(line + "\n")
            yield from parser.take()
        parser.close()
        parser.end_line()
        yield from parser.take()

    def _encoding(self) -> str:
        """What the page says of itself, if that is known."""
        with self._open() as file:
            found = _CHARSET.search(file.read(_HEAD))
        try:
            return codecs.lookup(found[1].decode("ascii")).name if found else super()._encoding()
        except LookupError:
            return super()._encoding()


class _Text(HTMLParser):
    """Collects lines of text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.hidden: list[str] = []
        self.line: list[str] = []
        self.lines: list[str] = []
        self.preformatted = 0

    def take(self) -> list[str]:
        """The lines since the last call."""
        taken, self.lines = self.lines, []
        return taken

    def end_line(self) -> None:
        text = " ".join("".join(self.line).split())
        self.line = []
        if text:
            self.lines.append(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self.hidden.append(tag)
        elif tag == "body":                   # a head that is not closed ends here
            self.hidden.clear()
        elif tag not in _INSIDE_LINES:
            self.end_line()
            self.preformatted += tag == "pre"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INSIDE_LINES:
            self.end_line()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.hidden:
            while self.hidden.pop() != tag:
                pass
        elif tag not in _INSIDE_LINES:
            self.end_line()
            self.preformatted -= tag == "pre" and self.preformatted > 0

    def handle_data(self, data: str) -> None:
        if self.hidden:
            return
        if not self.preformatted:
            self.line.append(data)
            return
        for part in data.split("\n")[:-1]:
            self.line.append(part)
            self.end_line()
        self.line.append(data.rpartition("\n")[2])
