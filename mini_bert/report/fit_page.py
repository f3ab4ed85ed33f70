"""The page about a fit: what was learned from the text, against what guessing would have done."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.masked_lm import MaskedReport
from ..inference.examples import Example
from .chart import Line, line_chart
from .examples import example
from .page import facts, page, paragraph, rows, section


def fit_page(title: str, about: Mapping[str, Any], records: Sequence[Mapping[str, Any]], *,
             heldout: MaskedReport | None, before: MaskedReport | None, found: Sequence[Example],
             masking_rate: float) -> str:
    """`records` are the lines of the run's log."""
    parts = [section("The fit", facts(about)), section("Training", *_curves(records, heldout, masking_rate))]
    if heldout is not None:
        parts.append(section("On text that was held out", _figures(heldout, before),
                             paragraph("Loss by the frequency of the hidden token:"), _by_frequency(heldout)))
    if found:
        parts.append(section("Words for masks", paragraph(
            "Sentences that were held out, with one word hidden, and what the model puts there."),
            *map(example, found)))
    return page(title, *parts)


def _curves(records: Sequence[Mapping[str, Any]], heldout: MaskedReport | None, masking_rate: float) -> list[str]:
    trained = [record for record in records if record.get("loss") is not None]
    evaluated = [record for record in records if record.get("eval_loss") is not None]
    lines = [Line("training loss", [r["tokens"] for r in trained], [r["smoothed_loss"] for r in trained]),
             Line("held-out loss", [r["tokens"] for r in evaluated], [r["eval_loss"] for r in evaluated])]
    levels = {} if heldout is None else {name: heldout.baselines[name] for name in ("unigram", "bigram")}
    rates = Line("learning rate", [r["tokens"] for r in records], [r["learning_rate"] for r in records])
    return [line_chart([line for line in lines if line.x], x_label="tokens", y_label="loss", levels=levels),
            paragraph(f"Training hides {masking_rate:.0%} of the tokens and the measurement 15 %, so the two lines "
                      "need not meet. Unigram is what guessing by the frequency of a token would lose, bigram by the "
                      "token before it as well."),
            line_chart([rates], x_label="tokens", y_label="learning rate")]


def _figures(heldout: MaskedReport, before: MaskedReport | None) -> str:
    measured = [("the model", heldout)] + ([("before the fit", before)] if before is not None else [])
    content = [[name, f"{report.loss:.3f}", f"{report.perplexity:,.1f}", f"{report.accuracy:.1%}"]
               for name, report in measured]
    content += [[f"guessing: {name}", f"{loss:.3f}", "", ""] for name, loss in heldout.baselines.items()]
    return rows(["", "loss", "perplexity", "accuracy"], content, numbers=(1, 2, 3)) \
        + paragraph(f"{heldout.masked:,} hidden tokens, 15 % of the text, each counting the same.")


def _by_frequency(heldout: MaskedReport) -> str:
    return rows(["token", "loss", "tokens"], [[band, f"{loss:.3f}", f"{count:,}"] for band, loss, count
                                              in heldout.by_frequency if count], numbers=(1, 2))
