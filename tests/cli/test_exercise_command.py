"""mini-bert exercise: what a learner types, from the first stub to a found bug."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mini_bert.cli.app import app
from mini_bert.errors import MiniBertError
from mini_bert.exercises import NAMES, ORDER, exercise
from mini_bert.exercises.bugs import BUGS, CAUSES
from mini_bert.exercises.stubs import solution_source


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*arguments: str):
    return CliRunner().invoke(app, ["exercise", *arguments])


def refused(*arguments: str) -> str:
    """The error message of a refused command."""
    done = run(*arguments)
    assert isinstance(done.exception, MiniBertError), done.output
    return str(done.exception)


def test_from_the_stub_to_a_passed_exercise(tmp_path):
    assert run("start", "softmax").exit_code == 0
    done = run("check", "softmax")
    assert done.exit_code == 1
    assert "nothing is written here yet" in done.output
    assert "softmax: not right yet." in done.output
    path = tmp_path / "softmax.py"
    stub = path.read_text()
    path.write_text(stub.replace("raise NotImplementedError", "return p * dp"))
    done = run("check", "softmax")
    assert done.exit_code == 1
    assert "Hint: The correction term is missing" in done.output
    path.write_text(run("solution", "softmax").output)
    done = run("check", "softmax")
    assert done.exit_code == 0, done.output
    assert "softmax: right." in done.output
    listed = json.loads(run("list", "--json").output)
    assert [row["name"] for row in listed["exercises"]] == list(NAMES)
    assert [row["name"] for row in listed["exercises"] if row["passed"]] == ["softmax"]
    assert "1 of 25 passed." in run("list").output


def test_a_file_is_never_replaced_without_force(tmp_path):
    (tmp_path / "linear.py").write_text("mine")
    assert "exists already and may be your work" in refused("start", "linear")
    assert (tmp_path / "linear.py").read_text() == "mine"
    assert run("start", "linear", "--out", "other/linear.py").exit_code == 0
    assert run("start", "linear", "--force").exit_code == 0
    assert (tmp_path / "linear.py").read_text() == (tmp_path / "other" / "linear.py").read_text()
    assert "is a directory" in refused("start", "linear", "--out", "other", "--force")


def test_a_check_in_json_is_one_object_whatever_the_answer_prints(tmp_path):
    run("start", "linear")
    path = tmp_path / "linear.py"
    path.write_text(path.read_text().replace("raise NotImplementedError", "print('hello'); return dy / 0, None, 'x'"))
    done = run("check", "linear", "--json")
    assert done.exit_code == 1
    data = json.loads(done.stdout)
    assert not data["passed"]
    assert [row["error"] for row in data["rows"]] == [None, None, None]
    assert [row["note"] for row in data["rows"]][1:] == ["is None", "is a str, not an array"]
    assert data["hints"]


@pytest.mark.parametrize("name", ORDER)
def test_every_solution_is_shown_as_it_is(name):
    assert run("solution", name).output.strip() == solution_source(exercise(name)).strip()


@pytest.mark.parametrize("name", ["linear", "adamw", "masking"])              # one of every kind
def test_a_solution_passes(tmp_path, name):
    (tmp_path / "answer.py").write_text(run("solution", name).output)
    done = run("check", name, "answer.py", "--quiet")
    assert done.exit_code == 0, done.output
    assert done.output == f"{name}: right.\n"


def test_hints_come_in_order_or_by_number():
    shown = [run("hint", "bug-04").output for _ in range(4)]
    assert [line[:11] for line in shown] == ["Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]
    assert run("hint", "linear", "2").output.startswith("Hint 2 of 3")
    assert run("hint", "linear").output.startswith("Hint 3 of 3")
    assert run("hint", "linear", "4").exit_code == 2


def test_a_bug_is_started_answered_and_recorded(tmp_path):
    started = run("start", "bug-05", "--out", "question.txt")
    assert started.exit_code == 0
    assert all(cause in started.output for cause in CAUSES.values())
    assert (tmp_path / "question.txt").read_text().strip() == started.output.strip()
    wrong = run("check", "bug-05", "1")
    assert wrong.exit_code == 1
    assert "that is not it" in wrong.output
    right = run("check", "bug-05", str(BUGS["bug-05"].answer))
    assert right.exit_code == 0
    assert "bug-05: right." in right.output
    assert json.loads(run("list", "--json").output)["passed"] == 1
    for answer in (["0"], ["22"], ["linear.py"], []):
        assert "is a number from 1 to 21" in refused("check", "bug-05", *answer)


def test_symptoms_are_shown_with_the_healthy_ones_and_do_not_name_the_cause(monkeypatch):
    # only diagnostics without a training run, which takes seconds
    quick = {"bug-02": ("first-steps", "again"), "bug-10": ("parts", "again")}
    for name, (caught, silent) in quick.items():
        monkeypatch.setitem(BUGS, name, replace(BUGS[name], caught_by=(caught,), silent=(silent,)))
    done = run("run", "bug-02", "--json")
    assert done.exit_code == 0, done.output
    symptoms = json.loads(done.stdout)["symptoms"]
    assert symptoms.keys() == {"again", "first-steps"}
    steps = symptoms["first-steps"]
    first = "step 1, gradients 0.01, 1 and -100"
    assert steps["healthy"][first] == pytest.approx(1, abs=1e-3)
    assert steps["here"][first] == pytest.approx(0.1 / 0.001**0.5, abs=1e-3)
    shown = run("run", "bug-10")
    assert shown.exit_code == 0
    assert "one batch, as a whole and in parts" in shown.output
    assert "healthy" in shown.output
    assert CAUSES["mean-of-means"] not in shown.output


@pytest.mark.parametrize("name", BUGS)
def test_the_solution_of_a_bug_has_its_lines_and_the_reason(name):
    data = json.loads(run("solution", name, "--json").output)
    assert data["answer"] == BUGS[name].answer
    assert all(line["right"] != line["planted"] for line in data["lines"])
    shown = run("solution", name).output
    assert data["why"][:60] in shown
    assert all(f"{line['file']}, line {line['line']}" in shown for line in data["lines"])


def test_unknown_names_and_wrong_uses_are_refused():
    assert "the nearest name is 'layernorm'" in refused("start", "layer-norm")
    assert "run shows the symptoms of a planted bug" in refused("run", "linear")
    assert "There is no file linear.py" in refused("check", "linear")
