"""Runs for the doctor: a language whose entropies are known, and training that is healthy or sabotaged on purpose.

The language is a Markov chain over 40 words, each with three that may follow it. How frequent a
word is tells about 1.6 nats, the word before it 0.9 more, and the word behind it most of the rest; so each plateau
is far from the next, and a run of seconds shows on which one it is.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
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
from mini_bert.training.run import resume_run, start_run
from mini_bert.training.trainer import Trainer

WORDS = [a + b for a in "bdfgklmn" for b in ("a", "e", "i", "o", "u")]
MODEL = ModelConfig(num_layers=2, num_heads=2, hidden_size=32, intermediate_size=64, vocab_size=45, max_seq_length=16)
TRAINING = TrainingConfig(steps=240, batch_size=32, learning_rate=3e-3, warmup_steps=20, masking_rate=0.3, init="local",
                          frequency_bias=True, log_every=10, eval_every=20, eval_sequences=64, checkpoint_every=120,
                          threads=1)


def chain() -> np.ndarray:
    """The probability of each word behind each other: 0.6, 0.3 and 0.1 for three of them, some words wanted more."""
    rng = generator(0, "language")
    wanted = 1 / np.arange(1, len(WORDS) + 1)
    P = np.zeros((len(WORDS), len(WORDS)))
    for row in P:
        row[rng.choice(len(WORDS), 3, replace=False, p=wanted / wanted.sum())] = 0.6, 0.3, 0.1
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


class Workshop:
    """Makes each corpus and run once a session, when a test first asks for it; processes share a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def tokenizer(self) -> WordPieceTokenizer:
        return WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *WORDS]))

    def corpus(self, name: str) -> Path:
        return self._made(self.folder / "corpora" / name, CORPORA[name]) / "corpus"

    def run(self, name: str) -> Path:
        return self._made(self.folder / "runs" / name, RUNS[name])

    def _made(self, place: Path, make: Callable[["Workshop", Path], object]) -> Path:
        """Made elsewhere, and put in its place when it is whole; if another process was faster, its one is taken."""
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
        """A run on a corpus: `prepare` changes the model before the first step, `batches` what it is shown."""
        trainer = start_run(model, replace(TRAINING, **settings), self.corpus(corpus), out, initial=initial)
        if prepare is not None:
            prepare(trainer.model)
        if batches is not None:
            trainer.batches = batches(trainer.batches)
        trainer.train()
        return trainer


def documentation(shop: Workshop, folder: Path) -> Path:
    """The first of the documentation that every Python has."""
    texts, size = [], 0
    for line in pydocs():
        texts.append(line)
        size += len(line)
        if size > 120_000:
            break
    documents = "\n".join(texts)
    tokenizer = WordPieceTokenizer(learn_vocabulary(count_words([documents]), 400))
    return made_corpus(folder, [documents], tokenizer, longest_document=200)


def documentation_in_pieces_of_mini(shop: Workshop, folder: Path) -> Path:
    texts = (shop.corpus("docs").parent / "text.txt").read_text()
    return made_corpus(folder, [texts[:40_000]], WordPieceTokenizer.load("mini"), longest_document=200)


def few_words(shop: Workshop, folder: Path) -> Path:
    rng = generator(0, "few words")
    texts = [" ".join((WORDS[:13] * 4)[first : first + length]) for first, length
             in zip(rng.integers(0, 13, 300).tolist(), rng.integers(5, 30, 300).tolist(), strict=True)]
    return made_corpus(folder, texts, WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *WORDS[:13]])))


CORPORA: dict[str, Callable[[Workshop, Path], Path]] = {
    "chain": lambda shop, folder: made_corpus(folder, sentences(1500, 0), shop.tokenizer()),
    "little": lambda shop, folder: made_corpus(folder, sentences(12, 1), shop.tokenizer(), heldout=0.4),
    "repeated": lambda shop, folder: made_corpus(folder, sentences(3, 2, 30) * 120, shop.tokenizer(),
                                                 deduplicate=False),
    "few": few_words,
    "docs": documentation,
    "docs-mini": documentation_in_pieces_of_mini,
}


# -------------------------------------------------------------------- sabotage


class AskedForSpecials:
    """[CLS] and [SEP] are hidden as well."""

    def __init__(self, inner: MLMBatches):
        self.inner = inner

    def __getitem__(self, step: int) -> MLMBatch:
        batch = self.inner[step]
        specials = (batch.target_ids == 2) | (batch.target_ids == 3)
        chosen = specials & (generator(step, "specials").random(specials.shape) < 0.5)
        return batch._replace(input_ids=np.where(chosen, 4, batch.input_ids),
                              mask_positions=batch.mask_positions | chosen)


class RandomTargets:
    """What is asked for has nothing to do with the text."""

    def __init__(self, inner: MLMBatches):
        self.inner = inner

    def __getitem__(self, step: int) -> MLMBatch:
        batch = self.inner[step]
        drawn = generator(step, "targets").integers(0, 45, batch.target_ids.shape)
        return batch._replace(target_ids=np.where(batch.mask_positions, drawn, batch.target_ids))


def attention_to_padding(shop: Workshop, out: Path) -> None:
    """The attention mask is lost on its way into the model, in training and in evaluation."""
    with pytest.MonkeyPatch.context() as patch:
        real = mini_bert.core.model.check_batch

        def without_mask(*arguments):
            ids, _, *rest = real(*arguments)
            return ids, None, *rest

        patch.setattr(mini_bert.core.model, "check_batch", without_mask)
        shop.train(out, steps=80)


def silence(model: MiniBERT) -> None:
    for layer in range(model.config.num_layers):
        model.params[f"b1_{layer}"][...] = -10


def close_the_last_layer(model: MiniBERT) -> None:
    model.params["ln2_gamma_1"][...] = 1e-6


def look_left_alone(model: MiniBERT) -> None:
    """The one head looks at the token before; with larger scores, at nothing else."""
    model.params["W_Q_0"][...] *= 5


def one_vector_for_all(model: MiniBERT) -> None:
    model.params["b2_1"][...] = 1000 * generator(0, "offset").standard_normal(model.params["b2_1"].shape)


def climb(shop: Workshop, out: Path) -> None:
    """A wrong sign: every step goes up the slope."""
    with pytest.MonkeyPatch.context() as patch:
        step = AdamW.step
        patch.setattr(AdamW, "step", lambda self, gradients, *, scale=1.0, **options:
                      step(self, gradients, scale=-scale, **options))
        shop.train(out, steps=80)


def resumed(shop: Workshop, out: Path) -> None:
    """Stopped after half of the steps, and gone on with from the checkpoint."""
    trainer = start_run(MODEL, replace(TRAINING, seed=3), shop.corpus("chain"), out)
    trainer.state.total_steps = 120
    trainer.train()
    shutil.rmtree(out / "final")
    again = resume_run(out)
    again.state.total_steps = TRAINING.steps
    again.train()


def going_on(shop: Workshop, out: Path) -> None:
    """A run whose process is writing a line of the log just now."""
    shop.train(out, seed=4, schedule="constant")
    log = out / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-2]) + lines[-2][:40])
    shutil.rmtree(out / "final")


def from_mini(shop: Workshop, out: Path) -> None:
    """The shipped model goes on with a text of its own field."""
    model, tokenizer = mini_bert.load("mini"), WordPieceTokenizer.load("mini")
    initial = grow_model(model, tokenizer, tokenizer)
    shop.train(out, "docs-mini", initial.config, initial, steps=20, batch_size=8, learning_rate=1e-4, warmup_steps=2,
               eval_every=5, eval_sequences=16, log_every=5, checkpoint_every=20, init="normal", frequency_bias=False)


def of_few_words(shop: Workshop, out: Path) -> None:
    """Thirteen words in a fixed order, a small model at a high rate, and a line of the log for every other step."""
    shop.train(out, "few", replace(MODEL, num_layers=1, hidden_size=16, intermediate_size=32, vocab_size=18),
               steps=60, learning_rate=1e-2, warmup_steps=4, log_every=2, eval_every=10)


# as wide as Mini, whose recipe has a rate of 1e-3
WIDE = replace(MODEL, num_heads=4, hidden_size=192, intermediate_size=768)
RATES = (1e-2, 2e-2, 3e-2)


def wide(rate: float) -> Callable[[Workshop, Path], object]:
    return lambda shop, out: shop.train(out, model=WIDE, batch_size=8, learning_rate=rate, steps=60, log_every=5,
                                        eval_every=12, eval_sequences=64, checkpoint_every=60, schedule="constant")


HEALTHY: dict[str, Callable[[Workshop, Path], object]] = {
    "recipe": lambda shop, out: shop.train(out),
    "recipe, another seed": lambda shop, out: shop.train(out, seed=1, masking_rate=0.15),
    "pre-LN": lambda shop, out: shop.train(out, model=replace(MODEL, block="pre_ln"), seed=2),
    "larger, GELU": lambda shop, out: shop.train(
        out, model=replace(MODEL, num_layers=3, num_heads=4, hidden_size=48, intermediate_size=192, activation="gelu"),
        schedule="wsd", steps=160),
    "resumed": resumed,
    "live": going_on,
    "documentation": lambda shop, out: shop.train(
        out, "docs", replace(MODEL, hidden_size=48, vocab_size=400, max_seq_length=32), steps=240),
    "from shipped weights": from_mini,
    "few words": of_few_words,
    "without frequencies": lambda shop, out: shop.train(       # near ln V for 60 steps, as it has to learn them
        out, frequency_bias=False, learning_rate=4e-4, schedule="constant"),
    "wide": wide(1e-3),
}

SICK: dict[str, Callable[[Workshop, Path], object]] = {
    "learning rate too high": lambda shop, out: shop.train(out, learning_rate=1.0, steps=120),
    "learning rate too low": lambda shop, out: shop.train(out, learning_rate=1e-7, steps=100, frequency_bias=False),
    "broken attention mask": attention_to_padding,
    "masks on special tokens": lambda shop, out: shop.train(out, batches=AskedForSpecials, steps=120),
    "duplicate data": lambda shop, out: shop.train(out, "repeated", steps=120),
    "dead units": lambda shop, out: shop.train(out, prepare=silence, steps=120),
    "vanishing gradient": lambda shop, out: shop.train(
        out, prepare=close_the_last_layer, freeze="ln2_gamma_1", steps=100),
    "collapsed representations": lambda shop, out: shop.train(
        out, prepare=one_vector_for_all, freeze="b2_1", steps=120),
    "over-fitting": lambda shop, out: shop.train(out, "little", steps=300),
    "exploding": climb,
    "still at uniform": lambda shop, out: shop.train(out, batches=RandomTargets, steps=120, frequency_bias=False),
    "stuck at unigram": lambda shop, out: shop.train(out, init="normal", learning_rate=3e-4, steps=160),
    "stuck at the bigram plateau": lambda shop, out: shop.train(
        out, model=replace(MODEL, num_layers=1, num_heads=1), freeze="W_Q_0 W_K_0 position_embeddings",
        prepare=look_left_alone, steps=800, learning_rate=1e-2, schedule="constant", eval_every=80, eval_sequences=256,
        checkpoint_every=400),
    "too short to tell": lambda shop, out: shop.train(out, steps=12, eval_every=6, log_every=3),
}
TOO_HIGH = {f"wide, rate {rate:g}": wide(rate) for rate in RATES}
RUNS = {**HEALTHY, **SICK, **TOO_HIGH}
