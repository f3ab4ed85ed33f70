"""The ruler: one row of figures for any model, whatever it was trained to do, so that models are chosen by the whole
row and not by a loss alone.

    loss          held-out, 15 % of the tokens chosen, of which 80 % show [MASK], 10 % another token, 10 % themselves
    mask_loss     the same tokens, all of them hidden: by [MASK], or by coming last in the order (two streams)
    causal_loss   the next token of the same sequences, for causal models
    blimp         minimal pairs, the same of each paradigm: the mean over paradigms   (zero_shot/text_scores.py)
    agreement     verbs with exactly one attractor
    sst2_N        accuracy after fine-tuning on N examples; the best epoch is chosen on further training examples

A figure that a model cannot have is None. Every figure is cached by the content of what it depends on, so that an
interrupted measurement goes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ..core.config import ModelConfig
from ..core.model import MiniBERT
from ..errors import ConfigError, DataError
from ..evaluation.formats.agreement import AgreementItem, agreement_files, read_agreement
from ..evaluation.formats.minimal_pairs import MinimalPair, data_files, read_minimal_pairs
from ..evaluation.formats.tables import Labelled, read_table
from ..evaluation.ngrams import NgramCounts
from ..evaluation.samples import sampled
from ..evaluation.suite.result_cache import cached_result, content_digest
from ..evaluation.tasks.run import run_task, usual_learning_rate
from ..evaluation.tasks.texts import Classification
from ..evaluation.tasks.texts.bag_of_words import bag_of_words_accuracy
from ..evaluation.zero_shot.agreement import agreement, ngram_agreement
from ..evaluation.zero_shot.minimal_pairs import minimal_pairs, ngram_averages, sample_paradigms
from ..factory import load
from ..objectives.causal import CausalLM, NextTokenBatches
from ..objectives.masked import heldout_batches, masked_predictions
from ..text.corpora.corpus import MANIFEST, Corpus
from ..text.opening import load_tokenizer
from ..text.tokenizer import Tokenizer
from ..training.config import TrainingConfig
from ..training.finetune import FinetuneConfig
from ..workers import workers

Scores = dict[str, float | None]
Report = Callable[[str], None]                    # what is being measured


@dataclass(frozen=True)
class Tuning:
    """Fine-tuning on some examples, with some seeds."""

    examples: int
    epochs: int
    seeds: int


@dataclass(frozen=True)
class RulerSizes:
    """How much is measured."""

    length: int = 64                      # tokens of a held-out sequence
    sequences: int = 2048
    pairs: int = 100                      # of each paradigm
    tunings: tuple[Tuning, ...] = (Tuning(500, 10, 2), Tuning(4000, 4, 1))
    stopping: int = 500                   # further training examples, to choose the epoch by


class _Texts(Classification):
    """Texts to tune on; the bag of words is measured apart, once for all models."""

    def baselines(self) -> dict[str, float]:
        return {}


@dataclass(frozen=True)
class Ruler:
    """A folder with blimp/, agreement/ and sst2/, and a corpus with held-out text, if there is one."""

    folder: Path
    data: Path | None = None
    finetuning: bool = True
    sizes: RulerSizes = field(default_factory=RulerSizes)
    fresh: bool = False

    def __post_init__(self) -> None:
        """Refuse a folder that lacks something, before anything is trained."""
        parts = ("blimp/*.jsonl", "agreement/*.text") + (("sst2/train.tsv", "sst2/dev.tsv") if self.finetuning else ())
        for part in parts:
            if not any(self.folder.glob(part)):
                raise DataError(f"{self.folder} has no {part}; the ruler reads minimal pairs from blimp/, verbs from "
                                "agreement/ and, unless there is no fine-tuning, labelled texts from sst2/.")
        if self.data is not None and not Corpus(self.data).manifest.heldout_documents:
            raise DataError(f"{self.data} has no held-out documents, so no held-out loss can be measured; prepare it "
                            "with --heldout 0.01.")

    def description(self) -> dict[str, Any]:
        """What its figures depend on besides the model: sizes, and the content of its data."""
        files = [*self._pair_files(), *self._verb_files(), *(self._text_files() if self.finetuning else ())]
        return {"sizes": asdict(self.sizes), "finetuning": self.finetuning,
                "data": blake2b("".join(content_digest(file) for file in files).encode(), digest_size=16).hexdigest()}

    # ---------------------------------------------------------------- one model

    def measure(self, name: str | Path, *, threads: int = 0, report: Report = lambda what: None) -> Scores:
        """The figures of a model, by name or directory."""
        opened: list[tuple[MiniBERT, Tokenizer]] = []

        def model() -> tuple[MiniBERT, Tokenizer]:        # opened only if something is not in the cache
            if not opened:
                opened.append((load(name), load_tokenizer(name)))
            return opened[0]

        def part(what: str, compute: Callable[[MiniBERT, Tokenizer], Scores], files: Sequence[Path]) -> Scores:
            def measured() -> dict[str, Any]:
                report(what)
                return compute(*model())

            return cached_result(f"ruler-{what}", asdict(self.sizes), [name, *files], measured, fresh=self.fresh)

        found: Scores = {}
        if self.data is not None:
            found |= part("losses", partial(self._losses, threads=threads), self._corpus_files())
        found |= part("grammar", partial(self._grammar, threads=threads), self._pair_files())
        found |= part("agreement", partial(self._agreement, threads=threads), self._verb_files())
        if self.finetuning:
            for tuning in self.sizes.tunings:
                found |= part(f"sst2-{tuning.examples}", partial(self._tuned, tuning=tuning, threads=threads),
                              self._text_files())
        return found

    def _losses(self, model: MiniBERT, tokenizer: Tokenizer, *, threads: int) -> Scores:
        corpus = Corpus(self._data())
        corpus.require_vocabulary(tokenizer)
        if model.config.max_seq_length < self.sizes.length:
            raise ConfigError(f"The ruler's held-out sequences have {self.sizes.length} tokens; the model takes "
                              f"{model.config.max_seq_length}.")
        settings = TrainingConfig(max_seq_length=self.sizes.length, eval_sequences=self.sizes.sequences)
        made: Scores = {"loss": None, "mask_loss": None, "causal_loss": None}
        with workers(threads) as team:
            if not model.modules.predicts_words:
                return made
            if model.modules.causal:
                ahead = heldout_batches(corpus, settings, made_by=NextTokenBatches)
                return made | {"causal_loss": CausalLM(model).evaluate(ahead, team)["causal"]}
            batches = heldout_batches(corpus, settings)
            orders = model.modules.stack.orders
            if not orders:
                made["loss"] = float(masked_predictions(model, batches, team).loss.mean())
            hidden = [batch._replace(
                input_ids=np.where(batch.mask_positions, tokenizer.vocabulary.mask, batch.target_ids),
                order=batch.mask_positions.astype(np.int64) if orders else None) for batch in batches]
            return made | {"mask_loss": float(masked_predictions(model, hidden, team).loss.mean())}

    def _grammar(self, model: MiniBERT, tokenizer: Tokenizer, *, threads: int) -> Scores:
        if not model.modules.has_logits:
            return {"blimp": None}
        found = minimal_pairs(model, tokenizer, self._pairs(), threads=threads)
        return {"blimp": found.average["token"].mean}

    def _agreement(self, model: MiniBERT, tokenizer: Tokenizer, *, threads: int) -> Scores:
        if not model.modules.has_logits:
            return {"agreement": None}
        return {"agreement": agreement(model, tokenizer, self._verbs(), threads=threads).total.accuracy["model"].mean}

    def _tuned(self, model: MiniBERT, tokenizer: Tokenizer, *, tuning: Tuning, threads: int) -> Scores:
        train, stopping, measured = self._texts(tuning)
        task = _Texts(train, stopping, tokenizer, model.config, test=measured)
        config = FinetuneConfig(epochs=tuning.epochs, learning_rate=usual_learning_rate(model), threads=threads)
        found, _ = run_task(task, model, config, seeds=range(tuning.seeds), random_init=False)
        return {sst2(tuning): found.mean["accuracy"].mean}

    # ---------------------------------------------------------------- what a model is held against

    def random_weights(self, config: ModelConfig, tokenizer_of: str | Path, *, threads: int = 0,
                       report: Report = lambda what: None) -> Scores:
        """Fine-tuning of a model of this config with random weights."""
        found: Scores = {}
        for tuning in self.sizes.tunings if self.finetuning else ():
            def compute(tuning: Tuning = tuning) -> dict[str, Any]:
                report(f"random weights, sst2-{tuning.examples}")
                return self._tuned(MiniBERT(config), load_tokenizer(tokenizer_of), tuning=tuning, threads=threads)

            tokenizer = load_tokenizer(tokenizer_of)
            found |= cached_result("ruler-random", {**asdict(self.sizes), "tuning": asdict(tuning),
                                                    "model": config.to_dict(),
                                                    "vocabulary": tokenizer.vocabulary.digest()},
                                   self._text_files(), compute, fresh=self.fresh)
        return found

    def baselines(self, tokenizer_of: str | Path, *, report: Report = lambda what: None) -> dict[str, Scores]:
        """Figures of scorers that are no models, by name: unigram and bigram counts of the corpus, a bag of words."""
        found: dict[str, Scores] = {}
        if self.data is not None:
            def count() -> dict[str, Any]:
                report("n-grams")
                tokenizer = load_tokenizer(tokenizer_of)
                counts = NgramCounts.of([self._data()], tokenizer)
                pairs, verbs = (ngram_averages(tokenizer, self._pairs(), counts),
                                ngram_agreement(tokenizer, self._verbs(), counts))
                return {"unigram": {"blimp": pairs["unigram"].mean, "agreement": verbs["frequent"].mean},
                        "bigram": {"blimp": pairs["bigram"].mean, "agreement": verbs["bigram"].mean}}

            found |= cached_result("ruler-ngrams", {**asdict(self.sizes), "tokenizer": str(tokenizer_of)},
                                   [*self._corpus_files(), *self._pair_files(), *self._verb_files()], count,
                                   fresh=self.fresh)
        if self.finetuning:
            def bags() -> dict[str, Any]:
                report("bag of words")
                return {sst2(tuning): self._bag(tuning) for tuning in self.sizes.tunings}

            found["bag of words"] = cached_result("ruler-bag", asdict(self.sizes), self._text_files(), bags,
                                                  fresh=self.fresh)
        return found

    def _bag(self, tuning: Tuning) -> float:
        train, stopping, measured = self._texts(tuning)
        labels = sorted({record.label for record in (*train, *stopping, *measured)})
        return bag_of_words_accuracy(train, stopping, labels, measured)

    # ---------------------------------------------------------------- the data

    def _data(self) -> Path:
        assert self.data is not None
        return self.data

    def _corpus_files(self) -> list[Path]:
        return [self._data() / MANIFEST]                  # which has a digest of the rest

    def _pair_files(self) -> list[Path]:
        return data_files([self.folder / "blimp"])

    def _verb_files(self) -> list[Path]:
        return [file for text in sorted((self.folder / "agreement").glob("*.text")) for file in agreement_files(text)]

    def _text_files(self) -> list[Path]:
        return [self.folder / "sst2" / f"{split}.tsv" for split in ("train", "dev")]

    def _pairs(self) -> list[MinimalPair]:
        return sample_paradigms([pair for file in self._pair_files() for pair in read_minimal_pairs(file)],
                                self.sizes.pairs, seed=0)

    def _verbs(self) -> list[AgreementItem]:
        """Those with exactly one attractor."""
        found = [item for text in sorted((self.folder / "agreement").glob("*.text")) for item in read_agreement(text)
                 if item.attractors == 1]
        if not found:
            raise DataError(f"{self.folder / 'agreement'} has no verb with exactly one attractor.")
        return found

    def _texts(self, tuning: Tuning) -> tuple[list[Labelled], list[Labelled], list[Labelled]]:
        """Examples to tune on, others to choose the epoch by, and those that are measured: the same for all models."""
        train, dev = (read_table(file) for file in self._text_files())
        drawn = sampled(train, self.sizes.stopping, 0, "ruler", "stopping")
        kept = set(drawn)
        rest = [record for record in train if record not in kept]
        return sampled(rest, tuning.examples, 0, "ruler", str(tuning.examples)), drawn, dev


def sst2(tuning: Tuning) -> str:
    """The name of its figure."""
    return f"sst2_{tuning.examples}"
