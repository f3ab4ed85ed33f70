"""Answers about a run: its curve, and what one of its checkpoints makes of the sentence."""

from typing import Any

from ..core.cache import of_every_layer
from ..core.model import MiniBERT
from ..errors import InputError
from .matrices import stacked
from .queries import Parameters, read_query, required
from .runs import Run
from .session import Passes, Session


def _run_of(session: Session) -> Run:
    if session.run is None:
        raise InputError("No run was given: start the explorer with --run DIR to look at its checkpoints.")
    return session.run


def run(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The curve and the checkpoints, as they are now; null where no run was given."""
    return {"run": None if session.run is None else session.run.describe()}


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
