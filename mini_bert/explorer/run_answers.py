"""Answers about a run: its curve, and what one of its checkpoints makes of the sentence."""

from typing import Any

from ..analysis.timeline.record import FILE, read_timeline
from ..core.cache import of_every_layer
from ..core.model import MiniBERT
from ..errors import DataError, InputError
from ..readers import is_file
from .matrices import stacked
from .queries import Parameters, read_query, required
from .runs import Run, shipped_timelines
from .session import Passes, Session


def _run_of(session: Session) -> Run:
    if session.run is None:
        raise InputError("No run was given: start the explorer with --run DIR to look at its checkpoints.")
    return session.run


def run(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The curve and the checkpoints, as they are now; null where no run was given."""
    return {"run": None if session.run is None else session.run.describe()}


def timeline(session: Session, parameters: Parameters) -> dict[str, Any]:
    """What the snapshots of the run know; without a run, those of a shipped model, first of all of the one shown.

    Null where there is none, or where it cannot be read.
    """
    places = shipped_timelines(session.name) if session.run is None else {session.run.name: session.run.directory}
    notes: list[str] = []
    for name, place in places.items():
        if is_file(place / FILE):
            try:
                return {"timeline": read_timeline(place / FILE).to_dict(), "of": name, "notes": notes}
            except DataError as error:
                notes.append(str(error))
    return {"timeline": None, "of": None, "notes": notes}


def checkpoint(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The sentence with one checkpoint: predictions, loss and, if attention=1, the attention weights."""
    query, name = read_query(parameters), required(parameters, "name")
    model = _run_of(session).model(name, MiniBERT.load)
    here = session.passes(query)
    if model.config.vocab_size != session.model.config.vocab_size:
        raise InputError(f"The checkpoint {name} has another vocabulary than the model that is shown.")
    passes = Passes(model, session.tokenizer, query)
    predictions = [passes.prediction(*asked) for asked in here.targets.items()]     # the same for all checkpoints
    answer: dict[str, Any] = {"name": name, "predictions": predictions}
    if parameters.get("attention"):
        answer["weights"] = stacked(of_every_layer(passes.forward.arrays, "attention_weights", model.config.num_layers))
    return answer
