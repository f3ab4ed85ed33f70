"""The data that the parts of an evaluation share: model, text, tasks, and sample sizes."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from ...core.model import MiniBERT
from ...errors import InputError
from ...inference.inputs import require_vocabulary
from ...text.corpora.corpus import MANIFEST, Corpus
from ...text.corpora.sentences import split_sentences
from ...text.corpora.sources import FileReading, ReadingReport, Source, find_sources, paragraphs
from ...text.corpora.temporary import temporary_corpus
from ...text.tokenizer import Tokenizer
from ..formats.conllu import Sentence
from ..formats.reading import load_sentences
from ..masked_lm import Frequencies
from ..samples import sampled
from ..tasks.folder import TaskFolder

SPLIT = "train"                       # the prepared text has only this split
_WORDS = (6, 40)                      # minimum and maximum of the sentences used for stability
ReportProgress = Callable[[str, int, int], None]          # what is being done, how many are done, of how many


@dataclass(frozen=True)
class SampleSizes:
    """How much data each part uses, None for all of it; and the numbers of seeds, runs and epochs."""

    sequences: int | None = None          # of the text, for masked prediction
    sample_sequences: int = 256           # sequences of each of the `samples` samples of the text
    samples: int = 3
    texts: int = 400                      # sentences that are perturbed
    sentences: int | None = None          # of each set of a probe
    probe_seeds: int = 3
    probe_epochs: int = 20
    mlp: bool = True                      # also probe with a hidden layer
    rank_curve: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    examples: int | None = None           # for fine-tuning on texts; half as many sentences for entities
    questions: int | None = None
    epochs: int = 5
    runs: int = 3                         # fine-tuning runs per task
    shares: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3)        # points of the learning curve
    pairs: int | None = None              # minimal pairs per paradigm
    verbs: int | None = None
    facts: int | None = None              # per relation
    words: int | None = None              # pairs or analogies per file
    contexts: int = 20                    # sentences of the text per word; 0: words alone

    def capped(self, most: int | None) -> "SampleSizes":
        """The same sizes with every sample limited to `most`."""
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


FULL = SampleSizes()
QUICK = SampleSizes(sequences=1024, sample_sequences=64, texts=60, sentences=800, probe_seeds=1, probe_epochs=6,
                    mlp=False, rank_curve=(), examples=2000, questions=80, epochs=1, runs=1, shares=(), pairs=20,
                    verbs=2000, facts=50, words=1000, contexts=0)


class EvaluationContext:
    """The data of one evaluation, prepared on first use; use it in a `with` block."""

    def __init__(self, model: MiniBERT, tokenizer: Tokenizer, text: Sequence[str], tasks: TaskFolder,
                 sizes: SampleSizes, *, train: str | PathLike[str] | None = None, length: int = 64, seed: int = 0,
                 threads: int = 0, report: ReportProgress | None = None,
                 reading: FileReading | None = None):
        require_vocabulary(model, tokenizer)
        if not 3 <= length <= model.config.max_seq_length:
            raise InputError(f"The length must be 3 to {model.config.max_seq_length} tokens, as the model allows, not "
                             f"{length}.")
        self.model, self.tokenizer, self.text, self.tasks, self.sizes = model, tokenizer, list(text), tasks, sizes
        self.reading = reading
        self.train = None if train is None else Path(train)
        self.length, self.seed, self.threads = length, seed, threads
        self.report: ReportProgress = report or (lambda what, done, total: None)
        self.shared: dict[str, Any] = {}              # results of one part that another part can use
        self._read: dict[Path, list[Sentence]] = {}
        self._open = ExitStack()

    def __enter__(self) -> "EvaluationContext":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._open.close()

    @property
    def has_mlm_head(self) -> bool:
        return self.model.modules.predicts_words

    @cached_property
    def corpus(self) -> Corpus:
        """The tokenised text."""
        return self._open.enter_context(temporary_corpus(self.sources(), self.tokenizer))

    @cached_property
    def training_corpus(self) -> Corpus | None:
        """The training corpus of the model, if it was given."""
        if self.train is None:
            return None
        corpus = Corpus(self.train)
        corpus.require_vocabulary(self.tokenizer)
        return corpus

    @cached_property
    def frequencies(self) -> Frequencies:
        """Counts that predict masked tokens: of the training corpus, or of the text without the token itself."""
        return Frequencies(self.training_corpus or self.corpus, self.model.config.vocab_size,
                           leave_out=self.training_corpus is None)

    @cached_property
    def counts(self) -> Frequencies:
        """Counts that score other texts: of the training corpus, or of the text."""
        return Frequencies(self.training_corpus or self.corpus, self.model.config.vocab_size)

    @property
    def counted(self) -> str:
        """The source of the counts, for a note."""
        return "the training corpus" if self.train is not None else "the evaluated text"

    def sentences(self, path: Path) -> list[Sentence]:
        """The sentences of a treebank or of CoNLL columns; a file is read once."""
        if path not in self._read:
            self._read[path] = load_sentences(path)
        return self._read[path]

    def sources(self) -> list[Source]:
        """The sources of the text."""
        return find_sources(self.text, self.reading)

    def text_sentences(self, most: int, purpose: str) -> list[str]:
        """At most `most` sentences of moderate length from the text, drawn by the seed."""
        found = [sentence for paragraph in paragraphs(self.sources(), ReadingReport()) if paragraph is not None
                 for sentence in split_sentences(paragraph) if _WORDS[0] <= len(sentence.split()) <= _WORDS[1]]
        if not found:
            raise InputError(f"The text has no sentence of {_WORDS[0]} to {_WORDS[1]} words.")
        return sampled(found, most, self.seed, purpose)

    def text_files(self) -> list[Path]:
        """The files of the text and of the training corpus."""
        named = [Path(source.name) for source in self.sources()]
        return named if self.train is None else [*named, self.train / MANIFEST, self.train / "tokens.bin"]

    def untrained(self) -> MiniBERT:
        """An untrained model of the same shape."""
        return MiniBERT(self.model.config, dtype=self.model.dtype, seed=self.seed)
