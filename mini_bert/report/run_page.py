"""The page of a training run, finished or not: the doctor's diagnosis, curves, settings, and examples."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np

from ..analysis.doctor.doctor import HEALTHY, SICK, UNCLEAR, Diagnosis, examine_record
from ..analysis.doctor.reference import ReferenceCurve, reference_curve
from ..analysis.doctor.run_record import RunRecord, Unavailable
from ..errors import MiniBertError
from ..evaluation.probabilities import Floats
from ..inference.examples import Example, examples
from ..training.runs.log import LOG
from .chart import Line, line_chart
from .page import BASELINES, Opening, State, Step, example_html, facts, page, paragraph, section, table

FIT = "fit.json"              # in the directory of a fit, whose run this may be
_POINTS = 400                 # in a line; more cannot be seen
_SHARES = ("accuracy", "recall")      # how the names of such figures end
_NO_LEVELS = "The main loss does not predict words, so it cannot be compared with guessing by frequency."


def run_page(run: RunRecord) -> str:
    """A page of everything in the run's directory."""
    if run.corpus_at is not None:
        run.require_corpus()                      # a corpus given by the user must be usable
    diagnosis = examine_record(run)
    parts = [section("Diagnosis", table(["finding", "evidence", "advice"], [
        [f"{finding.name} ({finding.sure.value})", finding.says, finding.advice] for finding in diagnosis.findings]))] \
        if diagnosis.findings else []
    parts.append(section("Losses", *_losses(run, diagnosis)))
    if filled := _examples(run):
        parts.append(section("Predictions for masks", paragraph(
            "Held-out sentences with one word masked, and the most probable words of the newest checkpoint."),
            *map(example_html, filled)))
    parts += [section("Gradients and steps", *_flow(run)), section("Speed and memory", *_speed(run)),
              section("Settings", *_settings(run.description))]
    if diagnosis.left_out or diagnosis.notes:
        parts.append(section("Not examined", *_not_examined(diagnosis)))
    return page(f"{_name(run)}: a training run", *parts, opening=_opening(run, diagnosis))


def _name(run: RunRecord) -> str:
    """Of the fit that the run belongs to, or of the run's directory and the one above it."""
    place = run.directory.resolve()
    return place.parent.name if (place.parent / FIT).is_file() else "/".join(place.parts[-2:])


_STATES = {HEALTHY: State.GOOD, SICK: State.BAD, UNCLEAR: State.OPEN}


def _opening(run: RunRecord, diagnosis: Diagnosis) -> Opening:
    """The doctor's verdict; the date is that of the last line of the log."""
    steps = [Step(diagnosis.findings[0].advice)] if diagnosis.findings else []
    place = run.directory.parent if (run.directory.parent / FIT).is_file() else run.directory
    if not run.finished:
        steps.append(Step("Continue the run", shlex.join(["mini-bert", "resume", str(place)])))
    elif diagnosis.verdict != SICK:
        steps.append(Step("Measure the model", shlex.join(["mini-bert", "evaluate", "--quick", "--model", str(place)])))
    log = run.directory / LOG
    when = datetime.fromtimestamp(log.stat().st_mtime) if log.is_file() else None
    state = "finished" if run.finished else "not finished"
    return Opening(f"{diagnosis.says} The run is {state}, at step {run.step:,}.", _STATES[diagnosis.verdict],
                   shlex.join(["mini-bert", "report", str(place)]), when, steps)


def _not_examined(diagnosis: Diagnosis) -> list[str]:
    parts = [table(["check", "reason"], [[name, why] for name, why in diagnosis.left_out.items()])] \
        if diagnosis.left_out else []
    return parts + [paragraph(note) for note in diagnosis.notes]


def _losses(run: RunRecord, diagnosis: Diagnosis) -> list[str]:
    levels = diagnosis.baselines.levels()
    lines = [_line(name, curve.tokens, curve.losses)
             for name, curve in (("training loss", run.training_curve), ("held-out loss", run.heldout_curve))
             if len(curve)]
    if not lines:
        return [paragraph("The log has no losses yet.")]
    explained = BASELINES + (" The trigram baseline uses the two tokens before." if "trigram" in levels else "")
    if reference := _reference(run, max(line.x[-1] for line in lines)):
        curve, banded = reference.to_dict(), bool(np.isfinite(reference.low).any())
        lines.append(Line(f"reference: {reference.name}", curve["tokens"], curve["mean"],
                          curve["low"] if banded else None, curve["high"] if banded else None))
        seeds = f", with the range of {reference.seeds} seeds" if banded else ""
        explained += (f" The reference is the held-out loss of the shipped model {reference.name} after the same "
                      f"number of tokens{seeds}.")
    tokens = run.column("tokens")
    charts = [line_chart(lines, x_label="tokens", y_label="loss", levels=levels)]
    several = [_line(name + suffix, tokens[there], values[there]) for key, suffix in (("losses", ""), ("eval_losses",
               ", held out")) for name, values in run.by_name(key).items()
               for there in [np.isfinite(values) & np.isfinite(tokens)] if there.any()]
    if several:
        charts.append(line_chart(several, x_label="tokens", y_label="each loss of the objective"))
    if shares := [_line(name.replace("_", " "), tokens[there], values[there]) for name, values in _shares(run).items()
                  for there in [np.isfinite(values) & np.isfinite(tokens)] if there.any()]:
        charts.append(line_chart(shares, x_label="tokens", y_label="held-out accuracy"))
    return [*charts, paragraph(explained if run.of_words else _NO_LEVELS)]


def _shares(run: RunRecord) -> dict[str, Floats]:
    """The figures of held-out text that are shares of right answers, by name."""
    names = dict.fromkeys(name for record in run.records for name in record if name.endswith(_SHARES))
    return {name: run.column(name) for name in names}


def _reference(run: RunRecord, tokens: float) -> ReferenceCurve | None:
    """The shipped model's curve up to this number of tokens, if there is one to compare the run with."""
    try:
        return reference_curve(run).until(tokens)
    except Unavailable:
        return None


def _flow(run: RunRecord) -> list[str]:
    tokens = run.column("tokens")
    charts = []
    for name, label in (("layer_grad_norm", "norm of the gradient, by part"),
                        ("update_ratio", "size of a step relative to the weights, by part")):
        lines = [_line(part, tokens[there], values[there]) for part, values in run.by_name(name).items()
                 for there in [np.isfinite(values) & np.isfinite(tokens)] if there.any()]
        if lines:
            charts.append(line_chart(lines, x_label="tokens", y_label=label))
    rate, norm = run.column("learning_rate"), run.column("grad_norm")
    for values, label in ((norm, "gradient norm"), (rate, "learning rate")):
        there = np.isfinite(values) & np.isfinite(tokens)
        if there.any():
            charts.append(line_chart([_line(label, tokens[there], values[there])], x_label="tokens", y_label=label))
    return charts or [paragraph("The log has no gradient norms yet.")]


def _speed(run: RunRecord) -> list[str]:
    speed, memory, seconds = (run.column(name) for name in ("tokens_per_second", "peak_rss_mb", "seconds"))
    values: dict[str, object] = {}
    if np.isfinite(seconds).any():
        values["time"] = f"{np.nanmax(seconds) / 60:,.1f} minutes"
    if np.isfinite(speed).any():
        values["tokens per second, median"] = f"{np.nanmedian(speed):,.0f}"
    if np.isfinite(memory).any():
        values["peak memory"] = f"{np.nanmax(memory):,.0f} MB"
    values["state"] = "finished" if run.finished else "not finished"
    return [facts(values)]


def _settings(description: Mapping[str, Any]) -> list[str]:
    return [table([kind, "value"], [[name, str(value)] for name, value in description[kind].items()])
            for kind in ("model", "training") if isinstance(description.get(kind), Mapping)]


def _examples(run: RunRecord) -> list[Example]:
    """Empty if the run has no checkpoint, or its corpus cannot be read."""
    try:
        return examples(run.model(), run.corpus)
    except (Unavailable, MiniBertError, IndexError):     # the last: unknown ids in a damaged corpus
        return []


def _line(name: str, x: Sequence[float] | np.ndarray[Any, Any], y: Sequence[float] | np.ndarray[Any, Any]) -> Line:
    """A line of about _POINTS points, the last one included."""
    places = sorted({*range(0, len(x), -(-len(x) // _POINTS)), len(x) - 1})
    return Line(name, [float(x[place]) for place in places], [float(y[place]) for place in places])
