"""What the entries of a timeline are measured on: the run, its corpus, task data, and sample sizes.

Everything is read when it is first asked for, and kept for the snapshots that follow. Samples depend on the seed alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from ...core.model import MiniBERT
from ...evaluation.formats.agreement import AgreementItem, read_agreement
from ...evaluation.formats.conllu import Sentence
from ...evaluation.formats.minimal_pairs import MinimalPair, read_minimal_pairs
from ...evaluation.formats.reading import load_sentences
from ...evaluation.ngrams import NgramCounts
from ...evaluation.probes.sets import ProbeSets, probe_sets
from ...evaluation.probes.word_vectors import align_words
from ...evaluation.samples import sampled
from ...evaluation.tasks.folder import TaskFolder
from ...evaluation.zero_shot.minimal_pairs import sample_paradigms
from ...inference.inputs import batches_by_length, pad_sequences
from ...text.corpora.corpus import MANIFEST, Corpus
from ...text.tokenizer import Tokenizer
from ..doctor.run_record import RunRecord, Unavailable
from ..dynamics.dead_units import Tokens

Made = TypeVar("Made")
_TEXT_BATCHES, _TEXT_SENTENCES = 32, 256          # of held-out text, of eight sequences each, or of the treebank


@dataclass(frozen=True)
class TimelineSizes:
    """How much each entry is measured on."""

    pairs: int = 100                      # of each paradigm
    verbs: int = 500                      # of each number of attractors
    sentences: int = 4000                 # of each set of a probe, and for the heads
    epochs: int = 10                      # of a probe
    rank: int = 64                        # of the structural probe


FULL = TimelineSizes()
QUICK = TimelineSizes(pairs=10, verbs=100, sentences=300, epochs=4, rank=32)


class TimelineData:
    """The data of one timeline."""

    def __init__(self, record: RunRecord, tasks: TaskFolder, sizes: TimelineSizes, *, seed: int = 0, threads: int = 0):
        self.record, self.tasks, self.sizes, self.seed, self.threads = record, tasks, sizes, seed, threads
        self._kept: dict[str, tuple[object, Any]] = {}

    # ---------------------------------------------------------------- what there is

    def missing(self, need: str) -> str | None:
        """Why there is no data of this kind, as part of a sentence; None if there is."""
        if need == "text":
            return self.missing("corpus") and self.missing("treebank")
        if need != "corpus":
            return self.tasks.missing(need)
        try:
            if not self.record.corpus.manifest.heldout_documents:
                return "the run's corpus holds nothing out"
        except Unavailable as reason:
            return str(reason).rstrip(".")
        return None

    def files_of(self, need: str) -> list[Path]:
        """The files that a figure with this need depends on."""
        if need == "text":
            need = "treebank" if self.missing("corpus") else "corpus"
        return [self.corpus.directory / MANIFEST] if need == "corpus" else self.tasks.files_of(need)

    def kept(self, name: str, of: object, make: Callable[[], Made]) -> Made:
        """What `make` gives for an object such as a model, kept until another one is asked for."""
        if name not in self._kept or self._kept[name][0] is not of:
            self._kept[name] = of, make()
        found: Made = self._kept[name][1]
        return found

    # ---------------------------------------------------------------- the data

    @property
    def corpus(self) -> Corpus:
        return self.record.corpus

    def counts(self, tokenizer: Tokenizer) -> NgramCounts | None:
        """N-grams of the text that the run is trained on; None if it is not at hand."""
        if self.missing("corpus"):
            return None
        self.corpus.require_vocabulary(tokenizer)
        return self.kept("counts", None, lambda: NgramCounts(self.corpus.token_chunks("train"), len(tokenizer)))

    @cached_property
    def pairs(self) -> list[MinimalPair]:
        """Some minimal pairs of each paradigm."""
        found = [pair for path in self.tasks.pairs for pair in read_minimal_pairs(path)]
        return sample_paradigms(found, self.sizes.pairs, self.seed)

    @cached_property
    def verbs(self) -> list[AgreementItem]:
        """Some verbs with each number of attractors."""
        found = [item for path in self.tasks.agreement for item in read_agreement(path)]
        by_number = {number: [item for item in found if item.attractors == number]
                     for number in sorted({item.attractors for item in found})}
        return [item for number, items in by_number.items()
                for item in sampled(items, self.sizes.verbs, self.seed, "timeline", str(number))]

    @cached_property
    def _treebank(self) -> dict[str, list[Sentence]]:
        assert self.tasks.treebank is not None
        splits = self.tasks.treebank._asdict()
        return {split: load_sentences(splits[split]) for split in ("train", "dev", "test") if splits[split] is not None}

    def probe_sets(self, model: MiniBERT, tokenizer: Tokenizer) -> ProbeSets:
        """Sentences of the treebank for training, choosing and testing a probe."""
        bank = self._treebank
        return self.kept("probe sets", None, lambda: probe_sets(
            model, tokenizer, bank["train"], bank["test"], bank.get("dev"), max_samples=self.sizes.sentences,
            seed=self.seed))

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Sentences of the treebank's test set."""
        return sampled(self._treebank["test"], self.sizes.sentences, self.seed, "timeline sentences")

    def tokens(self, model: MiniBERT, tokenizer: Tokenizer) -> list[Tokens]:
        """Plain text: held-out sequences of the run's corpus, or else sentences of the treebank."""
        def make() -> list[Tokens]:
            if self.missing("corpus") is None:
                return [Tokens(batch.target_ids, batch.attention_mask, batch.token_types)
                        for batch in self.record.heldout[:_TEXT_BATCHES]]
            windows = align_words(tokenizer, [sentence.words for sentence in self.sentences[:_TEXT_SENTENCES]],
                                  model.config.max_seq_length).windows
            return [Tokens(*pad_sequences([windows[i] for i in numbers], tokenizer.vocabulary.pad))
                    for numbers in batches_by_length(windows, 16)]

        return self.kept("tokens", None, make)
