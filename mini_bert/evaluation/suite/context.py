"""What the parts of an evaluation share: the model, the text, the tasks, and how much of each is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from ...core.model import MiniBERT
from ...core.modules.heads.language import NoHead
from ...errors import InputError
from ...inference.inputs import require_vocabulary
from ...text.corpora.corpus import MANIFEST, Corpus
from ...text.corpora.prepare import prepare
from ...text.corpora.sentences import split_sentences
from ...text.corpora.sources import ReadingReport, find_sources, paragraphs
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ..formats.conllu import Sentence
from ..formats.reading import labelled_words
from ..masked_lm import Frequencies
from ..samples import sampled
from ..tasks.folder import TaskFolder

SPLIT = "train"                       # of the prepared text: all of it
_WORDS = (6, 40)                      # of the sentences whose stability is measured
Report = Callable[[str, int, int], None]          # what is done, how much of it, of how much


@dataclass(frozen=True)
class Sizes:
    """How much is measured; None for all there is. Numbers of runs and epochs are not samples, the rest is."""

    sequences: int | None = None          # of the text, for the masked measurement
    sample_sequences: int = 256           # of each of `samples` samples of the text
    samples: int = 3
    texts: int = 400                      # sentences that are perturbed
    sentences: int | None = None          # of each set of a probe
    probe_seeds: int = 3
    probe_epochs: int = 20
    mlp: bool = True                      # probes with a hidden layer too
    rank_curve: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    examples: int | None = None           # of fine-tuning for texts, and a half of it sentences for entities
    questions: int | None = None
    epochs: int = 5
    runs: int = 3                         # of each fine-tuning
    shares: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)        # of the learning curve
    pairs: int | None = None              # minimal pairs of a paradigm
    verbs: int | None = None
    facts: int | None = None              # of a relation
    words: int | None = None              # pairs or analogies of a file
    contexts: int = 20                    # sentences of the text for a word; 0 for words alone

    def capped(self, most: int | None) -> "Sizes":
        """The same with no sample greater than this."""
        if most is None:
            return self
        if most < 2:
            raise InputError(f"max_samples must be at least 2, not {most}.")
        samples = {"sequences", "sample_sequences", "texts", "sentences", "examples", "questions", "pairs", "verbs",
                   "facts", "words"}
        sizes: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)
                                 if field.name in samples}
        capped: dict[str, Any] = {name: most if size is None else min(size, most) for name, size in sizes.items()}
        return replace(self, **capped)


FULL = Sizes()
QUICK = Sizes(sequences=1024, sample_sequences=64, texts=60, sentences=800, probe_seeds=1, probe_epochs=6, mlp=False,
              rank_curve=(), examples=2000, questions=80, epochs=1, runs=1, shares=(), pairs=20, verbs=2000, facts=50,
              words=1000, contexts=0)


class Context:
    """One evaluation's data, made when it is first asked for; to be used in a `with` block."""

    def __init__(self, model: MiniBERT, tokenizer: WordPieceTokenizer, text: Sequence[str], tasks: TaskFolder,
                 sizes: Sizes, *, train: str | PathLike[str] | None = None, length: int = 64, seed: int = 0,
                 threads: int = 0, report: Report | None = None):
        require_vocabulary(model, tokenizer)
        if not 3 <= length <= model.config.max_seq_length:
            raise InputError(f"The model takes at most {model.config.max_seq_length} tokens, not --length {length}.")
        self.model, self.tokenizer, self.text, self.tasks, self.sizes = model, tokenizer, list(text), tasks, sizes
        self.train = None if train is None else Path(train)
        self.length, self.seed, self.threads = length, seed, threads
        self.report: Report = report or (lambda what, done, total: None)
        self.shared: dict[str, Any] = {}              # what one part has made and another can use
        self._read: dict[Path, list[Sentence]] = {}
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        if self._folder is not None:
            if "corpus" in self.__dict__:
                self.corpus.release()
            self._folder.cleanup()

    @property
    def has_mlm_head(self) -> bool:
        return not isinstance(self.model.parts.head, NoHead)

    @cached_property
    def corpus(self) -> Corpus:
        """All of the text, as tokens."""
        self._folder = TemporaryDirectory()
        made = Path(self._folder.name) / "corpus"
        prepare(self.text, self.tokenizer, made, heldout=0.0, workers=1)
        return Corpus(made)

    @cached_property
    def known(self) -> Corpus | None:
        """The corpus of the training, if it was named."""
        if self.train is None:
            return None
        corpus = Corpus(self.train)
        corpus.require_vocabulary(self.tokenizer)
        return corpus

    @cached_property
    def frequencies(self) -> Frequencies:
        """For guesses of masked tokens: of the training, or of the text itself without each token."""
        return Frequencies(self.known or self.corpus, self.model.config.vocab_size, leave_out=self.known is None)

    @cached_property
    def counts(self) -> Frequencies:
        """For scores of other texts: of the training, or of the text."""
        return Frequencies(self.known or self.corpus, self.model.config.vocab_size)

    @property
    def counted(self) -> str:
        """What the counts are of, for a note."""
        return "the training corpus" if self.train is not None else "the text that is measured on"

    def sentences(self, path: Path) -> list[Sentence]:
        """Of a treebank or of columns; a file is read once."""
        if path not in self._read:
            self._read[path] = labelled_words(path)
        return self._read[path]

    def text_sentences(self, most: int, purpose: str) -> list[str]:
        """Some sentences of the text of middling length, drawn by the seed."""
        found = [sentence for paragraph in paragraphs(find_sources(self.text), ReadingReport()) if paragraph is not None
                 for sentence in split_sentences(paragraph) if _WORDS[0] <= len(sentence.split()) <= _WORDS[1]]
        if not found:
            raise InputError(f"The text has no sentence of {_WORDS[0]} to {_WORDS[1]} words.")
        return sampled(found, most, self.seed, purpose)

    def text_files(self) -> list[Path]:
        """What the text and the training's corpus depend on."""
        named = [Path(source.name) for source in find_sources(self.text)]
        return named if self.train is None else [*named, self.train / MANIFEST, self.train / "tokens.bin"]

    def untrained(self) -> MiniBERT:
        """A model of the same shape with random weights."""
        return MiniBERT(self.model.config, dtype=self.model.dtype, seed=self.seed)
