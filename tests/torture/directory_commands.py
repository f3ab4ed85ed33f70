"""The commands that make or change a directory."""

from dataclasses import replace
from pathlib import Path

from beginnings import MODEL, TRAINING, Command, cli, opens, text, tokenizer, with_corpus, with_model, with_tokenizer

import mini_bert
from mini_bert import MiniBERT
from mini_bert.core.task_model import TaskModel
from mini_bert.errors import CheckpointError
from mini_bert.evaluation.tasks.storage import load_task, save_task
from mini_bert.text.corpora.corpus import Corpus
from mini_bert.text.wordpiece.tokenizer import WordPieceTokenizer
from mini_bert.training.loop import Listener
from mini_bert.training.runs.run import resume_run, start_run

RUN = ("made/config.yaml", "made/best/model.safetensors", "made/final/model.safetensors",
       "made/snapshots/step-1/model.safetensors", "made/snapshots/step-4/model.safetensors")


def train_tokenizer(folder: Path, size: int = 60) -> None:
    cli("tokenizer", "train", folder / "text.txt", "--out", folder / "made", "--vocab-size", size, "--overwrite")


def save_tokenizer(folder: Path, piece: str = "cats") -> None:
    WordPieceTokenizer([*tokenizer(folder).vocabulary, piece]).save(folder / "made")


def prepare(folder: Path, heldout: float = 0.1) -> None:
    cli("data", "prepare", folder / "text.txt", "-t", folder / "tokenizer", "-o", folder / "made", "--heldout",
        heldout, "--workers", 1, "--overwrite")


OTHER = replace(MODEL, intermediate_size=12)


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
        for place in (made / "best", made / "final", *(made / "snapshots").glob("step-*")):
            if place.exists():
                mini_bert.load(place)


def read_corpus(place: Path) -> None:
    corpus = Corpus(place)
    corpus.fingerprint()
    assert corpus.tokenizer


def fit(folder: Path) -> None:
    sets = ("num_layers=1", "num_heads=1", "hidden_size=8", "intermediate_size=8", "max_seq_length=16")
    cli("fit", folder / "text.txt", "--out", folder / "made", "--budget", "0.05s", "--vocab-size", 60,
        *(part for change in sets for part in ("--set", f"model.{change}")), "--set", "training.batch_size=4",
        "--set", "training.eval_sequences=4", "--set", "training.threads=1")


def check_fit(folder: Path) -> None:
    if (folder / "made" / "run").exists():
        resume_run(folder / "made" / "run").lock.release()


def with_experiment(folder: Path) -> None:
    with_corpus(folder)
    model = ", ".join(f"model.{name}={value}" for name, value in MODEL.to_dict().items() if name in (
        "num_layers", "num_heads", "hidden_size", "intermediate_size", "vocab_size", "max_seq_length"))
    (folder / "lab.yaml").write_text(f"config: debug\nset: [{model}, training.steps=2, training.batch_size=4, "
                                     "training.eval_every=2, training.eval_sequences=4, training.threads=1]\n"
                                     "runs: {one: [], two: [training.learning_rate=1e-4]}\n")


def check_lab(folder: Path) -> None:
    for run in sorted((folder / "made").glob("*/config.yaml")):
        resume_run(run.parent).lock.release()


def with_task(folder: Path) -> None:
    with_model(folder)
    (folder / "some.tsv").write_text("sentence\tlabel\n" + "the cat sat\t1\na mat ran home\t0\n" * 4)


def finetune(folder: Path) -> None:
    cli("finetune", "--train", folder / "some.tsv", "--dev", folder / "some.tsv", "-m", folder / "model", "-o",
        folder / "made", "--epochs", 1, "--no-random-init", "--threads", 1)


def with_bert(folder: Path) -> None:
    with_tokenizer(folder)
    config = replace(MODEL, embedding_layernorm=True, attention_bias=True, token_types=2, activation="gelu",
                     final_layernorm=False, mlm_head="bert")
    MiniBERT(config).save(folder / "model")
    tokenizer(folder).save(folder / "model")


def whole_or_refused(folder: Path, *command: str) -> None:
    """These replace nothing: a second time the command tidies up and refuses the directory that is there."""
    there = (folder / "made").exists()
    try:
        cli(*command, "-m", folder / "model", "-o", folder / "made")
    except CheckpointError as refusal:
        if not there or "is not empty" not in str(refusal):
            raise


def export(folder: Path) -> None:
    whole_or_refused(folder, "export", "-f", "sentence-transformers")


def quantise(folder: Path) -> None:
    whole_or_refused(folder, "quantise")


DIRECTORY_COMMANDS = [
    Command("tokenizer train", text, train_tokenizer, opens(WordPieceTokenizer.load)),
    Command("tokenizer train --overwrite", lambda f: (text(f), train_tokenizer(f, 40)), train_tokenizer,
            opens(WordPieceTokenizer.load)),
    Command("data prepare", with_tokenizer, prepare, opens(read_corpus)),
    Command("data prepare --overwrite", lambda f: (with_tokenizer(f), prepare(f, 0.3)), prepare, opens(read_corpus)),
    Command("save_task", with_tokenizer, save, opens(load_task)),
    Command("save_task, replacing", lambda f: (with_tokenizer(f), save(f, 2)), save, opens(load_task)),
    Command("finetune", with_task, finetune, opens(load_task)),
    Command("model.save", text, lambda f: MiniBERT(MODEL).save(f / "made"), opens(mini_bert.load)),
    Command("model.save, replacing", lambda f: (text(f), MiniBERT(OTHER).save(f / "made")),
            lambda f: MiniBERT(MODEL).save(f / "made"), opens(mini_bert.load)),
    Command("tokenizer.save, replacing", lambda f: (with_tokenizer(f), save_tokenizer(f, "dogs")), save_tokenizer,
            opens(WordPieceTokenizer.load)),
    Command("export", with_bert, export, opens(mini_bert.load)),
    Command("quantise", with_model, quantise, opens(mini_bert.load)),
    Command("pretrain", with_corpus, train, check_run, exact=False, same=RUN),
    Command("resume", begun_run, train, check_run, exact=False, same=RUN),
    Command("resume --set", begun_run, resume_with_changes, check_run, exact=False, same=RUN),
    Command("fit", text, fit, check_fit, exact=False),
    Command("lab", with_experiment, lambda f: cli("lab", f / "lab.yaml", "-d", f / "corpus", "-o", f / "made"),
            check_lab, exact=False, same=("made/one-0/final/model.safetensors", "made/two-0/final/model.safetensors")),
]
