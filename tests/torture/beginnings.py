"""What the tortured commands begin with: folders with texts, tokenizers, corpora and models of a few kilobytes."""

import io
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random

from mini_bert import MiniBERT, ModelConfig
from mini_bert.cli.app import app
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig
from mini_bert.training.runs.run import start_run

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away", "home"]
MODEL = ModelConfig(num_layers=1, num_heads=1, hidden_size=8, intermediate_size=8, vocab_size=60, max_seq_length=16)
TRAINING = TrainingConfig(steps=4, batch_size=4, micro_batch_size=4, warmup_steps=1, log_every=1, eval_every=2,
                          eval_sequences=4, checkpoint_every=2, keep_checkpoints=1, snapshots=2, threads=1)


@dataclass(frozen=True)
class Command:
    """`begin` makes the folder, `act` is the command, and `check` opens what is visible, if it is there."""

    name: str
    begin: Callable[[Path], None]
    act: Callable[[Path], None]
    check: Callable[[Path], None]
    exact: bool = True            # what is visible is the old state or the new one, byte for byte
    slow: bool = False            # it takes a second or more, and is killed less often
    same: tuple[str, ...] = ()    # otherwise: files that are in the end what they are without a crash


def text(folder: Path, seed: int = 0) -> None:
    random = Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text("\n\n".join(" ".join(random.choices(WORDS, k=20)) + "." for _ in range(30)))


def cli(*arguments: object) -> None:
    os.environ["COLUMNS"] = "200"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        app([str(argument) for argument in arguments], standalone_mode=False)


def tokenizer(folder: Path) -> WordPieceTokenizer:
    return WordPieceTokenizer.load(folder / "tokenizer")


def with_tokenizer(folder: Path) -> None:
    text(folder)
    cli("tokenizer", "train", folder / "text.txt", "--out", folder / "tokenizer", "--vocab-size", 60)


def with_corpus(folder: Path) -> None:
    with_tokenizer(folder)
    cli("data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "-o", folder / "corpus", "--heldout", 0.1,
        "--workers", 1)


def with_model(folder: Path) -> None:
    with_tokenizer(folder)
    MiniBERT(MODEL).save(folder / "model")
    tokenizer(folder).save(folder / "model")


def with_run(folder: Path) -> None:
    with_corpus(folder)
    start_run(MODEL, TRAINING, folder / "corpus", folder / "run").train()


def opens(read: Callable[[Path], object]) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        if (folder / "made").exists():
            read(folder / "made")
    return check
