"""A run of seconds, on a language whose structure is known.

The language is a Markov chain over 40 words, each of which is followed by one of three. Frequencies, the word before
and the word behind each tell something, so a model that misses one of them is stuck where it shows.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ...analysis.doctor.doctor import Diagnosis, examine
from ...core.config import ModelConfig
from ...errors import NumericalError
from ...randomness import generator
from ...text.corpora.prepare import prepare
from ...text.vocabulary import SPECIAL_TOKENS, Vocabulary
from ...text.wordpiece.tokenizer import WordPieceTokenizer
from ...training.config import TrainingConfig
from ...training.loop import Listener
from ...training.runs.run import start_run
from .planting import Edit

WORDS = [a + b for a in "bdfgklmn" for b in "aeiou"]
FOLLOWERS = (0.6, 0.3, 0.1)           # the probabilities of the three words that may follow
DOCUMENTS = 800
MODEL = ModelConfig(num_layers=2, num_heads=2, hidden_size=32, intermediate_size=64,
                    vocab_size=len(SPECIAL_TOKENS) + len(WORDS), max_seq_length=16)


class Lesson(NamedTuple):
    """What is seen of a run: the training loss and the held-out loss by step, and what the doctor says."""

    losses: dict[int, float]
    heldout: dict[int, float]
    grad_norms: dict[int, float]
    diagnosis: Diagnosis


class _Notes(Listener):
    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def logged(self, record: dict[str, Any]) -> None:
        self.records.append(record)

    def column(self, name: str) -> dict[int, float]:
        return {record["step"]: float(record[name]) for record in self.records if record.get(name) is not None}


def sentences(seed: int) -> list[str]:
    """Documents of the language, of 5 to 39 words."""
    rng = generator(seed, "exercise", "language")
    wanted = 1 / np.arange(1, len(WORDS) + 1)
    follow = [rng.choice(len(WORDS), len(FOLLOWERS), replace=False, p=wanted / wanted.sum()) for _ in WORDS]
    lengths = rng.integers(5, 40, DOCUMENTS).tolist()
    draws = iter(rng.choice(len(FOLLOWERS), sum(lengths), p=FOLLOWERS).tolist())
    made = []
    for length in lengths:
        words = [int(rng.integers(len(WORDS)))]
        for _ in range(length - 1):
            words.append(int(follow[words[-1]][next(draws)]))
        made.append(" ".join(WORDS[word] for word in words))
    return made


@cache
def lesson(seed: int, steps: int, planted: tuple[Edit, ...]) -> Lesson:
    """Train a small model on the language, with the library as it is now: with these edits, which are told apart."""
    notes = _Notes()
    with _corpus(seed) as folder:
        training = TrainingConfig(steps=steps, batch_size=32, learning_rate=3e-3, warmup_steps=20, masking_rate=0.3,
                                  init="local", frequency_bias=True, log_every=20, eval_every=20, eval_sequences=64,
                                  checkpoint_every=steps, threads=1, seed=seed)
        with suppress(NumericalError):                    # a run that ends early: what there is of it is shown
            start_run(MODEL, training, folder / "corpus", folder / "run", listener=notes).train()
        diagnosis = examine(folder / "run")
    return Lesson(notes.column("loss"), notes.column("eval_loss"), notes.column("grad_norm"), diagnosis)


@contextmanager
def _corpus(seed: int) -> Iterator[Path]:
    with TemporaryDirectory(prefix="mini-bert-exercise-") as name:
        folder = Path(name)
        (folder / "text.txt").write_text("\n\n".join(sentences(seed)) + "\n", "utf-8")
        prepare([str(folder / "text.txt")], WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *WORDS])),
                folder / "corpus", heldout=0.1, workers=1)
        yield folder
