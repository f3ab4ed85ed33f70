"""A corpus that every machine has: the English documentation installed with Python and NumPy.

It consists of pydoc's language topics, the docstrings of the standard library and of NumPy, and the longer comments in
the same files. Source files are parsed, not imported, since importing may have side effects; only compiled modules are
imported for their docstrings. Code, tables, headings and parameter lists are left out:

    Parameters
    ----------
    a : array_like                  ->      Array whose mean is wanted, converted if it is none.
        Array whose mean is wanted,
        converted if it is none.
"""

import ast
import re
import sysconfig
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import cleandoc
from itertools import chain, pairwise
from pathlib import Path
from pydoc_data.topics import topics
from types import BuiltinFunctionType

import numpy as np

from .sources import ReadingReport

# tests, demonstrations, character tables, and third-party packages
_SKIPPED = {"__pycache__", "dist-packages", "encodings", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test",
            "tests", "turtledemo"}
# compiled modules whose import has no side effects; not every build of Python has all of them
_COMPILED = ("builtins", "sys", "array", "atexit", "binascii", "cmath", "errno", "faulthandler", "fcntl", "gc", "grp",
             "itertools", "marshal", "math", "mmap", "nt", "posix", "pwd", "pyexpat", "resource", "select", "syslog",
             "termios", "time", "unicodedata", "winreg", "zlib", "_asyncio", "_ast", "_bisect", "_bz2", "_codecs",
             "_collections", "_contextvars", "_csv", "_ctypes", "_curses", "_datetime", "_decimal", "_elementtree",
             "_functools", "_hashlib", "_heapq", "_imp", "_io", "_json", "_locale", "_lsprof", "_lzma",
             "_multiprocessing", "_operator", "_pickle", "_queue", "_random", "_signal", "_socket", "_sqlite3",
             "_sre", "_ssl", "_stat", "_statistics", "_string", "_struct", "_symtable", "_thread", "_tracemalloc",
             "_uuid", "_warnings", "_weakref", "_zoneinfo", "numpy", "numpy.random")
_COMMENT = re.compile(r"(?:^[ \t]*#(?!!).*\n){2,}", re.MULTILINE)
_COMMENT_SIGN = re.compile(r"^[ \t]*#[#:]*", re.MULTILINE)


class PydocsSource:
    """The source named "pydocs"."""

    name = "pydocs"
    size: int | None = None       # not known before reading

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        for line in pydocs():
            report.bytes_read += len(line.encode("utf-8", "surrogatepass")) + 1
            yield line


def pydocs() -> Iterator[str]:
    """Distinct paragraphs in a fixed order, with "" between documents; a document is a topic or a module."""
    seen: set[str] = set()
    started = False
    for docstrings in _documents():
        new = list(dict.fromkeys(text for docstring in docstrings for text in prose(docstring) if text not in seen))
        if new:
            if started:
                yield ""
            started = True
            seen.update(new)
            yield from new


# ---------------------------------------------------------------- finding documentation


def _documents() -> Iterator[Iterable[str]]:
    """The docstrings of each topic and module."""
    for topic in sorted(topics):
        yield [topics[topic]]
    for folder in (Path(sysconfig.get_path("stdlib")), Path(np.__path__[0])):
        if folder.is_dir():                           # an embedded Python has its library in an archive
            yield from map(_written, _source_files(folder))
    yield from map(_compiled, _COMPILED)


def _source_files(folder: Path) -> Iterator[Path]:
    """All source files in a fixed order; skipped folders, which may be large, are not entered."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in _SKIPPED:
            yield from _source_files(path)
        elif path.suffix == ".py":
            yield path


def _written(path: Path) -> Iterator[str]:
    """The docstrings of a source file in order, then its comments of two or more lines."""
    try:
        with tokenize.open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")           # about invalid escapes
            source = file.read()
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):        # a template, or a file for another version
        return
    yield from _docstrings(tree.body)
    for comment in _COMMENT.findall(source):
        yield _COMMENT_SIGN.sub("", comment)


def _docstrings(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Strings that are statements, and string arguments of functions such as NumPy's `add_newdoc`."""
    for statement in statements:
        if isinstance(statement, ast.Expr):
            value = statement.value
            given = [value]
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and "doc" in value.func.id:
                given = [part for argument in value.args
                         for part in (argument.elts if isinstance(argument, ast.Tuple) else [argument])]
            yield from (part.value for part in given if isinstance(part, ast.Constant) and isinstance(part.value, str))
        else:
            for inner in ("body", "handlers", "orelse", "finalbody", "cases"):
                yield from _docstrings(getattr(statement, inner, ()))


def _compiled(name: str) -> Iterator[str]:
    """The docstrings of a module and of its compiled functions and classes."""
    try:
        module = import_module(name)
    except ImportError:
        return
    yield module.__doc__ or ""
    for thing in _members(module):
        if isinstance(thing, (type, BuiltinFunctionType, np.ufunc)):
            for documented in (thing, *(_members(thing) if isinstance(thing, type) else ())):
                doc = getattr(documented, "__doc__", None)
                if isinstance(doc, str) and doc != type(documented).__doc__:      # an instance may show its class's
                    yield doc


def _members(thing: object) -> list[object]:
    # without _, in which an interactive session keeps its last result
    return [value for key, value in sorted(vars(thing).items()) if key != "_"]


# ---------------------------------------------------------------- from a docstring to prose

_RULER = re.compile(r"([=\-~^\"'`#*+.:_])\1{3,}(?: +\1+)*")        # underlines a heading, or separates parts of a table
_PROMPTS = (">>>", "... ", "In [", "$ ")
# rules, bars, or gaps between columns; two spaces may also follow a sentence
_TABLE = re.compile(r"([-=.#*~_])\1{4,}|\|.*\||\S {4,}\S|[^\s.,:!?] {3}\S|[^\s.:!?] {2,}\S.*\S {2,}\S")
_PARAMETER = re.compile(r"[\w*.`']+(?:, [\w*.`']+)* :(?: |$)")
# starts of paragraphs with a hanging indent: a bullet, :param x:, @param x, .. note::
_BULLET = re.compile(r"[-*+•]\s+|:\w[\w *.]*:\s|@\w+\s+"
                     r"|\.\. (?:note|warning|deprecated|versionadded|versionchanged|seealso|hint|tip|important)::\s*")
_NAMED = re.compile(r"\[\d+\]\s+|\(?(?:\d{1,2}|[a-zA-Z])[.)]\s+|(?=[\w.*]+(?:\([^()]*\))?(?:\s--|:)\s)")


def prose(docstring: str) -> Iterator[str]:
    """The English paragraphs of a docstring, each on one line and without markup."""
    block: list[str] = []
    depth, hanging = 0, False         # indentation of the block; whether its other lines may be indented further
    for indent, line in chain(_without_code(cleandoc(docstring)), [(0, "")]):
        other_depth = indent < depth if hanging else indent != depth
        aligned = hanging and indent == depth
        marker = _BULLET.match(line) or (_NAMED.match(line) if not block or other_depth or aligned else None)
        if block and (not line or other_depth or marker):
            text = _plain("\n".join(block))
            if _is_english(text):
                yield text
            block = []
        if line:
            if not block:
                depth, hanging = indent, marker is not None
            block.append(line[marker.end():] if marker else line)


def _without_code(text: str) -> Iterator[tuple[int, str]]:
    """(indentation, text) of each line; the text is empty if the line cannot be prose."""
    code: int | None = None           # lines indented further than this are code
    example = False                   # inside a doctest, which ends with a blank line
    for line, below in pairwise([*text.splitlines(), ""]):
        indent, line = len(line) - len(line.lstrip()), line.strip()
        if not line:
            example = False
        elif code is not None and indent > code:
            line = ""
        else:
            example = example or line.startswith(_PROMPTS)
            directive = line.startswith(".. ") and not _BULLET.match(line)
            code = indent if directive or line.endswith("::") else None
            if (example or directive or _RULER.fullmatch(line) or _RULER.fullmatch(below.strip())
                    or _TABLE.search(line) or _PARAMETER.match(line)):
                line = ""
        yield indent, line


_HYPHEN = re.compile(r"(?<=[a-z])-\n(?=[a-z])(?!and |or )")
_ROLE = re.compile(r":[\w:]+:`(?:~[^`<]*\.)?([^`<]+?)(?: ?<[^`>]*>)?`")
_QUOTED = re.compile(r"``(.+?)``|`~?([^`']+)`_{0,2}", re.DOTALL)
_EMPHASISED = re.compile(r"(?<![\w*])(\*\*?)(?=\w)([^*]*[^\s*])\1(?![\w*])")
_REFERENCE = re.compile(r"\s?\[[\w*#]+\]_|\\(?=[*_`|])")       # to a footnote; or an escaping backslash


def _plain(text: str) -> str:
    """The text on one line and without markup; the letters of formulas stay."""
    text = _ROLE.sub(r"\1", _HYPHEN.sub("-", text))
    text = _REFERENCE.sub("", _EMPHASISED.sub(r"\2", _QUOTED.sub(r"\1\2", text)))
    text = " ".join(text.replace("`", "'").split())
    return text[:-1] if text.endswith("::") else text


_FREQUENT = {"a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "each", "for", "from", "has", "have",
             "if", "in", "into", "is", "it", "its", "may", "must", "no", "not", "of", "on", "one", "or", "should",
             "that", "the", "this", "to", "two", "used", "when", "which", "will", "with", "you"}
_WORD = re.compile(r"[\"'“‘(\[]*[A-Za-z]+(?:['’-][A-Za-z]+)*[\"'”’)\].,;:!?]*")
# comments in code, formulas, authors' notes to themselves, copyright lines
_NO_PROSE = re.compile(r"^#|\\\w+\{|[_^]\{|\b(?:X{3,}|TO.?DO|FIX.?ME)\b|\(c\) ?\d|Copyright")


def _is_english(text: str) -> bool:
    """At least six words, most of them made of letters, and enough of the most frequent English words."""
    words = text.split()
    if len(words) < 6 or _NO_PROSE.search(text):
        return False
    spelled = sum(_WORD.fullmatch(word) is not None for word in words)
    frequent = sum(map(_FREQUENT.__contains__, text.lower().split()))
    return spelled >= 0.75 * len(words) and frequent >= 0.1 * len(words)
