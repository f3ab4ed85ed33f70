"""Prepare a corpus from text, on all cores and in bounded memory.

The main process reads, drops duplicate paragraphs and writes; workers split sentences and tokenize. Only a few blocks
of text are in flight at any time, and their order is kept, so the result does not depend on the number of workers.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from hashlib import blake2b
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import CorpusError
from ...files import claimed, write_files
from ...processes import WorkerEndedError, can_be_sent, worker_pool
from ..tokenizer import Tokenizer
from .corpus import ARRAYS, FILES, MANIFEST, SUMS, Manifest
from .dedup import Deduplicator
from .file_array import block_sums
from .sentences import split_sentences
from .sources import LineFragment, ReadingReport, Source, find_sources, paragraphs

_BLOCK = 1 << 19              # characters of text sent to a worker at a time
Progress = Callable[[int, int], None]     # bytes read, tokens written


class _Block(NamedTuple):
    """Consecutive documents; if `continues`, the first one began in the previous block."""

    documents: list[list[str]]
    continues: bool


class _Result(NamedTuple):
    tokens: bytes
    sentence_lengths: npt.NDArray[np.uint32]
    sentences_per_document: list[int]
    unknown: int


_tokenizer: Tokenizer        # in a worker process


def _start_worker(tokenizer: Tokenizer) -> None:
    global _tokenizer
    _tokenizer = tokenizer


def _work(documents: list[list[str]]) -> _Result:
    return _encode(_tokenizer, documents)


def _encode(tokenizer: Tokenizer, documents: list[list[str]]) -> _Result:
    texts = [[sentence for paragraph in document for sentence in _sentences(paragraph, tokenizer.keeps_spaces)]
             for document in documents]
    ids, lengths = tokenizer.ids_array(chain.from_iterable(texts))
    ends = np.cumsum([len(document) for document in texts])
    with_tokens = np.concatenate([[0], np.cumsum(lengths > 0)])          # non-empty sentences before each one
    per_document = np.diff(with_tokens[ends], prepend=0).tolist()
    return _Result(ids.astype(token_dtype(len(tokenizer))).tobytes(), lengths[lengths > 0], per_document,
                   int((ids == tokenizer.vocabulary.roles.get("unk", -1)).sum()))


def _sentences(paragraph: str, spaces: bool) -> list[str]:
    """The sentences of a paragraph, with the spaces between them if they matter."""
    first, *others = split_sentences(paragraph)
    return [first, *(" " + sentence for sentence in others)] if spaces else [first, *others]


def _with_shorter_sentences(result: _Result, longest: int) -> _Result:
    """Sentences of more than `longest` tokens, from text without punctuation, are split into several."""
    lengths = result.sentence_lengths.astype(np.int64)
    parts = -(-lengths // longest)
    cut = np.full(int(parts.sum()), longest)
    cut[np.cumsum(parts) - 1] = lengths - (parts - 1) * longest           # the last part has the remainder
    before = np.concatenate([[0], np.cumsum(parts)])
    per_document = np.diff(before[np.cumsum(result.sentences_per_document)], prepend=0).tolist()
    return result._replace(sentence_lengths=cut.astype(np.uint32), sentences_per_document=per_document)


def token_dtype(vocab_size: int) -> str:
    """The smallest type that holds every id."""
    return "uint16" if vocab_size <= 1 << 16 else "uint32"


def prepare(names: Iterable[str | Source], tokenizer: Tokenizer, out: str | PathLike[str], *,
            heldout: float = 0.01, deduplicate: bool = True, strict: bool = False, workers: int | None = None,
            longest_document: int = 0, overwrite: bool = False, progress: Progress | None = None) -> Manifest:
    """Prepare the corpus `out` from text files, folders, patterns, "-" or sources; it appears only when complete.

    `heldout` is the share of documents kept for evaluation, chosen by a hash of their first paragraph. A document of
    more than `longest_document` tokens is split between sentences, so that part of a single long document can be held
    out. Of more than a block of text, `workers` processes encode parts at a time; None for one a core.
    """
    if not 0 <= heldout < 1:
        raise CorpusError(f"heldout must be at least 0 and less than 1, not {heldout}.")
    if longest_document < 0:
        raise CorpusError(f"longest_document must be at least 0 (no limit), not {longest_document}.")
    target = Path(out).resolve()
    _require_free(target, overwrite)
    sources = find_sources(names)
    try:
        with claimed(target, CorpusError(f"Another process is preparing {target}."), CorpusError) as claim, \
                claim.filled(lambda old: _require_free(old, overwrite)) as partial, ExitStack() as stack:
            _require_free(target, overwrite)          # a process that was here before may have written it
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
            return writer.finish(sources, report, options)
    except WorkerEndedError:
        raise CorpusError("A worker process was killed, perhaps because memory ran out; try again with fewer "
                          "workers.") from None


def _require_free(target: Path, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise CorpusError(f"{target} already exists; choose another directory, or replace it with --overwrite.")
    if target.exists() and not (target / MANIFEST).is_file():
        raise CorpusError(f"{target} is not a corpus and is not overwritten; choose another directory.")
    if target.exists() and (others := sorted({file.name for file in target.iterdir()} - FILES)):
        raise CorpusError(f"{target} has files that are not a corpus', such as {others[0]}, and is not overwritten; "
                          "choose another directory.")


def _blocks(stream: Iterable[str | None], duplicates: Deduplicator | None, manifest: Manifest) -> Iterator[_Block]:
    """Blocks of about _BLOCK characters, without duplicate paragraphs, which are counted."""
    documents: list[list[str]] = [[]]
    size, continues = 0, False
    for paragraph in stream:
        if paragraph is None:
            if documents[-1] or (continues and len(documents) == 1):
                documents.append([])
            continue
        manifest.paragraphs += 1      # each fragment of a long line counts
        if duplicates is not None and not isinstance(paragraph, LineFragment) and not duplicates.add(paragraph):
            manifest.duplicate_paragraphs += 1
            continue
        documents[-1].append(paragraph)
        size += len(paragraph)
        if size >= _BLOCK:
            yield _Block(documents, continues)
            documents, size, continues = [[]], 0, True
    if documents != [[]]:
        yield _Block(documents, continues)


def _encoded(blocks: Iterator[_Block], tokenizer: Tokenizer, workers: int,
             stack: ExitStack) -> Iterator[tuple[_Block, _Result]]:
    """Each block with its result, in order; at most two blocks per worker are in flight."""
    first = list(islice(blocks, 2))
    blocks = chain(first, blocks)
    if workers <= 1 or len(first) < 2 or not can_be_sent(tokenizer):          # a single block is not worth a process
        for block in blocks:
            yield block, _encode(tokenizer, block.documents)
        return
    submit = stack.enter_context(worker_pool(workers, _start_worker, tokenizer))
    waiting: deque[tuple[_Block, Future[_Result]]] = deque()
    for block in blocks:
        waiting.append((block, submit(_work, block.documents)))
        if len(waiting) >= 2 * workers:
            work, future = waiting.popleft()
            yield work, future.result()
    while waiting:
        work, future = waiting.popleft()
        yield work, future.result()


class _Writer:
    """Appends results to the files of a corpus."""

    def __init__(self, directory: Path, tokenizer: Tokenizer, heldout: float, longest_document: int):
        self.directory, self.tokenizer, self.heldout = directory, tokenizer, heldout
        self.longest, self._length = longest_document, 0          # tokens allowed; in the current document so far
        self.manifest = Manifest(dtype=token_dtype(len(tokenizer)), vocab_size=len(tokenizer),
                                 vocab_digest=tokenizer.vocabulary.digest(), lowercase=tokenizer.lowercase,
                                 strip_accents=tokenizer.strip_accents)
        self._files = {name: (directory / f"{name}.bin").open("wb")
                       for name in ("tokens", "sentences", "documents", "splits")}
        self._first_paragraph: str | None = None      # of a document that has no tokens yet
        # the lowest and the highest draw, with their documents
        self._draws: tuple[tuple[float, int], tuple[float, int]] | None = None

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            file.close()

    def write(self, work: _Block, result: _Result) -> None:
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
                self._first_paragraph = document[0] if document else None
            if self._first_paragraph is not None and count:
                self._begin_document(sentence, self._first_paragraph)
                self._first_paragraph = None
            if self.longest:
                self._cut(sentence, lengths[sentence - m.sentences :][:count].tolist())
            sentence += count
        m.tokens += int(lengths.sum())
        m.sentences = sentence
        m.unknown_tokens += result.unknown

    def _cut(self, sentence: int, lengths: list[int]) -> None:
        """Begin a new document before each sentence that would make the current one too long."""
        for number, length in enumerate(lengths, sentence):
            if self._length and self._length + length > self.longest:
                self._begin_document(number, f"part {self.manifest.documents}")
            self._length += length

    def _begin_document(self, sentence: int, paragraph: str) -> None:
        self._length = 0
        draw = int.from_bytes(blake2b(paragraph.encode("utf-8", "surrogatepass"), digest_size=8,
                                      person=b"heldout").digest(), "little") / 2**64
        held = draw < self.heldout
        drawn = (draw, self.manifest.documents)
        lowest, highest = self._draws or (drawn, drawn)
        self._draws = min(lowest, drawn), max(highest, drawn)
        self._files["documents"].write(np.uint64(sentence).tobytes())
        self._files["splits"].write(bytes([held]))
        self.manifest.documents += 1
        self.manifest.heldout_documents += held

    def _move(self, document: int, split: int) -> None:
        self._files["splits"].seek(document)
        self._files["splits"].write(bytes([split]))
        self.manifest.heldout_documents += 1 if split else -1

    def finish(self, sources: list[Source], report: ReadingReport, options: dict[str, object]) -> Manifest:
        """Complete the index, write the tokenizer and, last, the manifest."""
        m = self.manifest
        if not m.tokens:
            raise CorpusError("There is no text in " + ", ".join(source.name for source in sources[:3])
                              + (" ..." if len(sources) > 3 else "") + "."
                              + (f" {next(iter(report.skipped.values()))}" if report.skipped else ""))
        self._files["sentences"].write(np.uint64(m.tokens).tobytes())
        self._files["documents"].write(np.uint64(m.sentences).tobytes())
        if self.heldout and self._draws is not None:      # no split may be empty; a single document is for training
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
        m.skipped = report.skipped
        for run in self.directory.glob("dedup-*.bin"):
            run.unlink()
        self.tokenizer.save(self.directory)
        sums = b"".join(block_sums(self.directory / name) for name in ARRAYS)
        m.digest = m.digest_with(sums)
        write_files(self.directory, {SUMS: sums, MANIFEST: m.to_json().encode()})
        return m
