"""Write the backward: solutions pass, stubs fail with a hint, and every typical mistake gets its cause."""

import re
from pathlib import Path

import numpy as np
import pytest

from mini_bert.exercises import ORDER, Answer, AnswerError, exercise
from mini_bert.exercises.compared import ComparedExercise
from mini_bert.exercises.grading import compare
from mini_bert.exercises.stubs import solution_source, stub_source

COMPARED = [exercise(name) for name in ORDER if isinstance(exercise(name), ComparedExercise)]
MISTAKES = [pytest.param(one, wrong, id=f"{one.name}: {wrong.outputs}, {wrong.cause[:60]}")
            for one in COMPARED for wrong in one.clues.wrong]


def graded(name: str, *changes: tuple[str, str]):
    """The grade of a solution with changes."""
    source = solution_source(exercise(name))
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    return exercise(name).grade(Answer(source, "answer.py"))


@pytest.mark.parametrize("name", ORDER)
def test_a_solution_passes(name):
    answer = Answer(solution_source(exercise(name)), "answer.py")
    for seed in (0, 1):
        grade = exercise(name).grade(answer, seed)
        assert grade.passed, grade
        assert not grade.hints


@pytest.mark.parametrize("name", ORDER)
def test_a_stub_fails_with_its_first_hint_and_names_the_line(name):
    one = exercise(name)
    stub = stub_source(one)
    grade = one.grade(Answer(stub, "answer.py"))
    assert not grade.passed
    assert grade.hints == [f"To begin: {one.hints[0]}"]
    line = next(i for i, text in enumerate(stub.splitlines(), 1) if "NotImplementedError" in text)
    assert grade.problem == f"answer.py, line {line}: nothing is written here yet."


@pytest.mark.parametrize("name", ORDER)
def test_a_stub_has_the_forward_and_the_signature_but_not_the_body(name):
    one = exercise(name)
    stub, solution = stub_source(one), solution_source(one)
    signature = next(line for line in solution.splitlines() if line.startswith(f"def {one.writes}("))
    before, _, body = solution.partition(signature)
    assert stub.startswith(before + signature)
    missing = [line for line in body.splitlines() if line and line not in stub.splitlines()]
    assert missing, "nothing was cut out"
    assert all(line.startswith("    ") for line in missing)


@pytest.mark.parametrize(("one", "wrong"), MISTAKES)
def test_a_typical_mistake_gets_its_own_cause(one, wrong):
    def attempt(pieces):
        made = wrong.results(pieces)
        if made is None:
            raise AnswerError("matmul: the shapes do not fit.", ValueError)
        return {**pieces.expected, **made}

    grade = compare(one.name, one.cases(0), attempt, one.clues, one.hints)
    assert not grade.passed
    assert grade.hints == [wrong.cause]
    assert {row.output for row in grade.rows if not row.passed} >= set(wrong.names) or grade.problem


@pytest.mark.parametrize("one", COMPARED, ids=lambda one: one.name)
def test_hints_and_causes_are_distinct_sentences(one):
    causes = [wrong.cause for wrong in one.clues.wrong]
    assert len(set(causes)) == len(causes) >= 5
    assert all(text.endswith((".", "?")) for text in (*causes, *one.hints))
    assert len(set(one.hints)) == 3


@pytest.mark.parametrize(("name", "change", "words"), [
    ("linear", ("dy.sum(axis=0)", "dy"), "lacks the sum over the rows"),
    ("linear", ("x.T @ dy", "dy.T @ x"), "factors swapped"),
    ("linear", ("dy @ W.T", "dy @ W"), "W where its transpose belongs"),
    ("relu", ("(x > 0)", "np.maximum(x, 0)"), "multiplied by y, the value"),
    ("gelu", ("cdf + x * density", "cdf"), "second term is missing"),
    ("softmax", ("p * (dp - along_p)", "p * dp"), "correction term is missing"),
    ("layernorm", ("dxhat - common - xhat * along", "dxhat - common"), "third term is missing"),
    ("layernorm", ("dxhat - common - xhat * along", "dxhat - xhat * along"), "second term is missing"),
    ("attention", ("    dscores = dscores / sqrt(Q.shape[3])", "    "), "lacks the factor 1 / sqrt(d_k)"),
    ("attention", ("dscores.transpose(0, 1, 3, 2) @ Q", "dscores @ Q"), "its transpose belongs"),
    ("embedding", ("np.add.at(dW, ids, dy)", "dW[ids] += dy"), "only the last is kept"),
    ("cross_entropy", ("dloss / selected.sum()", "dloss"), "not divided by the number of selected rows"),
    ("cross_entropy", ("dlogits *= selected[:, None]", "pass"), "not selected get a gradient"),
    ("dropout", ("dy * keep / q", "dy * keep"), "not scaled"),
    ("residual", ("dx = dx + dsum ", "dx = dx "), "residual path around the network is missing"),
    ("block", ("dmiddle = dmiddle + dsum2", "dmiddle = dmiddle"), "path around the feed-forward network is missing"),
    ("block", ("dsum1 + dx_q + dx_k + dx_v", "dsum1 + dx_q + dx_v"), "path through the keys is missing"),
    ("adamw", ("mhat = m / (1 - beta1**t)", "mhat = m"), "bias correction of m is missing"),
    ("adamw", (" if w.ndim > 1 else 0.0", ""), "acts on biases too"),
])
def test_a_mistake_in_the_source_gets_its_cause(name, change, words):
    grade = graded(name, change)
    assert not grade.passed
    assert words in grade.hints[0]


@pytest.mark.parametrize(("change", "words"), [
    (("return dx, dW, db", "return -dx, dW, db"), "dx has the wrong sign"),
    (("return dx, dW, db", "return dx, 0 * dW, db"), "dW is zero everywhere"),
    (("return dx, dW, db", "return 3 * dx, dW, db"), "dx is 3 times the correct one everywhere"),
    (("return dx, dW, db", "return dx * len(x), dW, db"), "dx is the number of rows N times too large"),
    (("return dx, dW, db", "return dx, dW + 1e-3 * (dW > 0), db"), "elements are wrong in the case"),
    (("return dx, dW, db", "return dx, dW[0], db"), "a gradient has the shape of its variable"),
    (("return dx, dW, db", "return dx, dW.astype('float32'), db"), "dW is float32"),
    (("return dx, dW, db", "return dx / 0, dW, db"), "is not finite"),
    (("return dx, dW, db", "return None, dW, db"), "dx is None"),
])
def test_an_unknown_error_is_described_by_its_shape_ratio_or_place(change, words):
    grade = graded("linear", change)
    assert not grade.passed
    assert words in grade.hints[0]


def test_errors_confined_to_a_named_place_are_described_by_it():
    grade = graded("cross_entropy", ("return dlogits", "return np.where(selected[:, None], dlogits, 7.0)"))
    assert grade.hints == ["dlogits is right except at rows that are not selected: all errors are there."]
    grade = graded("embedding", ("return dW", "dW[np.bincount(ids, minlength=len(dW)) == 0] = 1\n    return dW"))
    assert grade.hints == ["dW is right except at ids that do not occur: all errors are there."]


def test_two_mistakes_get_two_causes():
    grade = graded("layernorm", ("dbeta = dy.sum(axis=0)", "dbeta = dy"), ("r * (dxhat - common", "(dxhat - common"))
    assert len(grade.hints) == 2
    assert "factor r is forgotten" in grade.hints[0]
    assert "dbeta lacks the sum" in grade.hints[1]


def test_a_different_correct_answer_passes():
    loop = ("    ids, shape = cache\n    dW = np.zeros(shape)\n    for n, i in enumerate(ids):\n"
            "        dW[i] += dy[n]\n    return dW\n")
    source = stub_source(exercise("embedding"))
    source = source[: source.index("    raise NotImplementedError")] + loop
    assert exercise("embedding").grade(Answer(source, "answer.py")).passed


def test_cases_have_padding_repeated_ids_and_several_shapes():
    assert any(not pieces.key_mask.all() for pieces in exercise("attention").cases(0))
    assert any(not pieces.key_mask.all() for pieces in exercise("block").cases(0))
    assert any(len(set(pieces.ids.tolist())) < len(pieces.ids) for pieces in exercise("embedding").cases(0))
    assert any(not pieces.selected.all() for pieces in exercise("cross_entropy").cases(0))
    for one in COMPARED:
        shapes = [tuple(np.shape(right) for right in pieces.expected.values()) for pieces in one.cases(0)]
        assert len(set(shapes)) == len(shapes) >= 2


def test_the_page_lists_every_exercise_in_order_with_its_level_and_reading():
    page = Path(__file__).parents[2] / "docs" / "exercises" / "write-the-backward.md"
    rows = re.findall(r"^\| `(\w+)` \| (\d) \| \[[^]]*\]\(\.\./([^)]*)\)", page.read_text("utf-8"), re.MULTILINE)
    assert rows == [(name, str(exercise(name).difficulty), exercise(name).after) for name in ORDER]
    assert all((page.parents[1] / after).exists() for *_, after in rows)
