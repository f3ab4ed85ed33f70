"""Answers about a run: its curve, and what one of its checkpoints makes of the sentence."""

from typing import Any

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
    predictions = []
    for position, target in here.targets.items():         # the same targets for all checkpoints
        row = passes.probabilities[position]
        predictions.append({"position": position, "target": session.tokenizer.vocabulary[target],
                            "probability": float(row[target]), "rank": int((row > row[target]).sum()) + 1,
                            "candidates": passes.candidates(position)})
    answer: dict[str, Any] = {"name": name, "predictions": predictions}
    if parameters.get("attention"):
        answer["weights"] = stacked([passes.forward[f"attention_weights_{i}"].array
                                     for i in range(model.config.num_layers)])
    return answer
