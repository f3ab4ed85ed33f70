"""From text to a corpus directory, on all cores and in bounded memory.

This process reads, drops duplicate paragraphs and writes; workers cut sentences and look up ids. Only a few
blocks of text are on their way at any time, and their order is kept, so the result does not depend on the
number of workers.
"""

import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from hashlib import blake2b
from itertools import chain, islice
from multiprocessing import get_context, parent_process
from os import PathLike
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError
from ...files import locked, replace_directory, write_files
from ...interrupts import children_without_interrupts, held_interrupts
from ..wordpiece.tokenizer import WordPieceTokenizer
from .corpus import MANIFEST, Manifest
from .dedup import Deduplicator
from .sentences import sentences
from .sources import Part, ReadingReport, Source, find_sources, paragraphs

_BLOCK = 1 << 19              # characters of text in one piece of work
Progress = Callable[[int, int], None]     # bytes read, tokens written


class _Work(NamedTuple):
    """Consecutive documents, or parts of them. `continues`: the first one began in the block before."""

    documents: list[list[str]]
    continues: bool


class _Result(NamedTuple):
    tokens: bytes
    sentence_lengths: npt.NDArray[np.uint32]
    sentences_per_document: list[int]
    unknown: int


_tokenizer: WordPieceTokenizer        # of a worker process


def _start_worker(tokenizer: WordPieceTokenizer) -> None:
    global _tokenizer
    _tokenizer = tokenizer
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """If the parent is killed it cannot end its workers."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(documents: list[list[str]]) -> _Result:
    return _encode(_tokenizer, documents)


def _encode(tokenizer: WordPieceTokenizer, documents: list[list[str]]) -> _Result:
    texts = [[sentence for paragraph in document for sentence in sentences(paragraph)] for document in documents]
    ids, lengths = tokenizer.ids_array(chain.from_iterable(texts))
    ends = np.cumsum([len(document) for document in texts])
    with_tokens = np.concatenate([[0], np.cumsum(lengths > 0)])          # sentences with tokens before each
    per_document = np.diff(with_tokens[ends], prepend=0).tolist()
    return _Result(ids.astype(token_dtype(len(tokenizer))).tobytes(), lengths[lengths > 0], per_document,
                   int((ids == tokenizer.vocabulary.unk).sum()))


def _with_shorter_sentences(result: _Result, longest: int) -> _Result:
    """With sentences of more than `longest` tokens, of a text that has no ends of sentences, cut into several."""
    lengths = result.sentence_lengths.astype(np.int64)
    parts = -(-lengths // longest)
    cut = np.full(int(parts.sum()), longest)
    cut[np.cumsum(parts) - 1] = lengths - (parts - 1) * longest           # the last part of each has what is left
    before = np.concatenate([[0], np.cumsum(parts)])
    per_document = np.diff(before[np.cumsum(result.sentences_per_document)], prepend=0).tolist()
    return result._replace(sentence_lengths=cut.astype(np.uint32), sentences_per_document=per_document)


def token_dtype(vocab_size: int) -> str:
    """The smallest type that holds every id."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


def prepare(names: Iterable[str], tokenizer: WordPieceTokenizer, out: str | PathLike[str], *,
            heldout: float = 0.01, deduplicate: bool = True, strict: bool = False, workers: int | None = None,
            longest_document: int = 0, overwrite: bool = False, progress: Progress | None = None) -> Manifest:
    """Make the directory `out` from text files, folders, patterns or "-"; it appears when it is whole.

    `heldout` is the share of documents kept for evaluation, chosen by their first paragraph. With
    `longest_document` one of more tokens is cut into several, between sentences, so that something can be held out
    of a text that is a single document. More than one worker are started as new processes: a script that calls
    this needs `if __name__ == "__main__":`.
    """
    if not 0 <= heldout < 1:
        raise CorpusError(f"heldout must be in [0, 1), not {heldout}.")
    if longest_document < 0:
        raise CorpusError(f"longest_document must be at least 0, which is no limit, not {longest_document}.")
    target = Path(out).resolve()
    _require_free(target, overwrite)
    sources = find_sources(names)
    partial = target.parent / f".{target.name}.partial"
    new_parents = [parent for parent in target.parents if not parent.exists()]
    try:
        with ExitStack() as stack:
            _lock(partial, target, stack)
            writer = stack.enter_context(_Writer(partial, tokenizer, heldout, longest_document))
            report = ReadingReport()
            blocks = _blocks(paragraphs(sources, report, strict), Deduplicator(partial) if deduplicate else None,
                             writer.manifest)
            for work, result in _encoded(blocks, tokenizer, os.cpu_count() or 1 if workers is None else workers, stack):
                writer.write(work, result)
                if progress is not None:
                    progress(report.bytes_read, writer.manifest.tokens)
            options: dict[str, object] = {"heldout": heldout, "deduplicate": deduplicate}
            if longest_document:
                options["longest_document"] = longest_document
            manifest = writer.finish(sources, report, options)
            _require_free(target, overwrite)          # another process may have been here meanwhile
            replace_directory(partial, target)
            return manifest
    except OSError as error:
        raise CorpusError(f"Cannot write {target}: {error.strerror or error}.") from None
    except BrokenProcessPool:
        raise CorpusError("A worker process was ended from outside, perhaps for want of memory; "
                          "try again with fewer workers.") from None
    finally:
        if not target.exists():
            for parent in new_parents:
                with suppress(OSError):
                    parent.rmdir()


def _require_free(target: Path, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise CorpusError(f"{target} exists already; name another directory, or say --overwrite.")
    if target.exists() and not (target / MANIFEST).is_file():
        raise CorpusError(f"{target} is not a corpus, so it is not overwritten; name another directory.")


def _lock(partial: Path, target: Path, stack: ExitStack) -> None:
    """Make the directory to work in, or empty that of a run that was killed; refuse one that is in use."""
    partial.mkdir(parents=True, exist_ok=True)
    stack.enter_context(locked(partial, CorpusError(f"Another process is preparing {target}.")))
    stack.callback(shutil.rmtree, partial, ignore_errors=True)
    for left in partial.iterdir():
        left.unlink()


def _blocks(stream: Iterable[str | None], seen: Deduplicator | None, manifest: Manifest) -> Iterator[_Work]:
    """Paragraphs in blocks of about _BLOCK characters, duplicates left out and counted."""
    documents: list[list[str]] = [[]]
    size, continues = 0, False
    for paragraph in stream:
        if paragraph is None:
            if documents[-1] or (continues and len(documents) == 1):
                documents.append([])
            continue
        manifest.paragraphs += 1      # each part of a line that is too long counts
        if seen is not None and not isinstance(paragraph, Part) and not seen.add(paragraph):
            manifest.duplicate_paragraphs += 1
            continue
        documents[-1].append(paragraph)
        size += len(paragraph)
        if size >= _BLOCK:
            yield _Work(documents, continues)
            documents, size, continues = [[]], 0, True
    if documents != [[]]:
        yield _Work(documents, continues)


def _encoded(blocks: Iterator[_Work], tokenizer: WordPieceTokenizer, workers: int,
             stack: ExitStack) -> Iterator[tuple[_Work, _Result]]:
    """Each block with its result, in order; at most two blocks a worker are under way."""
    begin = list(islice(blocks, 2))
    blocks = chain(begin, blocks)
    if workers <= 1 or len(begin) < 2:                    # little text is not worth the start of a process
        for block in blocks:
            yield block, _encode(tokenizer, block.documents)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (tokenizer,))
    stack.callback(_shut, pool)
    waiting: deque[tuple[_Work, Future[_Result]]] = deque()
    for block in blocks:
        with held_interrupts(), children_without_interrupts():        # a half-started process would never end
            waiting.append((block, pool.submit(_work, block.documents)))
        if len(waiting) >= 2 * workers:
            work, future = waiting.popleft()
            yield work, future.result()
    while waiting:
        work, future = waiting.popleft()
        yield work, future.result()


def _shut(pool: ProcessPoolExecutor) -> None:
    with held_interrupts():
        pool.shutdown(cancel_futures=True)


class _Writer:
    """Appends results to the files of a corpus."""

    def __init__(self, directory: Path, tokenizer: WordPieceTokenizer, heldout: float, longest_document: int):
        self.directory, self.tokenizer, self.heldout = directory, tokenizer, heldout
        self.longest, self._length = longest_document, 0          # tokens of a document; of the one at hand so far
        self.manifest = Manifest(dtype=token_dtype(len(tokenizer)), vocab_size=len(tokenizer),
                                 vocab_digest=tokenizer.vocabulary.digest(), lowercase=tokenizer.lowercase,
                                 strip_accents=tokenizer.strip_accents)
        self._files = {name: (directory / f"{name}.bin").open("wb")
                       for name in ("tokens", "sentences", "documents", "splits")}
        self._opening: str | None = None      # first paragraph of a document that has no tokens so far
        self._draws: tuple[tuple[float, int], tuple[float, int]] | None = None    # lowest and highest, with document

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            file.close()

    def write(self, work: _Work, result: _Result) -> None:
        m = self.manifest
        if self.longest:
            result = _with_shorter_sentences(result, self.longest)
        self._files["tokens"].write(result.tokens)
        lengths = result.sentence_lengths.astype(np.uint64)
        starts = m.tokens + np.cumsum(lengths) - lengths
        self._files["sentences"].write(starts.astype(np.uint64).tobytes())
        sentence = m.sentences
        for number, (document, count) in enumerate(zip(work.documents, result.sentences_per_document, strict=True)):
            if not (number == 0 and work.continues):
                self._opening = document[0] if document else None
            if self._opening is not None and count:
                self._begin_document(sentence, self._opening)
                self._opening = None
            if self.longest:
                self._cut(sentence, lengths[sentence - m.sentences :][:count].tolist())
            sentence += count
        m.tokens += int(lengths.sum())
        m.sentences = sentence
        m.unknown_tokens += result.unknown

    def _cut(self, sentence: int, lengths: list[int]) -> None:
        """Begin a new document before each sentence with which the one at hand would be too long."""
        for number, length in enumerate(lengths, sentence):
            if self._length and self._length + length > self.longest:
                self._begin_document(number, f"part {self.manifest.documents}")
            self._length += length

    def _begin_document(self, sentence: int, paragraph: str) -> None:
        self._length = 0
        draw = int.from_bytes(blake2b(paragraph.encode("utf-8", "surrogatepass"), digest_size=8,
                                      person=b"heldout").digest(), "little") / 2**64
        held = draw < self.heldout
        this = (draw, self.manifest.documents)
        lowest, highest = self._draws or (this, this)
        self._draws = min(lowest, this), max(highest, this)
        self._files["documents"].write(np.uint64(sentence).tobytes())
        self._files["splits"].write(bytes([held]))
        self.manifest.documents += 1
        self.manifest.heldout_documents += held

    def _move(self, document: int, split: int) -> None:
        self._files["splits"].seek(document)
        self._files["splits"].write(bytes([split]))
        self.manifest.heldout_documents += 1 if split else -1

    def finish(self, sources: list[Source], report: ReadingReport, options: dict[str, object]) -> Manifest:
        """Close the indices, write the tokenizer and, last, the manifest."""
        m = self.manifest
        if not m.tokens:
            raise CorpusError("There is no text in " + ", ".join(source.name for source in sources[:3])
                              + (" ..." if len(sources) > 3 else "") + ".")
        self._files["sentences"].write(np.uint64(m.tokens).tobytes())
        self._files["documents"].write(np.uint64(m.sentences).tobytes())
        if self.heldout and self._draws is not None:      # neither split is left empty, a sole document is for training
            (_, lowest), (_, highest) = self._draws
            if m.heldout_documents == 0 and m.documents > 1:
                self._move(lowest, 1)
            elif m.heldout_documents == m.documents:
                self._move(highest, 0)
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        m.bytes_read, m.invalid_bytes, m.first_invalid = report.bytes_read, report.invalid, report.first_invalid
        m.sources, m.options = [source.name for source in sources], options
        for run in self.directory.glob("dedup-*.bin"):
            run.unlink()
        self.tokenizer.save(self.directory)
        write_files(self.directory, {MANIFEST: m.to_json().encode()})
        return m
