"""The commands that write, each with the folder that it begins with, on models and texts of a few kilobytes."""

import io
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random

import mini_bert
from mini_bert import MiniBERT, ModelConfig
from mini_bert.cli.app import app
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.config import TrainingConfig
from mini_bert.training.loop import Listener
from mini_bert.training.runs.run import resume_run, start_run

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "looked", "at", "its", "master", "who", "ran", "away", "home"]
MODEL = ModelConfig(num_layers=1, num_heads=1, hidden_size=8, intermediate_size=8, vocab_size=60, max_seq_length=16)
TRAINING = TrainingConfig(steps=4, batch_size=4, micro_batch_size=4, warmup_steps=1, log_every=1, eval_every=2,
                          eval_sequences=4, checkpoint_every=2, keep_checkpoints=1, threads=1)


@dataclass(frozen=True)
class Command:
    """`begin` makes the folder, `act` is the command, and `check` opens what is visible, if it is there."""

    name: str
    begin: Callable[[Path], None]
    act: Callable[[Path], None]
    check: Callable[[Path], None]
    exact: bool = True            # what is visible is the old state or the new one, byte for byte


def text(folder: Path, seed: int = 0) -> None:
    random = Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "text.txt").write_text("\n\n".join(" ".join(random.choices(WORDS, k=20)) + "." for _ in range(30)))


def cli(*arguments: object) -> None:
    os.environ["COLUMNS"] = "200"
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        app([str(argument) for argument in arguments], standalone_mode=False)


def train_tokenizer(folder: Path, size: int = 60) -> None:
    cli("tokenizer", "train", folder / "text.txt", "--out", folder / "made", "--vocab-size", size, "--overwrite")


def tokenizer(folder: Path) -> WordPieceTokenizer:
    return WordPieceTokenizer.load(folder / "tokenizer")


def with_tokenizer(folder: Path) -> None:
    text(folder)
    cli("tokenizer", "train", folder / "text.txt", "--out", folder / "tokenizer", "--vocab-size", 60)


def prepare(folder: Path, heldout: float = 0.1) -> None:
    cli("data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "-o", folder / "made", "--heldout",
        heldout, "--workers", 1, "--overwrite")


def with_corpus(folder: Path) -> None:
    with_tokenizer(folder)
    cli("data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "-o", folder / "corpus", "--heldout", 0.1,
        "--workers", 1)


def save(folder: Path, seed: int = 1) -> None:
    save_task(folder / "made", TaskModel(MiniBERT(MODEL, seed=seed), "sequence", 2), tokenizer(folder), "any",
              ["no", "yes"], {})


def train(folder: Path) -> None:
    """Begin a run, or go on with it, as `fit` and `lab` do."""
    run = folder / "made"
    begun = (run / "config.yaml").exists()
    trainer = resume_run(run) if begun else start_run(MODEL, TRAINING, folder / "corpus", run)
    trainer.train()


class _Stops(Listener):
    def stepped(self, state, loss):
        return state.step == 3


def begun_run(folder: Path) -> None:
    """A run that was stopped in the middle, with a line of the log behind its checkpoint."""
    with_corpus(folder)
    start_run(MODEL, TRAINING, folder / "corpus", folder / "made", listener=_Stops()).train()


def resume_with_changes(folder: Path) -> None:
    resume_run(folder / "made", changes=["training.learning_rate=5e-4"]).train()


def check_run(folder: Path) -> None:
    """What is visible of a run opens."""
    made = folder / "made"
    if made.exists():
        resume_run(made).lock.release()
        for name in ("best", "final"):
            if (made / name).exists():
                mini_bert.load(made / name)


def opens(read: Callable[[Path], object]) -> Callable[[Path], None]:
    def check(folder: Path) -> None:
        if (folder / "made").exists():
            read(folder / "made")
    return check


def read_corpus(place: Path) -> None:
    corpus = Corpus(place)
    corpus.fingerprint()
    assert corpus.tokenizer


def fit(folder: Path) -> None:
    sets = ("num_layers=1", "num_heads=1", "hidden_size=8", "intermediate_size=8", "max_seq_length=16")
    cli("fit", folder / "text.txt", "--out", folder / "made", "--budget", "0.05s", "--vocab-size", 60,
        *(part for change in sets for part in ("--set", f"model.{change}")), "--set", "training.batch_size=4",
        "--set", "training.eval_sequences=4", "--set", "training.threads=1")


def with_model(folder: Path) -> None:
    with_tokenizer(folder)
    MiniBERT(MODEL).save(folder / "model")
    tokenizer(folder).save(folder / "model")


def check_fit(folder: Path) -> None:
    if (folder / "made" / "run").exists():
        resume_run(folder / "made" / "run").lock.release()


def read_vectors(place: Path) -> None:
    import numpy as np

    np.load(place)


COMMANDS = [
    Command("tokenizer train", text, train_tokenizer, opens(WordPieceTokenizer.load)),
    Command("tokenizer train --overwrite", lambda f: (text(f), train_tokenizer(f, 40)), train_tokenizer,
            opens(WordPieceTokenizer.load)),
    Command("data prepare", with_tokenizer, prepare, opens(read_corpus)),
    Command("data prepare --overwrite", lambda f: (with_tokenizer(f), prepare(f, 0.3)), prepare, opens(read_corpus)),
    Command("finetune --out", with_tokenizer, save, opens(load_task)),
    Command("finetune --out, replacing", lambda f: (with_tokenizer(f), save(f, 2)), save, opens(load_task)),
    Command("model.save", text, lambda f: MiniBERT(MODEL).save(f / "made"), opens(mini_bert.load)),
    Command("pretrain", with_corpus, train, check_run, exact=False),
    Command("resume", begun_run, train, check_run, exact=False),
    Command("resume --set", begun_run, resume_with_changes, check_run, exact=False),
    Command("fit", text, fit, check_fit, exact=False),
    Command("embed --out", with_model, lambda f: cli("embed", f / "text.txt", "-m", f / "model", "-o", f / "made.npy"),
            lambda f: read_vectors(f / "made.npy") if (f / "made.npy").exists() else None),
    Command("new variant", text, lambda f: (f / "made.py").exists() or cli("new", "variant", "made", "--out",
                                                                           f / "made.py"), lambda f: None),
]
