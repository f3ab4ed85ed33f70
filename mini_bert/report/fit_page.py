"""The page of a fit: training curves, held-out losses against baselines, and examples."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.masked_lm import MaskedReport
from ..inference.examples import Example
from .chart import Line, line_chart
from .evaluation_sections import loss_by_frequency
from .page import BASELINES, example_html, facts, page, paragraph, section, table


def fit_page(title: str, verdict: str, about: Mapping[str, Any], records: Sequence[Mapping[str, Any]], *,
             heldout: MaskedReport | None, before: MaskedReport | None, found: Sequence[Example],
             masking_rates: Sequence[float]) -> str:
    """`records` is the run's log, `masking_rates` what the masking rate began and ended with."""
    parts = [section("The fit", paragraph(verdict), facts(about)), section("Training", *_curves(records, heldout, masking_rates))]
    if heldout is not None:
        parts.append(section("Held-out text", _figures(heldout, before), loss_by_frequency(heldout.by_frequency)))
    if found:
        parts.append(section("Predictions for masks", paragraph(
            "Held-out sentences with one word masked, and the model's most probable words."),
            *map(example_html, found)))
    return page(title, *parts)


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
