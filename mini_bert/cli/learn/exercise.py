"""mini-bert exercise: write the backward of each operation, and find planted bugs."""

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from ...errors import DataError, InputError
from ...exercises import BUG_NAMES, NAMES, ORDER, Grade, check_file, exercise, require
from ...exercises.progress import Progress
from ...exercises.stubs import solution_source, stub_source
from ...files import write_files
from ..output import JsonOption, Output, QuietOption, SeedOption, table, verdict

if TYPE_CHECKING:
    from ...exercises.bugs import Bug, Look

app = typer.Typer(no_args_is_help=True, add_completion=False,
                  help="Write the backward of each operation, graded; find planted bugs by their symptoms.")

Name = Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(ORDER)}, or bug-01 to {BUG_NAMES[-1]}.")]


def _bug(name: str) -> "Bug":
    from ...exercises.bugs import BUGS  # brings the trainer and the doctor with it

    return BUGS[name]


@app.command("list")
def list_command(as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """List the exercises, with what has been passed in this folder.

    Example: mini-bert exercise list
    """
    progress = Progress(Path())
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
    Output(as_json, quiet).result({"passed": passed, "exercises": data}, rows, f"{passed} of {len(NAMES)} passed.")


@app.command("start")
def start_command(name: Name, out: Annotated[Path | None, typer.Option(
                      "--out", "-o", metavar="FILE", help="Where to write; NAME.py if not given.")] = None,
                  force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
                  as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Write the file to begin with; for a planted bug, ask the question.

    Example: mini-bert exercise start layernorm
    """
    output = Output(as_json, quiet)
    if require(name, NAMES) in BUG_NAMES:
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
                      metavar="[FILE or NUMBER]", show_default=False,
                      help="The file, NAME.py if not given; for a planted bug the number of its cause.")] = None,
                  seed: SeedOption = 0, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Grade an answer: every gradient against finite differences. Exits with 1 if it is not right yet.

    Example: mini-bert exercise check layernorm

    Example: mini-bert exercise check bug-04 7
    """
    output, progress = Output(as_json, quiet), Progress(Path())
    if require(name, NAMES) in BUG_NAMES:
        right, said = _judged(_bug(name), answer)
        data: dict[str, Any] = {"exercise": name, "passed": right, "says": said}
        shown: list[Any] = [escape(said)]
    else:
        grade = check_file(name, Path(f"{name}.py" if answer is None else answer), seed)
        right = grade.passed
        data = {**asdict(grade), "passed": right, "rows": [
            {**asdict(row), "error": row.error if isfinite(row.error) else None} for row in grade.rows]}
        shown = _graded(grade, quiet)
    if right:
        progress.note_passed(name)
    output.result(data, *shown)
    raise typer.Exit(0 if right else 1)


@app.command("hint")
def hint_command(name: Name, number: Annotated[int | None, typer.Argument(
                     metavar="[NUMBER]", min=1, max=3, show_default=False, help="1, 2 or 3; the next if not given.")]
                 = None, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Give a hint, each time the next of three.

    Example: mini-bert exercise hint softmax
    """
    progress = Progress(Path())
    hints = _bug(name).hints if require(name, NAMES) in BUG_NAMES else exercise(name).hints
    which = min(progress.hints(name) + 1, len(hints)) if number is None else number
    progress.note_hint(name, which)
    Output(as_json, quiet).result({"exercise": name, "hint": which, "of": len(hints), "says": hints[which - 1]},
                                  escape(f"Hint {which} of {len(hints)}: {hints[which - 1]}"))


@app.command("solution")
def solution_command(name: Name, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Show the solution; for a planted bug the lines concerned, and why it shows as it does.

    Example: mini-bert exercise solution softmax
    """
    output = Output(as_json, quiet)
    if require(name, NAMES) in ORDER:
        source = solution_source(exercise(name))
        output.result({"exercise": name, "solution": source}, escape(source.rstrip()))
        return
    from ...exercises.bugs import CAUSES, MEANS
    from ...exercises.solutions.bugs import WHY

    bug, why = _bug(name), " ".join(WHY[name].split())
    lines = [{"file": file, "line": number, "right": right, "planted": edit.new}
             for edit in bug.edits for file, number, right in [edit.line()]]
    shown = [f"{name}: {bug.answer}. {CAUSES[bug.cause]}", ""]
    for line in lines:
        shown += [f"{line['file']}, line {line['line']}", f"  right:    {line['right']}",
                  f"  planted:  {line['planted']}", ""]
    shown += [why, "", f"Caught by: {'; '.join(MEANS[means].title for means in bug.caught_by)}.",
              f"Not seen by: {'; '.join(MEANS[means].title for means in bug.silent)}."]
    output.result({"exercise": name, "answer": bug.answer, "cause": CAUSES[bug.cause], "lines": lines, "why": why,
                   "caught_by": bug.caught_by, "not_seen_by": bug.silent}, *map(escape, shown))


@app.command("run")
def run_command(name: Name, seed: SeedOption = 0, as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Show the symptoms of a planted bug beside the healthy code: gradients, loss curves, comparisons.

    Example: mini-bert exercise run bug-01
    """
    if require(name, NAMES) not in BUG_NAMES:
        raise InputError(f"run shows the symptoms of a planted bug, bug-01 to {BUG_NAMES[-1]}; "
                         f"{name} is graded by: mini-bert exercise check {name}.")
    from ...exercises.bugs import MEANS, healthy

    bug, output, data = _bug(name), Output(as_json, quiet), {}
    output.say(f"{name}: {escape(bug.question)}")
    for means in (MEANS[shown] for shown in bug.shows):
        sound, here = healthy(means.name, seed), bug.look(means.name, seed)
        data[means.name] = {"healthy": sound.figures, "here": here.figures}
        output.say("", f"[bold]{escape(means.title)}[/bold]", *([means.about] if means.about else []),
                   _beside(sound, here))
    output.result({"exercise": name, "question": bug.question, "symptoms": _finite(data)}, "",
                  f"What is the cause? mini-bert exercise start {name} lists them; answer with: "
                  f"mini-bert exercise check {name} NUMBER")


# -------------------------------------------------------------------- what is shown


def _graded(grade: Grade, quiet: bool) -> list[Any]:
    shown: list[Any] = []
    if grade.rows and not quiet:
        rows = table("output", "worst error", "in the case", "", "", right=("worst error",))
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


def _judged(bug: "Bug", answer: str | None) -> tuple[bool, str]:
    causes = _causes()
    if answer is None or not (answer.isascii() and answer.isdigit() and int(answer) in causes):
        raise InputError(f"The answer to {bug.name} is a number from 1 to {len(causes)}, "
                         f"not {answer!r}; mini-bert exercise start {bug.name} lists the causes.")
    said = causes[int(answer)]
    if int(answer) == bug.answer:
        return True, f"{bug.name}: right. {said}"
    return False, f"{bug.name}: that is not it. {said} What would that show as, and does it?"


def _beside(healthy: "Look", here: "Look") -> Any:
    rows = table("", "healthy", "here", right=("healthy", "here") if not _has_text(healthy, here) else ())
    for name in dict.fromkeys((*healthy.figures, *here.figures)):
        if name in healthy.hidden and name in here.hidden:
            continue
        rows.add_row(escape(name), _figure(healthy.figures.get(name, "")), _figure(here.figures.get(name, "")))
    return rows


def _has_text(*looks: "Look") -> bool:
    return any(isinstance(value, str) for look in looks for name, value in look.figures.items()
               if name not in look.hidden)


def _figure(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.2e}" if 0 < abs(value) < 1e-3 else f"{value:.3f}"


def _finite(value: Any) -> Any:
    """With null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return value if not isinstance(value, float) or isfinite(value) else None


def _write(path: Path, text: str, force: bool) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file to write.")
    if path.exists() and not force:
        raise DataError(f"{path} is there already, and may be your work; name another with --out, or write over it "
                        "with --force.")
    write_files(path.parent, {path.name: text.encode()})


