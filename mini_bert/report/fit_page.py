"""The page of a fit: is the model better than guessing, training curves, held-out losses, and examples."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ..evaluation.masked_lm import MaskedReport
from ..inference.examples import Example
from .chart import Line, line_chart
from .evaluation_sections import loss_by_frequency
from .page import BASELINES, Opening, State, Step, example_html, facts, page, paragraph, section, table


def fit_page(title: str, about: Mapping[str, Any], records: Sequence[Mapping[str, Any]], *,
             heldout: MaskedReport | None, before: MaskedReport | None, found: Sequence[Example],
             masking_rates: Sequence[float], command: str, when: datetime, steps: Sequence[Step]) -> str:
    """`records` is the run's log, `masking_rates` what the masking rate began and ended with, `steps` what to do."""
    parts = []
    if heldout is not None:
        parts.append(section("Held-out text", _figures(heldout, before)))
    if found:
        parts.append(section("Predictions for masks", paragraph(
            "Held-out sentences with one word masked, and the model's most probable words."),
            *map(example_html, found)))
    parts.append(section("Training", *_curves(records, heldout, masking_rates)))
    if heldout is not None:
        parts.append(section("By frequency", loss_by_frequency(heldout.by_frequency)))
    parts.append(section("The fit", facts(about)))
    verdict, state = judged(heldout, before)
    return page(title, *parts, opening=Opening(verdict, state, command, when, steps))


def judged(heldout: MaskedReport | None, before: MaskedReport | None) -> tuple[str, State]:
    """A sentence about the model, and whether it is good."""
    if heldout is None:
        return "There was too little text to hold any out, so the model was not measured.", State.OPEN
    loss, levels = heldout.loss, heldout.baselines
    beaten = [name for name in ("bigram", "unigram", "uniform") if loss < levels[name]]
    slightly = ", but only slightly" if beaten and loss > levels[beaten[0]] - _CLEARLY else ""
    says = f"The model predicts {heldout.accuracy:.0%} of masked words of held-out text, with a loss of {loss:.2f}"
    if not beaten:
        return f"{says}: no better than uniform guessing ({levels['uniform']:.2f}).", State.BAD
    says += f": better than guessing by {_GUESSES[beaten[0]]} ({levels[beaten[0]]:.2f})"
    if beaten[0] != "bigram":
        return f"{says}{slightly}, {'and' if slightly else 'but'} not better than by the previous word " \
               f"({levels['bigram']:.2f}). {_LONGER}", State.OPEN
    if slightly:
        return f"{says}{slightly}. {_LONGER}", State.OPEN
    if before is not None and loss >= before.loss:
        return f"{says}, but no better than before the fit ({before.loss:.2f}).", State.OPEN
    return says + ("." if before is None else f", and than before the fit ({before.loss:.2f})."), State.GOOD


_CLEARLY = 0.1                # nats; a smaller difference may come from the draw of the masks
_LONGER = "Train it for longer: the same call with a larger budget continues from here."
_GUESSES = {"bigram": "the previous word", "unigram": "word frequency", "uniform": "chance"}


def _curves(records: Sequence[Mapping[str, Any]], heldout: MaskedReport | None,
            masking_rates: Sequence[float]) -> list[str]:
    trained = [record for record in records if record.get("loss") is not None]
    evaluated = [record for record in records if record.get("eval_loss") is not None]
    lines = [Line("training loss", [r["tokens"] for r in trained], [r["smoothed_loss"] for r in trained]),
             Line("held-out loss", [r["tokens"] for r in evaluated], [r["eval_loss"] for r in evaluated])]
    levels = {} if heldout is None else {name: heldout.baselines[name] for name in ("unigram", "bigram")}
    masked = " to ".join(dict.fromkeys(f"{rate:.0%}" for rate in (masking_rates[0], masking_rates[-1])))
    rates = Line("learning rate", [r["tokens"] for r in records], [r["learning_rate"] for r in records])
    return [line_chart([line for line in lines if line.x], x_label="tokens", y_label="loss", levels=levels),
            paragraph(f"Training masks {masked} of the tokens and evaluation 15 %, so the two curves need not meet. "
                      f"{BASELINES}"),
            line_chart([rates], x_label="tokens", y_label="learning rate")]


def _figures(heldout: MaskedReport, before: MaskedReport | None) -> str:
    measured = [("the model", heldout)] + ([("before the fit", before)] if before is not None else [])
    content = [[name, f"{report.loss:.3f}", f"{report.perplexity:,.1f}", f"{report.accuracy:.1%}"]
               for name, report in measured]
    content += [[f"baseline: {name}", f"{loss:.3f}", "", ""] for name, loss in heldout.baselines.items()]
    return table(["", "loss", "perplexity", "accuracy"], content, numbers=(1, 2, 3)) \
        + paragraph(f"Means over {heldout.masked:,} masked tokens, 15 % of the text.")
