"""The example scripts run on small data, and answer wrong input with one sentence."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(name: str, *arguments: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", str(ROOT / "examples" / name), *arguments], cwd=cwd,
                          env=environment, capture_output=True, text=True, check=False)


def test_a_model_is_trained_on_a_folder_and_fills_a_mask(scratch: Path, environment: dict[str, str]):
    done = run("pretrain_on_a_folder.py", "letters", "--out", "own.model", "--config", "small", "--minutes", "0.05",
               "--vocab-size", "600", "--ask", "Return the [MASK].", cwd=scratch, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "600 pieces" in done.stdout
    assert len(re.findall(r"^ *[\d.]+%  \S+$", done.stdout, re.MULTILINE)) == 5
    assert (scratch / "own.model" / "run" / "best" / "model.safetensors").exists()


def test_texts_are_classified_and_compared_with_baselines(scratch: Path, environment: dict[str, str]):
    done = run("classify.py", "reviews/train.tsv", "reviews/dev.tsv", "--out", "own.model", "--epochs", "1",
               "--seeds", "1", "a warm and funny film", cwd=scratch, environment=environment)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in ("fine-tuned", "from random weights", "majority", "bag of words"))
    assert re.search(r"^[01]  [\d.]+%  a warm and funny film$", done.stdout, re.MULTILINE)
    assert (scratch / "own.model" / "task.json").exists()


def test_an_experiment_runs_to_its_answers_and_repeats_no_run(scratch: Path, environment: dict[str, str]):
    arguments = ["corpus", "--out", "places.lab", "--config", "debug", "--steps", "2", "--seeds", "1"]
    first, again = (run("experiment_places.py", *arguments, cwd=scratch, environment=environment) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == again.stdout
    assert [line.split()[0] for line in first.stdout.splitlines()[1:7]] == [
        "none", "distance", "place", "control", "bigram", "unigram"]
    assert first.stdout.count("true ") + first.stdout.count("FALSE") == 3
    assert "FALSE  distance helps" in first.stdout            # one seed proves nothing


def test_the_one_file_bert_trains_on_a_file_and_fills_masks(scratch: Path, environment: dict[str, str]):
    quick = (ROOT / "examples" / "minibert_in_one_file.py").read_text("utf-8").replace("seconds=120", "seconds=1")
    (scratch / "one.py").write_text(quick, "utf-8")
    done = subprocess.run([sys.executable, "one.py", "corpus/a.txt", "The [MASK] of it."], cwd=scratch, env=environment,
                          capture_output=True, text=True, check=True)
    assert re.search(r"^The \[MASK\] of it\.\n(  \d+% \S+\n){5}", done.stdout, re.MULTILINE)


def test_a_line_is_its_own_nearest_and_the_second_search_uses_the_cache(scratch: Path, environment: dict[str, str]):
    outputs = [run("semantic_search.py", "sentences.txt", "A dog barks at night.", "--top", "1", cwd=scratch,
                   environment=environment) for _ in range(2)]
    assert [done.returncode for done in outputs] == [0, 0], outputs[0].stderr
    assert outputs[0].stdout == outputs[1].stdout
    assert re.search(r"1\.00  A dog barks at night\.", outputs[0].stdout)
    assert len(list(scratch.glob(".sentences.txt.*.npy"))) == 1


def test_a_missing_file_is_answered_in_one_sentence(scratch: Path, environment: dict[str, str]):
    for name, arguments in (("pretrain_on_a_folder.py", ["nowhere", "--out", "x"]),
                            ("classify.py", ["nowhere.tsv", "nowhere.tsv", "--out", "x"]),
                            ("semantic_search.py", ["nowhere.txt", "a query"]),
                            ("experiment_places.py", ["nowhere.txt", "--out", "x"])):
        done = run(name, *arguments, cwd=scratch, environment=environment)
        assert done.returncode == 1
        assert "nowhere" in done.stderr
        assert "Traceback" not in done.stderr
