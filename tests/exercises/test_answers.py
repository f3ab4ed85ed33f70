"""Whatever a learner's file does, the grade has one sentence with the learner's line, and no traceback."""

import sys

import pytest

from mini_bert.errors import DataError
from mini_bert.exercises import Answer, check_file, exercise
from mini_bert.exercises.progress import FILE, ProgressFile
from mini_bert.exercises.stubs import solution_source, stub_source


def file_with(tmp_path, body: str, name: str = "linear"):
    stub = stub_source(exercise(name))
    path = tmp_path / f"{name}.py"
    path.write_text(stub[: stub.index("    raise NotImplementedError")] + body)
    return path


@pytest.mark.parametrize(("body", "words"), [
    ("    x, W = cache\n    return dy @ W.TT\n", "line 20: return dy @ W.TT: AttributeError"),
    ("    return dx\n", "line 19: return dx: NameError: name 'dx' is not defined."),
    ("    x, W, b = cache\n", "line 19: x, W, b = cache: ValueError: not enough values to unpack"),
    ("    exit(3)\n", "line 19: exit(3): SystemExit: 3."),
    ("    return linear_backward(dy, cache)\n", "RecursionError"),
    ("    1 / 0\n", "line 19: 1 / 0: ZeroDivisionError: division by zero."),
    ("    return dy\n", "linear_backward must return dx, dW, db, in this order; it returned one ndarray."),
    ("    return dy, dy\n", "linear_backward must return dx, dW, db, in this order; it returned 2 values."),
    ("    pass\n", "it returned one NoneType."),
    ("    return {'dx': dy}\n", "linear_backward must return dx, dW, db; dW is missing."),
    ("    x, W = cache\n    dy *= 2\n    return dy @ W.T, x.T @ dy, dy.sum(axis=0)\n",
     "changes its arguments in place"),
    ("    x, W = cache\n    W[...] = 0\n    return dy @ W.T, x.T @ dy, dy.sum(axis=0)\n",
     "changes its arguments in place"),
])
def test_an_exception_becomes_a_sentence_with_the_learners_line(tmp_path, body, words):
    grade = check_file("linear", file_with(tmp_path, body))
    assert not grade.passed
    assert words in grade.problem
    assert "Traceback" not in grade.problem
    assert "\n" not in grade.problem
    assert "exercises/answer" not in grade.problem


@pytest.mark.parametrize(("text", "words"), [
    ("def linear_backward(:\n", "line 1: def linear_backward(:: SyntaxError: invalid syntax."),
    ("import no_such_module\n", "line 1: import no_such_module: ModuleNotFoundError"),
    ("x = 1\n", "has no function linear_forward."),
    ("def linear_forward(x, W, b):\n    return x @ W + b\n", "must return its result and a cache"),
    ("def linear_forward(x, W, b):\n    return x @ W, (x, W)\n", "no longer computes what it does in the stub"),
    ("", "has no function linear_forward."),
])
def test_a_file_that_is_not_an_answer_gets_a_problem(tmp_path, text, words):
    path = tmp_path / "mine.py"
    path.write_text(text)
    grade = check_file("linear", path)
    assert not grade.passed
    assert words in grade.problem


def test_an_output_that_cannot_be_compared_has_a_note(tmp_path):
    body = "    x, W = cache\n    return (dy @ W.T).tolist(), x.T @ dy / 0, dy\n"
    notes = {row.output: row.note for row in check_file("linear", file_with(tmp_path, body)).rows}
    assert notes["dx"] == "is a list, not an array"
    assert notes["dW"].endswith("values that are NaN or infinite")
    assert notes["db"] == "has the shape (4, 5), not (5,)"


def test_unreadable_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="There is no file"):
        check_file("linear", tmp_path / "none.py")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is not UTF-8: byte 0"):
        check_file("linear", tmp_path / "bytes.py")
    with pytest.raises(DataError, match="cannot be read"):
        check_file("linear", tmp_path)


def test_prints_go_to_standard_error_and_nothing_is_left_in_the_process(tmp_path, capsys):
    source = solution_source(exercise("relu")).replace("import numpy as np", "import numpy as np\nprint('hello')")
    path, modules = list(sys.path), set(sys.modules)
    (tmp_path / "beside.py").write_text("TWO = 2\n")
    source = source.replace("    return dy * (x > 0)", "    from dataclasses import dataclass\n    print('here')\n"
                                                       "    return dy * (x > 0)")
    (tmp_path / "relu.py").write_text("import beside\n" + source)
    assert check_file("relu", tmp_path / "relu.py").passed
    out, err = capsys.readouterr()
    assert out == ""
    assert "hello" in err
    assert "here" in err
    assert sys.path == path
    assert set(sys.modules) - modules <= {"beside"}
    sys.modules.pop("beside", None)


def test_an_answer_may_define_a_dataclass():
    source = ("from __future__ import annotations\nfrom dataclasses import dataclass\n"
              "@dataclass\nclass Kept:\n    x: int\n") + solution_source(exercise("relu"))
    assert exercise("relu").grade(Answer(source, "answer.py")).passed


def test_progress_is_saved_and_a_damaged_file_is_refused(tmp_path):
    ProgressFile(tmp_path).note_passed("linear")
    ProgressFile(tmp_path).note_hint("relu", 2)
    ProgressFile(tmp_path).note_hint("relu", 1)
    again = ProgressFile(tmp_path)
    assert again.passed("linear")
    assert not again.passed("relu")
    assert again.hints("relu") == 2
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    for damaged in ("{", "[]", '{"passed": 3, "hints": {}}', '{"passed": [], "hints": {"relu": "x"}}'):
        (tmp_path / FILE).write_text(damaged)
        with pytest.raises(DataError, match="is not a progress file of exercises"):
            ProgressFile(tmp_path)
