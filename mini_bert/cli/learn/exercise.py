"""mini-bert exercise: write backward passes, and find planted bugs."""

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ...errors import DataError, InputError
from ...exercises import BUG_NAMES, NAMES, ORDER, Grade, check_file, exercise, require_exercise
from ...exercises.progress import ProgressFile
from ...exercises.stubs import solution_source, stub_source
from ...files import write_files
from ..output import Output, SeedOption, table, verdict

if TYPE_CHECKING:
    from ...exercises.bugs import Bug, Reading

app = typer.Typer(no_args_is_help=True, add_completion=False,
                  help="Write backward passes and find planted bugs, graded.")

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(ORDER)}, or bug-01 to {BUG_NAMES[-1]}.")]


def _bug(name: str) -> "Bug":
    from ...exercises.bugs import BUGS  # imports the trainer and the doctor

    return BUGS[name]


@app.command("list")
def list_command(*, output: Output) -> None:
    """List the exercises, and which ones have been passed in this directory.

    Example: mini-bert exercise list
    """
    progress = ProgressFile(Path())
    rows, data = table("exercise", "level", "what", "after", "", right=("level",)), []
    for name in NAMES:
        done = progress.passed(name)
        if name in BUG_NAMES:
            what, level, after = _bug(name).question, None, "exercises/break-it.md"
        else:
            what, level, after = exercise(name).title, exercise(name).difficulty, exercise(name).after
        data.append({"name": name, "what": what, "level": level, "after": after, "passed": done})
        rows.add_row(name, "" if level is None else str(level), escape(what), f"docs/{after}",
                     "[green]passed[/green]" if done else "")
    passed = sum(bool(row["passed"]) for row in data)
    output.result({"passed": passed, "exercises": data}, rows, f"{passed} of {len(NAMES)} passed.")


@app.command("start")
def start_command(name: Name, out: Annotated[Path | None, typer.Option(
                      "--out", "-o", metavar="FILE", help="The file to write; default: NAME.py.")] = None,
                  force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
                  *, output: Output) -> None:
    """Write the file to start from; for a planted bug, show the question.

    Example: mini-bert exercise start layernorm
    """
    if require_exercise(name, NAMES) in BUG_NAMES:
        question = _question(_bug(name))
        if out is not None:
            _write(out, "\n".join(question) + "\n", force)
        output.result({"exercise": name, "question": _bug(name).question, "causes": _causes(),
                       "file": None if out is None else str(out)}, *(escape(line) for line in question))
        return
    path = Path(f"{name}.py") if out is None else out
    _write(path, stub_source(exercise(name)), force)
    file = "" if out is None else f" {out}"
    output.result({"exercise": name, "file": str(path), "writes": exercise(name).writes},
                  escape(f"{path}: write {exercise(name).writes}, then: mini-bert exercise check {name}{file}"))


@app.command("check")
def check_command(name: Name, answer: Annotated[str | None, typer.Argument(
                      metavar="FILE|NUMBER", show_default=False,
                      help="The file, default: NAME.py; for a planted bug, the number of its cause.")] = None,
                  seed: SeedOption = 0, *, output: Output) -> None:
    """Grade an answer: every gradient against finite differences. Exits with 1 if it is not right yet.

    Example: mini-bert exercise solution layernorm > answer.py && mini-bert exercise check layernorm answer.py
    """
    progress = ProgressFile(Path())
    if require_exercise(name, NAMES) in BUG_NAMES:
        right, said = _check_answer(_bug(name), answer)
        data: dict[str, Any] = {"exercise": name, "passed": right, "says": said}
        shown: list[Any] = [escape(said)]
    else:
        grade = check_file(name, Path(f"{name}.py" if answer is None else answer), seed)
        right = grade.passed
        data = {**asdict(grade), "passed": right}
        shown = _graded(grade, output.quiet)
    if right:
        progress.note_passed(name)
    output.result(data, *shown)
    raise typer.Exit(0 if right else 1)


@app.command("hint")
def hint_command(name: Name, number: Annotated[int | None, typer.Argument(
                     metavar="NUMBER", min=1, max=3, show_default=False, help="1, 2 or 3; default: the next one.")]
                 = None, *, output: Output) -> None:
    """Show a hint; without a number, the next of three.

    Example: mini-bert exercise hint softmax
    """
    progress = ProgressFile(Path())
    hints = _bug(name).hints if require_exercise(name, NAMES) in BUG_NAMES else exercise(name).hints
    which = min(progress.hints(name) + 1, len(hints)) if number is None else number
    progress.note_hint(name, which)
    output.result({"exercise": name, "hint": which, "of": len(hints), "says": hints[which - 1]},
                  escape(f"Hint {which} of {len(hints)}: {hints[which - 1]}"))


@app.command("solution")
def solution_command(name: Name, *, output: Output) -> None:
    """Show the solution; for a planted bug, the changed lines and an explanation of the symptoms.

    Example: mini-bert exercise solution softmax
    """
    if require_exercise(name, NAMES) in ORDER:
        source = solution_source(exercise(name))
        output.result({"exercise": name, "solution": source}, escape(source.rstrip()))
        return
    from ...exercises.bugs import CAUSES, DIAGNOSTICS
    from ...exercises.solutions.bugs import WHY

    bug, why = _bug(name), " ".join(WHY[name].split())
    lines = [{"file": file, "line": number, "right": right, "planted": edit.new}
             for edit in bug.edits for file, number, right in [edit.line()]]
    shown = [f"{name}: {bug.answer}. {CAUSES[bug.cause]}", ""]
    for line in lines:
        shown += [f"{line['file']}, line {line['line']}", f"  right:    {line['right']}",
                  f"  planted:  {line['planted']}", ""]
    shown += [why, "", f"Caught by: {'; '.join(DIAGNOSTICS[diagnostic].title for diagnostic in bug.caught_by)}.",
              f"Missed by: {'; '.join(DIAGNOSTICS[diagnostic].title for diagnostic in bug.silent)}."]
    output.result({"exercise": name, "answer": bug.answer, "cause": CAUSES[bug.cause], "lines": lines, "why": why,
                   "caught_by": bug.caught_by, "not_seen_by": bug.silent}, *map(escape, shown))


@app.command("run")
def run_command(name: Name, seed: SeedOption = 0, *, output: Output) -> None:
    """Show the symptoms of a planted bug next to the healthy code: gradients, loss curves, comparisons.

    Example: mini-bert exercise run bug-01
    """
    if require_exercise(name, NAMES) not in BUG_NAMES:
        raise InputError(f"run shows the symptoms of a planted bug, bug-01 to {BUG_NAMES[-1]}; "
                         f"grade {name} with: mini-bert exercise check {name}.")
    from ...exercises.bugs import DIAGNOSTICS, healthy_reading

    bug, data = _bug(name), {}
    output.say(f"{name}: {escape(bug.question)}")
    for diagnostic in (DIAGNOSTICS[shown] for shown in bug.shows):
        healthy, here = healthy_reading(diagnostic.name, seed), bug.reading(diagnostic.name, seed)
        data[diagnostic.name] = {"healthy": healthy.figures, "here": here.figures}
        output.say("", f"[bold]{escape(diagnostic.title)}[/bold]", *([diagnostic.about] if diagnostic.about else []),
                   _comparison(healthy, here))
    output.result({"exercise": name, "question": bug.question, "symptoms": data}, "",
                  f"What is the cause? List the causes with mini-bert exercise start {name}, and answer with "
                  f"mini-bert exercise check {name} NUMBER.")


# -------------------------------------------------------------------- output


def _graded(grade: Grade, quiet: bool) -> list[Any]:
    shown: list[Any] = []
    if grade.rows and not quiet:
        rows = table("output", "worst error", "in case", "", "", right=("worst error",))
        for row in grade.rows:
            rows.add_row(row.output, f"{row.error:.1e}" if isfinite(row.error) else "-", escape(row.case),
                         verdict(row.passed), escape(row.note))
        shown += [rows, ""]
    if grade.passed:
        return [*shown, f"[green]{grade.exercise}: right.[/green]"]
    if grade.problem:
        shown.append(escape(grade.problem))
    shown += [f"Hint: {escape(hint)}" for hint in grade.hints]
    return [*shown, f"[bold red]{grade.exercise}: not right yet.[/bold red]"]


def _causes() -> dict[int, str]:
    from ...exercises.bugs import CAUSES

    return dict(enumerate(CAUSES.values(), 1))


def _question(bug: "Bug") -> list[str]:
    return [f"{bug.name}: one thing in the library is wrong. {bug.question}", "",
            f"Look at the symptoms:   mini-bert exercise run {bug.name}",
            f"Ask for a hint:         mini-bert exercise hint {bug.name}",
            f"Answer with a number:   mini-bert exercise check {bug.name} NUMBER", "",
            "Which of these is the cause?", *(f"{number:4}  {cause}" for number, cause in _causes().items())]


def _check_answer(bug: "Bug", answer: str | None) -> tuple[bool, str]:
    causes = _causes()
    if answer is None or not (answer.isascii() and answer.isdigit() and len(answer) < 4 and int(answer) in causes):
        raise InputError(f"The answer to {bug.name} is a number from 1 to {len(causes)}, "
                         f"not {answer!r}; mini-bert exercise start {bug.name} lists the causes.")
    said = causes[int(answer)]
    if int(answer) == bug.answer:
        return True, f"{bug.name}: right. {said}"
    return False, f"{bug.name}: that is not it. {said} Which symptoms would that cause, and do you see them?"


def _comparison(healthy: "Reading", here: "Reading") -> Any:
    rows = table("", "healthy", "here", right=("healthy", "here") if not _has_text(healthy, here) else ())
    for name in dict.fromkeys((*healthy.figures, *here.figures)):
        if name in healthy.hidden and name in here.hidden:
            continue
        rows.add_row(escape(name), _figure(healthy.figures.get(name, "")), _figure(here.figures.get(name, "")))
    return rows


def _has_text(*readings: "Reading") -> bool:
    return any(isinstance(value, str) for reading in readings for name, value in reading.figures.items()
               if name not in reading.hidden)


def _figure(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.2e}" if 0 < abs(value) < 1e-3 else f"{value:.3f}"


def _write(path: Path, text: str, force: bool) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a directory; name a file.")
    if path.exists() and not force:
        raise DataError(f"{path} exists already and may be your work; choose another file with --out, or replace it "
                        "with --force.")
    write_files(path.parent, {path.name: text.encode()})


