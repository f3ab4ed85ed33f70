"""Runs for the doctor's tests: an artificial language with known entropies, and healthy or sabotaged training.

The language is a Markov chain over 40 words, each with three possible successors. Word frequencies give about 1.6 nats,
the previous word 0.9 more, and the next word most of the rest. The plateaus are therefore far apart, and a run of a few
seconds shows on which one it is.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

import mini_bert.core.model
from mini_bert import AdamW, MiniBERT, ModelConfig
from mini_bert.randomness import generator
from mini_bert.text.batches import MLMBatch, MLMBatches
from mini_bert.text.corpora.prepare import prepare
from mini_bert.text.corpora.pydocs import pydocs
from mini_bert.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from mini_bert.text.wordpiece.learn import count_words, learn_vocabulary
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig
from mini_bert.training.grow import grow_model
from mini_bert.training.runs.run import resume_run, start_run
from mini_bert.training.trainer import Trainer

WORDS = [a + b for a in "bdfgklmn" for b in ("a", "e", "i", "o", "u")]
MODEL = ModelConfig(num_layers=2, num_heads=2, hidden_size=32, intermediate_size=64, vocab_size=45, max_seq_length=16)
TRAINING = TrainingConfig(steps=240, batch_size=32, learning_rate=3e-3, warmup_steps=20, masking_rate=0.3, init="local",
                          frequency_bias=True, log_every=10, eval_every=20, eval_sequences=64, checkpoint_every=120,
                          threads=1)


def chain() -> np.ndarray:
    """Transition probabilities: 0.6, 0.3 and 0.1 for three successors of each word, some words more frequent."""
    rng = generator(0, "language")
    frequency = 1 / np.arange(1, len(WORDS) + 1)
    P = np.zeros((len(WORDS), len(WORDS)))
    for row in P:
        row[rng.choice(len(WORDS), 3, replace=False, p=frequency / frequency.sum())] = 0.6, 0.3, 0.1
    return P


def sentences(number: int, seed: int, longest: int = 40) -> list[str]:
    P, rng = chain(), generator(seed, "text")
    ends = np.cumsum(P, axis=1)
    made = []
    for length in rng.integers(5, longest, number).tolist():
        word, words = int(rng.integers(len(WORDS))), []
        for draw in rng.random(length).tolist():
            words.append(WORDS[word])
            word = min(int(np.searchsorted(ends[word], draw)), len(WORDS) - 1)
        made.append(" ".join(words))
    return made


def made_corpus(folder: Path, documents: list[str], tokenizer: WordPieceTokenizer, **options) -> Path:
    folder.mkdir(parents=True)
    (folder / "text.txt").write_text("\n\n".join(documents) + "\n")
    prepare([str(folder / "text.txt")], tokenizer, folder / "corpus", workers=1, **{"heldout": 0.1, **options})
    return folder / "corpus"


class RunFactory:
    """Makes each corpus and run once per session, when a test first needs it; test processes share a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def tokenizer(self) -> WordPieceTokenizer:
        return WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *WORDS]))

    def corpus(self, name: str) -> Path:
        return self._made(self.folder / "corpora" / name, CORPORA[name]) / "corpus"

    def run(self, name: str) -> Path:
        return self._made(self.folder / "runs" / name, RUNS[name])

    def _made(self, place: Path, make: Callable[["RunFactory", Path], object]) -> Path:
        """Make it in a temporary folder and rename it when complete; if another process was faster, use that one."""
        if not place.exists():
            made = self.folder / f"making-{os.getpid()}" / place.name
            make(self, made)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                made.rename(place)
            except OSError:
                shutil.rmtree(made)
        return place

    def train(self, out: Path, corpus: str = "chain", model: ModelConfig = MODEL, initial: MiniBERT | None = None,
              batches: Callable[[MLMBatches], object] | None = None, prepare: Callable[[MiniBERT], None] | None = None,
              **settings) -> Trainer:
        """Train on a corpus; `prepare` changes the model before the first step, `batches` wraps the batches."""
        trainer = start_run(model, replace(TRAINING, **settings), self.corpus(corpus), out, initial=initial)
        if prepare is not None:
            prepare(trainer.model)
        if batches is not None:
            trainer.batches = batches(trainer.batches)
        trainer.train()
        return trainer


def documentation(factory: RunFactory, folder: Path) -> Path:
    """The beginning of Python's built-in documentation."""
    texts, size = [], 0
    for line in pydocs():
        texts.append(line)
        size += len(line)
        if size > 120_000:
            break
    documents = "\n".join(texts)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([documents]), 400))
    return made_corpus(folder, [documents], tokenizer, longest_document=200)


def documentation_in_pieces_of_mini(factory: RunFactory, folder: Path) -> Path:
    texts = (factory.corpus("docs").parent / "text.txt").read_text()
    return made_corpus(folder, [texts[:40_000]], WordPieceTokenizer.load("mini"), longest_document=200)


def few_words(factory: RunFactory, folder: Path) -> Path:
    rng = generator(0, "few words")
    texts = [" ".join((WORDS[:13] * 4)[first : first + length]) for first, length
             in zip(rng.integers(0, 13, 300).tolist(), rng.integers(5, 30, 300).tolist(), strict=True)]
    return made_corpus(folder, texts, WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *WORDS[:13]])))


def is_held_out(text: str) -> bool:
    """Will this document be in a tenth that is held out?"""
    draw = blake2b(text.encode(), digest_size=8, person=b"heldout").digest()
    return int.from_bytes(draw, "little") / 2**64 < 0.1


def with_other_training_text(change: Callable[[str], str]) -> Callable[["RunFactory", Path], Path]:
    """Documents of the language, of which those that are trained on are changed."""
    def make(factory: RunFactory, folder: Path) -> Path:
        own, others = sentences(1500, 0), [change(text) for text in sentences(1500, 5)]
        return made_corpus(folder, [text for text in own if is_held_out(text)]
                           + [text for text in others if not is_held_out(text)], factory.tokenizer())

    return make


def with_other_words(text: str) -> str:
    others = dict(zip(WORDS, reversed(WORDS), strict=True))
    return " ".join(others[word] for word in text.split())


def backwards(text: str) -> str:
    return " ".join(reversed(text.split()))


CORPORA: dict[str, Callable[[RunFactory, Path], Path]] = {
    "chain": lambda factory, folder: made_corpus(folder, sentences(1500, 0), factory.tokenizer()),
    "little": lambda factory, folder: made_corpus(folder, sentences(12, 1), factory.tokenizer(), heldout=0.4),
    "repeated": lambda factory, folder: made_corpus(folder, sentences(3, 2, 30) * 120, factory.tokenizer(),
                                                 deduplicate=False),
    "few": few_words,
    "none held out": lambda factory, folder: made_corpus(folder, sentences(12, 1), factory.tokenizer(), heldout=0.0),
    "other words": with_other_training_text(with_other_words),
    "backwards": with_other_training_text(backwards),
    "docs": documentation,
    "docs-mini": documentation_in_pieces_of_mini,
}


# -------------------------------------------------------------------- sabotage


class MaskedSpecials:
    """Masks [CLS] and [SEP] too."""

    def __init__(self, inner: MLMBatches):
        self.inner = inner

    def __getitem__(self, step: int) -> MLMBatch:
        batch = self.inner[step]
        specials = (batch.target_ids == 2) | (batch.target_ids == 3)
        chosen = specials & (generator(step, "specials").random(specials.shape) < 0.5)
        return batch._replace(input_ids=np.where(chosen, 4, batch.input_ids),
                              mask_positions=batch.mask_positions | chosen)


class RandomTargets:
    """Targets that are unrelated to the text."""

    def __init__(self, inner: MLMBatches):
        self.inner = inner

    def __getitem__(self, step: int) -> MLMBatch:
        batch = self.inner[step]
        drawn = generator(step, "targets").integers(0, 45, batch.target_ids.shape)
        return batch._replace(target_ids=np.where(batch.mask_positions, drawn, batch.target_ids))


def attention_to_padding(factory: RunFactory, out: Path) -> None:
    """The model ignores the attention mask, in training and in evaluation."""
    with pytest.MonkeyPatch.context() as patch:
        real = mini_bert.core.model.check_batch

        def without_mask(*arguments):
            ids, _, *rest = real(*arguments)
            return ids, None, *rest

        patch.setattr(mini_bert.core.model, "check_batch", without_mask)
        factory.train(out, steps=80)


def turn_units_off(model: MiniBERT) -> None:
    for layer in range(model.config.num_layers):
        model.params[f"b1_{layer}"][...] = -10


def close_the_last_layer(model: MiniBERT) -> None:
    model.params["ln2_gamma_1"][...] = 1e-6


def look_left_alone(model: MiniBERT) -> None:
    """The only head attends to the previous token; larger scores make it attend to nothing else."""
    model.params["W_Q_0"][...] *= 5


def one_vector_for_all(model: MiniBERT) -> None:
    model.params["b2_1"][...] = 1000 * generator(0, "offset").standard_normal(model.params["b2_1"].shape)


def climb(factory: RunFactory, out: Path) -> None:
    """A wrong sign: every step goes uphill."""
    with pytest.MonkeyPatch.context() as patch:
        step = AdamW.step
        patch.setattr(AdamW, "step", lambda self, gradients, *, scale=1.0, **options:
                      step(self, gradients, scale=-scale, **options))
        factory.train(out, steps=80)


def resumed(factory: RunFactory, out: Path) -> None:
    """Stopped after half of the steps, and resumed from the checkpoint."""
    trainer = start_run(MODEL, replace(TRAINING, seed=3), factory.corpus("chain"), out)
    trainer.state.total_steps = 120
    trainer.train()
    shutil.rmtree(out / "final")
    again = resume_run(out)
    again.state.total_steps = TRAINING.steps
    again.train()


def going_on(factory: RunFactory, out: Path) -> None:
    """An unfinished run whose log ends in an incomplete line."""
    factory.train(out, seed=4, schedule="constant")
    log = out / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-2]) + lines[-2][:40])
    shutil.rmtree(out / "final")


def from_mini(factory: RunFactory, out: Path) -> None:
    """The shipped model continues training on another text."""
    model, tokenizer = mini_bert.load("mini"), WordPieceTokenizer.load("mini")
    initial = grow_model(model, tokenizer, tokenizer)
    factory.train(out, "docs-mini", initial.config, initial, steps=20, batch_size=8, learning_rate=1e-4, warmup_steps=2,
               eval_every=5, eval_sequences=16, log_every=5, checkpoint_every=20, init="normal", frequency_bias=False)


def of_few_words(factory: RunFactory, out: Path) -> None:
    """Thirteen words in a fixed order, a small model with a high learning rate, logged every second step."""
    factory.train(out, "few", replace(MODEL, num_layers=1, hidden_size=16, intermediate_size=32, vocab_size=18),
               steps=60, learning_rate=1e-2, warmup_steps=4, log_every=2, eval_every=10)


def in_another_direction(factory: RunFactory, out: Path) -> None:
    """A model of the language goes on with text that is written backwards: the same words in another order, while the
    held-out text is that of the language."""
    initial = MiniBERT.load(factory.run("recipe") / "final")
    factory.train(out, "backwards", initial=initial, steps=60, learning_rate=3e-4, schedule="constant", eval_every=10,
                  init="normal", frequency_bias=False)


# as wide as Mini, whose learning rate is 1e-3
WIDE = replace(MODEL, num_heads=4, hidden_size=192, intermediate_size=768)
RATES = (1e-2, 2e-2, 3e-2)


def wide(rate: float) -> Callable[[RunFactory, Path], object]:
    return lambda factory, out: factory.train(out, model=WIDE, batch_size=8, learning_rate=rate, steps=60, log_every=5,
                                        eval_every=12, eval_sequences=64, checkpoint_every=60, schedule="constant")


HEALTHY: dict[str, Callable[[RunFactory, Path], object]] = {
    "recipe": lambda factory, out: factory.train(out),
    "recipe, another seed": lambda factory, out: factory.train(out, seed=1, masking_rate=0.15),
    "pre-LN": lambda factory, out: factory.train(out, model=replace(MODEL, block="pre_ln"), seed=2),
    "larger, GELU": lambda factory, out: factory.train(
        out, model=replace(MODEL, num_layers=3, num_heads=4, hidden_size=48, intermediate_size=192, activation="gelu"),
        schedule="wsd", steps=160),
    "resumed": resumed,
    "live": going_on,
    "documentation": lambda factory, out: factory.train(
        out, "docs", replace(MODEL, hidden_size=48, vocab_size=400, max_seq_length=32), steps=240),
    "from shipped weights": from_mini,
    "few words": of_few_words,
    "without frequencies": lambda factory, out: factory.train(       # near ln V for 60 steps, until it learns them
        out, frequency_bias=False, learning_rate=4e-4, schedule="constant"),
    "wide": wide(1e-3),
}

SICK: dict[str, Callable[[RunFactory, Path], object]] = {
    "learning rate too high": lambda factory, out: factory.train(out, learning_rate=1.0, steps=120),
    "learning rate too low": lambda factory, out: factory.train(
        out, learning_rate=1e-7, steps=100, frequency_bias=False),
    "broken attention mask": attention_to_padding,
    "masks on special tokens": lambda factory, out: factory.train(out, batches=MaskedSpecials, steps=120),
    "duplicate data": lambda factory, out: factory.train(out, "repeated", steps=120),
    "dead units": lambda factory, out: factory.train(out, prepare=turn_units_off, steps=120),
    "vanishing gradient": lambda factory, out: factory.train(
        out, prepare=close_the_last_layer, freeze="ln2_gamma_1", steps=100),
    "collapsed representations": lambda factory, out: factory.train(
        out, prepare=one_vector_for_all, freeze="b2_1", steps=120),
    "over-fitting": lambda factory, out: factory.train(out, "little", steps=300),
    "exploding": climb,
    "still at uniform": lambda factory, out: factory.train(out, batches=RandomTargets, steps=120, frequency_bias=False),
    "stuck at unigram": lambda factory, out: factory.train(out, init="normal", learning_rate=3e-4, steps=160),
    "stuck at the bigram plateau": lambda factory, out: factory.train(
        out, model=replace(MODEL, num_layers=1, num_heads=1), freeze="W_Q_0 W_K_0 position_embeddings",
        prepare=look_left_alone, steps=800, learning_rate=1e-2, schedule="constant", eval_every=80, eval_sequences=256,
        checkpoint_every=400),
    "too little text": lambda factory, out: factory.train(out, "none held out", steps=120),
    "held-out text of another kind": lambda factory, out: factory.train(out, "other words", steps=120),
    "worse from the first evaluation": in_another_direction,
    "too short to tell": lambda factory, out: factory.train(out, steps=12, eval_every=6, log_every=3),
}
FEW_LINES = {       # of logs: the learning rate is as much too high as in others, and its steps are hardly measured
    "one line of steps, rate 1": lambda factory, out: factory.train(out, learning_rate=1.0, steps=120, log_every=120,
                                                                    eval_every=24),
    "one line of steps, rate 0.03": lambda factory, out: factory.train(
        out, model=WIDE, batch_size=8, learning_rate=3e-2, steps=120, log_every=60, eval_every=30, warmup_steps=30)}
TOO_HIGH = {f"wide, rate {rate:g}": wide(rate) for rate in RATES}
RUNS = {**HEALTHY, **SICK, **TOO_HIGH, **FEW_LINES}
