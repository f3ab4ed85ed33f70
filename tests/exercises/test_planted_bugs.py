"""Planted bugs: each is caught by the diagnostics that its text names, and is removed completely."""

import re
from functools import cache
from inspect import getsource
from pathlib import Path

import pytest

import mini_bert
from mini_bert import InputError
from mini_bert.core.ops.layernorm import layernorm_backward
from mini_bert.exercises import BUG_NAMES
from mini_bert.exercises.bugs import BUGS, CAUSES, DIAGNOSTICS, healthy_reading
from mini_bert.exercises.bugs.planting import Edit, active, planted
from mini_bert.exercises.solutions.bugs import WHY

CAUGHT = [pytest.param(bug, name, id=f"{bug.name}, {name}") for bug in BUGS.values() for name in bug.caught_by]
SILENT = [pytest.param(bug, name, id=f"{bug.name}, {name}") for bug in BUGS.values() for name in bug.silent]


@cache
def reading(bug: str, diagnostic: str):
    return BUGS[bug].reading(diagnostic)


@pytest.mark.parametrize("diagnostic", DIAGNOSTICS)
def test_the_healthy_code_passes_every_diagnostic(diagnostic):
    assert healthy_reading(diagnostic, 0).passed, healthy_reading(diagnostic, 0).figures


@pytest.mark.parametrize(("bug", "diagnostic"), CAUGHT)
def test_a_bug_is_caught_by_the_diagnostics_that_it_names(bug, diagnostic):
    found = reading(bug.name, diagnostic)
    assert not found.passed, found.figures
    assert found.figures != healthy_reading(diagnostic, 0).figures


@pytest.mark.parametrize(("bug", "diagnostic"), SILENT)
def test_a_bug_passes_the_diagnostics_that_it_names_as_silent(bug, diagnostic):
    found = reading(bug.name, diagnostic)
    assert found.passed, found.figures


def test_the_doctor_finds_masks_on_special_tokens():
    assert "masks on special tokens" in str(reading("bug-08", "doctor").figures)


def test_the_gradient_check_agrees_above_the_missing_residual_path_and_not_below():
    found = reading("bug-01", "gradcheck")
    wrong = set(found.figures) - found.hidden - {"gradients that agree"}
    assert {"model, token_embeddings", "model, W_Q_0", "model, ln2_gamma_0"} <= wrong
    assert all(name.endswith("_0") or "embeddings" in name for name in wrong)


# -------------------------------------------------------------------- planting


@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
def test_planting_changes_the_code_and_restores_it(bug):
    functions = [edit.function() for edit in bug.edits]
    codes = [function.__code__ for function in functions]
    files = {Path(code.co_filename): Path(code.co_filename).read_bytes() for code in codes}
    with bug.planted():
        assert active() == bug.edits
        assert all(function.__code__ is not code for function, code in zip(functions, codes, strict=True))
    assert all(function.__code__ is code for function, code in zip(functions, codes, strict=True))
    assert active() == ()
    with pytest.raises(KeyboardInterrupt), bug.planted():
        raise KeyboardInterrupt
    assert all(function.__code__ is code for function, code in zip(functions, codes, strict=True))
    assert all(path.read_bytes() == content for path, content in files.items())


def test_everybody_who_imported_the_function_runs_the_changed_term():
    from mini_bert.core.modules.norms import layernorm as layers

    assert layers.layernorm_backward is layernorm_backward
    healthy_names = layernorm_backward.__code__.co_names, layernorm_backward.__code__.co_code
    with BUGS["bug-09"].planted():
        assert layers.layernorm_backward is layernorm_backward
        assert layers.layernorm_backward.__code__.co_code != healthy_names[1]
    assert layernorm_backward.__code__.co_code == healthy_names[1]


def test_a_term_that_is_not_there_is_refused_and_nothing_is_applied():
    edits = (BUGS["bug-09"].edits[0], Edit("core.ops.linear:linear_backward", "no such term", "pass"))
    code = layernorm_backward.__code__
    with pytest.raises(InputError, match="has 0 terms 'no such term'"), planted(edits):
        pass
    assert layernorm_backward.__code__ is code
    twice = (Edit("core.ops.linear:linear_backward", "dW =", "pass"),
             Edit("core.ops.linear:linear_backward", "dx =", "pass"))
    with pytest.raises(InputError, match="Two edits of one bug are in one function"), planted(twice):
        pass


@pytest.mark.parametrize("bug", BUGS.values(), ids=lambda bug: bug.name)
def test_the_changed_lines_are_those_of_the_files(bug):
    for edit in bug.edits:
        file, number, line = edit.line()
        written = (Path(mini_bert.__file__).parents[1] / file).read_text("utf-8").splitlines()
        assert written[number - 1].strip() == line
        assert line in getsource(edit.function())


# -------------------------------------------------------------------- the texts


def test_twelve_bugs_have_different_causes_from_one_list():
    assert tuple(BUGS) == BUG_NAMES
    assert len({bug.cause for bug in BUGS.values()}) == 12
    assert {bug.cause for bug in BUGS.values()} < set(CAUSES)
    assert len(set(CAUSES.values())) == len(CAUSES) >= 20


def test_each_diagnostic_catches_a_bug_and_each_bug_has_its_texts():
    assert {name for bug in BUGS.values() for name in bug.caught_by} == set(DIAGNOSTICS)
    for bug in BUGS.values():
        assert bug.caught_by
        assert not set(bug.caught_by) & set(bug.silent)
        assert len(bug.hints) == 3
        assert all(hint.endswith((".", "?")) for hint in (*bug.hints, bug.question))
        assert len(WHY[bug.name].split()) > 40
    assert set(WHY) == set(BUGS)


def test_a_question_does_not_give_away_the_cause():
    for bug in BUGS.values():
        cause = set(re.findall(r"[a-z]{6,}", CAUSES[bug.cause].lower()))
        asked = set(re.findall(r"[a-z]{6,}", bug.question.lower()))
        assert len(cause & asked) <= 1, cause & asked


def test_the_page_lists_what_catches_each_bug():
    page = Path(__file__).parents[2] / "docs" / "exercises" / "break-it.md"
    text = page.read_text("utf-8")
    for bug in BUGS.values():
        assert f"| `{bug.name}` | {', '.join(bug.caught_by)} | {', '.join(bug.silent)} | {bug.question} |" in text
    assert all(f"\n| {name} |" in text for name in DIAGNOSTICS)
