"""The commands that write a file, or an entry of the cache."""

import json
import os
from contextlib import chdir
from pathlib import Path

import numpy as np
from beginnings import MODEL, Command, cli, text, tokenizer, with_model, with_run

from mini_bert import MiniBERT
from mini_bert.analysis.timeline.record import read_timeline
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.storage import save_task
from mini_bert.exercises.graded import exercise
from mini_bert.exercises.progress import ProgressFile
from mini_bert.exercises.stubs import solution_source
from mini_bert.text.tables import read_columns


def within(folder: Path, *arguments: object) -> None:
    """A command in its working directory, where the progress of exercises is."""
    with chdir(folder):
        cli(*arguments)


def with_progress(folder: Path) -> None:
    text(folder)
    within(folder, "exercise", "hint", "relu", 1)


def with_answer(folder: Path) -> None:
    with_progress(folder)
    (folder / "relu.py").write_text(solution_source(exercise("relu")))


def read_progress(folder: Path) -> None:
    assert ProgressFile(folder).hints("relu") == 1            # never lost


def whole_page(folder: Path) -> None:
    if (folder / "made.html").exists():
        assert (folder / "made.html").read_text().rstrip().endswith("</html>")


def read_vectors(folder: Path) -> None:
    if (folder / "made.npy").exists():
        assert np.load(folder / "made.npy").shape[1] == 8


def with_pairs(folder: Path) -> None:
    with_model(folder)
    pair = {"sentence_good": "the cat sat", "sentence_bad": "cat the sat", "UID": "a", "linguistics_term": "b",
            "field": "c"}
    (folder / "pairs.jsonl").write_text(json.dumps(pair) + "\n")


def blimp(folder: Path) -> None:
    os.environ["MINI_BERT_CACHE"] = str(folder / "made")
    cli("blimp", folder / "pairs.jsonl", "-m", folder / "model", "--threads", 1)


def with_predictor(folder: Path) -> None:
    with_model(folder)
    save_task(folder / "task", TaskModel(MiniBERT(MODEL), "sequence", 2), tokenizer(folder), "any", ["no", "yes"], {})
    (folder / "new.csv").write_text("nr,text\n1,the cat sat\n2,a mat\n")


def predict(folder: Path) -> None:
    cli("predict", "-m", folder / "task", "--data", folder / "new.csv", "-o", folder / "made.csv", "--threads", 1)


def read_answers(folder: Path) -> None:
    if (folder / "made.csv").exists():
        assert [row[0] for row in read_columns(folder / "made.csv").rows] == ["1", "2"]


def evaluate(folder: Path) -> None:
    os.environ["MINI_BERT_CACHE"] = str(folder / "made")
    cli("evaluate", "-m", folder / "model", "-d", folder / "text.txt", "--only", "geometry", "--report",
        folder / "made.html", "--threads", 1)


def read_cache(folder: Path) -> None:
    for file in (folder / "made").glob("*.json"):
        json.loads(file.read_bytes())


def timeline(folder: Path) -> None:
    os.environ["MINI_BERT_CACHE"] = str(folder / "made")
    cli("timeline", folder / "run", "--only", "loss", "--threads", 1)


def check_timeline(folder: Path) -> None:
    read_cache(folder)
    if (folder / "run" / "timeline.json").exists():
        assert read_timeline(folder / "run").steps == [1, 4]


FILE_COMMANDS = [
    Command("embed --out", with_model, lambda f: cli("embed", f / "text.txt", "-m", f / "model", "-o", f / "made.npy"),
            read_vectors),
    Command("predict --out", with_predictor, predict, read_answers),
    Command("new variant", text, lambda f: (f / "made.py").exists() or cli("new", "variant", "made", "--out",
                                                                           f / "made.py"), lambda f: None),
    Command("exercise start", text, lambda f: cli("exercise", "start", "relu", "--force", "-o", f / "made.py"),
            lambda f: None),
    Command("exercise hint", with_progress, lambda f: within(f, "exercise", "hint", "gelu", 2), read_progress),
    Command("exercise check", with_answer, lambda f: within(f, "exercise", "check", "relu", "relu.py"), read_progress,
            slow=True),
    Command("report", with_run, lambda f: cli("report", f / "run", "-o", f / "made.html"), whole_page),
    Command("report, replacing", lambda f: (with_run(f), (f / "made.html").write_text("<p>old</p></html>")),
            lambda f: cli("report", f / "run", "-o", f / "made.html"), whole_page),
    Command("plot", with_run, lambda f: cli("plot", "training", f / "run", "-o", f / "made.svg"), lambda f: None,
            slow=True),
    Command("explore --export", with_model, lambda f: cli("explore", "the cat sat", "-m", f / "model", "--export",
                                                          f / "made.html"), whole_page,
            slow=True),
    Command("evaluate --report", with_model, evaluate, whole_page, exact=False, slow=True),
    Command("timeline", with_run, timeline, check_timeline, exact=False, same=("run/timeline.json",)),
    Command("blimp", with_pairs, blimp, read_cache, exact=False),
]
