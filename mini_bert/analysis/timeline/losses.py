"""The entry of the held-out loss, by the run's own objective."""

from collections.abc import Mapping

from ...core.model import MiniBERT
from ...core.registry import register
from ...errors import DataError
from ...text.tokenizer import Tokenizer
from ...training.config import make_objective
from ...workers import workers
from .data import TimelineData
from .entry import NUMBER, TimelineEntry

HELDOUT = "held-out"


def held_out_loss(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> Mapping[str, float]:
    """The main loss of the run's objective on the sequences that the run is evaluated on."""
    data.corpus.require_vocabulary(tokenizer)
    objective = make_objective(data.record.training, model)
    if objective.params.flat.size != model.params.flat.size:
        raise DataError("the run's objective trains more than the model, but a snapshot has only the model")
    parts = data.kept("held out", None, lambda: objective.heldout(data.corpus, data.record.training))
    with workers(data.threads) as team:
        return {HELDOUT: objective.evaluate(parts, team)[objective.main]}


def guesses(model: MiniBERT, tokenizer: Tokenizer, data: TimelineData) -> dict[str, dict[str, float]]:
    """The losses of guessing that were stored when the run began."""
    named = {"uniform": "uniform_loss", "by frequency": "unigram_loss"}
    found = {name: data.record.stored_baseline(key) for name, key in named.items()} if data.record.of_words else {}
    return {HELDOUT: {name: value for name, value in found.items() if value is not None}}


register("timeline", "loss")(TimelineEntry(
    "Held-out loss", held_out_loss, ("corpus",), NUMBER, guesses, columns={"loss": HELDOUT},
    logged={HELDOUT: "eval_loss"}))
