"""The corpus that is on every machine: the English documentation installed with Python and NumPy.

It is what pydoc shows, the topics of the language and the docstrings of the standard library and of NumPy, and
beside them the longer comments in the same files. Source files are parsed, not imported, since an import may
do anything; only compiled modules are asked for their docstrings. Code, tables, headings and lists of
parameters are left out:

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

# tests and demonstrations, tables of characters, and other packages
_SKIPPED = {"__pycache__", "dist-packages", "encodings", "idlelib", "lib2to3", "pydoc_data", "site-packages", "test",
            "tests", "turtledemo"}
# compiled modules whose import does nothing else; not every build of Python has them all
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
    """The corpus as something to read, for the name "pydocs"."""

    name = "pydocs"
    size: int | None = None       # is known only when all of it has been read

    def lines(self, report: ReadingReport, strict: bool) -> Iterator[str]:
        for line in pydocs():
            report.bytes_read += len(line.encode("utf-8", "surrogatepass")) + 1
            yield line


def pydocs() -> Iterator[str]:
    """Its paragraphs, each once, with "" between documents: a topic, or a module. Always in the same order."""
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
        if folder.is_dir():                           # an embedded Python keeps its library in an archive
            yield from map(_written, _source_files(folder))
    yield from map(_compiled, _COMPILED)


def _source_files(folder: Path) -> Iterator[Path]:
    """In a fixed order, and without a look into what is skipped: other packages may be many."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name not in _SKIPPED:
            yield from _source_files(path)
        elif path.suffix == ".py":
            yield path


def _written(path: Path) -> Iterator[str]:
    """The docstrings of a source file, in its order, and then its comments of several lines."""
    try:
        with tokenize.open(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")           # of escapes that a later Python will refuse
            source = file.read()
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):        # a template, or a file for another version
        return
    yield from _docstrings(tree.body)
    for comment in _COMMENT.findall(source):
        yield _COMMENT_SIGN.sub("", comment)


def _docstrings(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Strings that stand alone, and those that are given to functions like NumPy's `add_newdoc`."""
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
    """The docstrings of a module, and of what is compiled in it."""
    try:
        module = import_module(name)
    except ImportError:
        return
    yield module.__doc__ or ""
    for thing in _members(module):
        if isinstance(thing, (type, BuiltinFunctionType, np.ufunc)):
            for documented in (thing, *(_members(thing) if isinstance(thing, type) else ())):
                doc = getattr(documented, "__doc__", None)
                if isinstance(doc, str) and doc != type(documented).__doc__:      # a constant's is its class's
                    yield doc


def _members(thing: object) -> list[object]:
    # not what a session keeps in _; but sys.__excepthook__ and the like, since sys.excepthook may be replaced
    return [value for key, value in sorted(vars(thing).items()) if key != "_"]


# ---------------------------------------------------------------- from a docstring to prose

_RULER = re.compile(r"([=\-~^\"'`#*+.:_])\1{3,}(?: +\1+)*")        # under a heading, or between a table's parts
_PROMPTS = (">>>", "... ", "In [", "$ ")
# bars, or gaps between columns; two spaces may also follow a sentence
_TABLE = re.compile(r"([-=.#*~_])\1{4,}|\|.*\||\S {4,}\S|[^\s.,:!?] {3}\S|[^\s.:!?] {2,}\S.*\S {2,}\S")
_PARAMETER = re.compile(r"[\w*.`']+(?:, [\w*.`']+)* :(?: |$)")
# what begins a paragraph whose other lines may be indented: a bullet, :param x:, @param x, .. note::
_BULLET = re.compile(r"[-*+•]\s+|:\w[\w *.]*:\s|@\w+\s+"
                     r"|\.\. (?:note|warning|deprecated|versionadded|versionchanged|seealso|hint|tip|important)::\s*")
_NAMED = re.compile(r"\[\d+\]\s+|\(?(?:\d{1,2}|[a-zA-Z])[.)]\s+|(?=[\w.*]+(?:\([^()]*\))?(?:\s--|:)\s)")


def prose(docstring: str) -> Iterator[str]:
    """The paragraphs of English in a docstring, each on one line and without markup."""
    block: list[str] = []
    depth, hanging = 0, False         # how far the block is indented; whether its other lines may be so further
    for indent, line in chain(_without_code(cleandoc(docstring)), [(0, "")]):
        other_depth = indent < depth if hanging else indent != depth
        beside = hanging and indent == depth
        marker = _BULLET.match(line) or (_NAMED.match(line) if not block or other_depth or beside else None)
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
    """(indentation, text) of the lines that may be prose, and an empty text in the place of the others."""
    code: int | None = None           # lines indented further than this are code
    example = False                   # inside an interactive session, which ends with a blank line
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
_REFERENCE = re.compile(r"\s?\[[\w*#]+\]_|\\(?=[*_`|])")       # to a footnote; and the backslash of an escape


def _plain(text: str) -> str:
    """One line, without markup; of mathematics the letters stay."""
    text = _ROLE.sub(r"\1", _HYPHEN.sub("-", text))
    text = _REFERENCE.sub("", _EMPHASISED.sub(r"\2", _QUOTED.sub(r"\1\2", text)))
    text = " ".join(text.replace("`", "'").split())
    return text[:-1] if text.endswith("::") else text


_FREQUENT = {"a", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "each", "for", "from", "has", "have",
             "if", "in", "into", "is", "it", "its", "may", "must", "no", "not", "of", "on", "one", "or", "should",
             "that", "the", "this", "to", "two", "used", "when", "which", "will", "with", "you"}
_WORD = re.compile(r"[\"'“‘(\[]*[A-Za-z]+(?:['’-][A-Za-z]+)*[\"'”’)\].,;:!?]*")
# comments in code, formulas, notes of the authors to themselves, and who they are
_NO_PROSE = re.compile(r"^#|\\\w+\{|[_^]\{|\b(?:X{3,}|TO.?DO|FIX.?ME)\b|\(c\) ?\d|Copyright")


def _is_english(text: str) -> bool:
    """Six words or more, nearly all of them spelled with letters, and some that every English text has."""
    words = text.split()
    if len(words) < 6 or _NO_PROSE.search(text):
        return False
    spelled = sum(_WORD.fullmatch(word) is not None for word in words)
    frequent = sum(map(_FREQUENT.__contains__, text.lower().split()))
    return spelled >= 0.75 * len(words) and frequent >= 0.1 * len(words)
