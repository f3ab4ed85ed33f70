"""The corpus of installed documentation: prose, deterministic, and several megabytes."""

import re
import subprocess
import sys
from itertools import islice, pairwise

import pytest

from mini_bert import CorpusError
from mini_bert.text.corpora import pydocs as module
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.pydocs import PydocsSource, prose, pydocs
from mini_bert.text.corpora.sources import FileSource, ReadingReport, find_sources
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer

NUMPY = '''Return the evenly spaced values,
    as `numpy.linspace` does.

    .. versionadded:: 1.2

    Parameters
    ----------
    start : number, optional
        Start of interval.  The interval includes this
        value; the default start value is 0.
    dtype : dtype

    Returns
    -------
    out : ndarray
        Array of evenly spaced values, see :func:`~numpy.linspace` and *another* one [1]_.

    .. note:: For floating point arguments, the length of the
       result is ``ceil((stop - start)/step)`` or one more.

    >>> np.arange(3)
    array([0, 1, 2]) is the result of the call

    It is used like this in the code of a loop::

        for all of the values in this array: print(it)

    =====  ======================================
    name   what it is in the table of this thing
    =====  ======================================

    References
    ----------
    .. [1] A. Writer, "The book of all the evenly spaced
           values", in which there is nothing to read.

    * The first item of a list, which
      is continued here.
    * The second item is not so long.
    '''


@pytest.fixture(scope="module")
def reading() -> tuple[list[str], set[str]]:
    """All lines, and the modules that were imported to find them."""
    before = set(sys.modules)
    return list(pydocs()), set(sys.modules) - before


@pytest.fixture(scope="module")
def lines(reading) -> list[str]:
    return reading[0]


@pytest.fixture(scope="module")
def paragraphs(lines) -> list[str]:
    return [line for line in lines if line]


def test_only_the_prose_of_a_docstring_is_kept():
    assert list(prose(NUMPY)) == [
        "Return the evenly spaced values, as numpy.linspace does.",
        "Start of interval. The interval includes this value; the default start value is 0.",
        "Array of evenly spaced values, see linspace and another one.",
        "For floating point arguments, the length of the result is ceil((stop - start)/step) or one more.",
        "It is used like this in the code of a loop:",
        "The first item of a list, which is continued here.",
        "The second item is not so long.",
    ]


@pytest.mark.parametrize("docstring", [
    "", "Too short to keep.", "=" * 30, "x = [i for i in range(10) if i % 2 == 0]", "# a comment that is in the code",
    "| a table | of the | words |", "Copyright (c) 2001 by the author of this module.",
    "def f(a, b=None, *args, **kwargs): return {a: b}", "spam eggs ham bacon sausage lobster thermidor",
])
def test_text_that_is_not_prose_is_left_out(docstring):
    assert list(prose(docstring)) == []


def test_a_word_split_at_its_hyphen_is_joined():
    assert list(prose("All of the values are left-\naligned in the one-\nand two-column layouts.")) == \
        ["All of the values are left-aligned in the one- and two-column layouts."]


def test_the_order_is_deterministic(lines):
    assert list(islice(pydocs(), 3000)) == lines[:3000]


def test_the_state_of_the_process_does_not_matter(monkeypatch):
    # compiled modules are imported, not parsed, and pytest replaces hooks in sys
    program = """
import mini_bert.text.corpora.pydocs as module
module._documents = lambda: map(module._compiled, module._COMPILED)
print(*module.pydocs(), sep="\\n")
"""
    done = subprocess.run([sys.executable, "-X", "utf8", "-c", program], capture_output=True, encoding="utf-8",
                          check=True)
    monkeypatch.setattr(module, "_documents", lambda: map(module._compiled, module._COMPILED))
    assert done.stdout.splitlines() == list(pydocs())


def test_several_megabytes_in_many_documents(lines, paragraphs):
    assert sum(len(line.encode()) + 1 for line in lines) > 2_000_000
    assert lines.count("") > 400
    assert ("", "") not in pairwise(["", *lines, ""])
    assert sum(map(len, paragraphs)) / len(paragraphs) > 80


def test_paragraphs_are_distinct_single_lines(paragraphs):
    assert len(set(paragraphs)) == len(paragraphs)
    assert all(line == " ".join(line.split()) for line in paragraphs)
    assert min(len(line.split()) for line in paragraphs) >= 6


@pytest.mark.parametrize("mark", [r">>>", r"`", r":[a-z]+:`", r"^\.\. ", r"-----", r"={5}", r"::$", r"\]_"])
def test_code_and_markup_are_gone(paragraphs, mark):
    assert [line for line in paragraphs if re.search(mark, line)] == []


def test_it_is_english(paragraphs):
    text = " ".join(paragraphs)
    assert sum(character.isalpha() or character == " " for character in text) > 0.94 * len(text)
    words = text.lower().split()
    assert 0.05 < words.count("the") / len(words) < 0.10          # as in most English text
    assert sum(line[0].isupper() for line in paragraphs) > 0.6 * len(paragraphs)


@pytest.mark.parametrize("topic", ["An assignment statement evaluates the expression list",       # pydoc's topics
                                   "Return a shallow copy of the list.",                          # compiled, Python
                                   "Draw samples from a Poisson distribution.",                   # compiled, NumPy
                                   "Compute the arithmetic mean along the specified axis.",       # source file, NumPy
                                   "Remove any common leading whitespace from every line in",     # source file, Python
                                   ])
def test_every_kind_of_documentation_is_included(paragraphs, topic):
    assert any(line.startswith(topic) for line in paragraphs)


def test_source_files_are_not_imported(reading):
    assert not {"antigravity", "this", "turtle", "tkinter", "distutils", "idlelib", "pdb"} & reading[1]


def test_the_source_is_found_by_name(lines, tmp_path, monkeypatch):
    source, = find_sources(["pydocs"])
    report = ReadingReport()
    assert isinstance(source, PydocsSource)
    assert list(islice(source.lines(report, strict=True), 50)) == lines[:50]
    assert report.bytes_read == sum(len(line.encode()) + 1 for line in lines[:50])
    with pytest.raises(CorpusError, match="no file or folder pydocs-of-mine"):
        find_sources(["pydocs-of-mine"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pydocs").write_text("a file of that name\n")
    assert isinstance(find_sources(["pydocs"])[0], FileSource)


def test_a_corpus_can_be_prepared_from_it(lines, paragraphs, tmp_path, monkeypatch):
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words(paragraphs[:4000]), 1000))
    monkeypatch.setattr(module, "pydocs", lambda: iter(lines))      # read once for all tests
    manifest = prepare(["pydocs"], tokenizer, tmp_path / "corpus", workers=1)
    assert manifest.sources == ["pydocs"]
    assert manifest.documents == lines.count("") + 1
    assert manifest.duplicate_paragraphs == 0
    assert manifest.paragraphs == len(paragraphs)
    assert manifest.tokens > 600_000
    assert manifest.unknown_tokens < 0.001 * manifest.tokens
    corpus = Corpus(tmp_path / "corpus")
    assert corpus.split("heldout").size > 0
    assert "assert" in tokenizer.decode(corpus.document(0)).lower()
