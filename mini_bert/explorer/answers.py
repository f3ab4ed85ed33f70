"""The answers to what the page asks, one function a question; the server and the exported file have them from here.

Each takes the session and the request's parameters and returns what JSON can hold.
"""

from collections.abc import Callable
from typing import Any

from ..analysis.dynamics.gradient_flow import gradient_flow
from ..analysis.passes.backward_steps import BackwardStep, verify_entry
from ..analysis.passes.forward_steps import Step, explain_cell
from ..analysis.passes.zeros import why_zero, why_zero_gradient
from ..core.registry import find
from ..errors import InputError
from ..training.optimisers.making import plain_words
from ..version import __version__
from .blocks import blocks_of, places_of_gradients
from .changed_answers import compare, intervene, weight
from .derivations import derivations
from .layer_answers import attention, layers, saliency
from .matrices import axis_kinds, backward_matrix, forward_matrix, parameter_matrix, statistics
from .queries import LONGEST_TEXT, Parameters, index_of, learning_rate, read_query, required
from .run_answers import checkpoint, run, timeline
from .session import Passes, Session

Answer = Callable[[Session, Parameters], dict[str, Any]]
EXAMPLE, EXAMPLE_WORD = "They met for the first time in Paris.", "time"


def info(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The model, what it can do, and what has been done to it."""
    config = session.model.config
    return {"name": session.name, "version": __version__, "parameters": session.model.get_parameter_count(),
            "config": {key: getattr(config, key) for key in (
                "num_layers", "num_heads", "hidden_size", "intermediate_size", "vocab_size", "max_seq_length")},
            "predicts": session.model.modules.predicts_words, "causal": session.model.modules.causal,
            "streams": session.model.modules.stack.orders, "longest_text": LONGEST_TEXT,
            "parameter_shapes": [[name, list(session.model.params[name].shape)] for name in session.model.params],
            "against": None if session.other is None else session.other.name,
            "optimisers": {word: find("optimiser", word).named.title or word for word in plain_words()},
            "example": _example(session), "run": None if session.run is None else session.run.name,
            **_training_state(session)}


def _example(session: Session) -> dict[str, str]:
    """A sentence to begin with, and in it a word to mask, if the vocabulary has it as a single token."""
    tokens = session.tokenizer.encode(EXAMPLE)
    place = next((i for i, number in enumerate(tokens) if session.tokenizer.vocabulary[number] == EXAMPLE_WORD), 1)
    return {"text": EXAMPLE, "mask": str(place)}


def _training_state(session: Session) -> dict[str, Any]:
    """What has been done to the model: all steps that were not undone, and the losses of the last of them."""
    return {"state": session.version, "steps": session.taken, "history": list(session.history),
            "undoable": session.undoable}


def sentence(session: Session, parameters: Parameters) -> dict[str, Any]:
    """Tokens, masks, targets, and the likeliest words at the masks."""
    passes = session.passes(read_query(parameters))
    found = passes.sentence
    answer = {"tokens": found.tokens, "original": passes.original, "ids": found.ids.tolist(), "masks": passes.masks,
              "special": passes.special, "types": passes.types}
    predicts = session.model.modules.predicts_words
    return answer | (_predictions(passes) if predicts else {"predictions": [], "loss": None})


def _predictions(passes: Passes) -> dict[str, Any]:
    targets = passes.targets
    shown = [{**passes.prediction(row, target), "target_id": target, "guessed": row not in passes.sentence.targets}
             for row, target in targets.items()]
    return {"predictions": shown, "loss": passes.loss(targets) if targets else None}


def forward(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The steps of the forward pass, without their numbers."""
    passes = session.passes(read_query(parameters))
    return {"tokens": passes.sentence.tokens, "blocks": blocks_of(passes.forward), "steps": [
        {**_described(step), "derivation": _derivation(step.page)} for step in passes.forward]}


def _described(step: Step | BackwardStep) -> dict[str, Any]:
    return {**step.to_dict(), **statistics(step.array), "axes": axis_kinds(step.axes)}


def _derivation(page: str) -> str | None:
    """The page, if it is there to be read."""
    return page if page in derivations() else None


def backward(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The steps of the backward pass, without their numbers, and the norms by layer."""
    passes = session.passes(read_query(parameters))
    found = passes.backward
    flow = gradient_flow(found).to_dict()
    places = places_of_gradients(passes.forward, found)
    symbols = {step.name: step.symbol for step in passes.forward}
    return {"tokens": passes.sentence.tokens, **_predictions(passes), "loss": found.loss,
            "blocks": blocks_of(passes.forward),
            "steps": [{**_described(step), "derivation": _derivation(step.page), "place": places[step.name],
                       "symbol": symbols.get(step.of, step.of)} for step in found],
            "flow": {key: flow[key] for key in ("layers", "by_component", "by_layer", "share", "total")}}


def matrix(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The numbers of one step: of=forward or backward, or of=parameter, with its name."""
    passes, name = session.passes(read_query(parameters)), required(parameters, "name")
    kind = parameters.get("of", "forward")
    if kind == "forward":
        return forward_matrix(passes, passes.forward[name])
    if kind == "backward":
        return backward_matrix(passes, passes.backward[name])
    if kind == "parameter":
        return parameter_matrix(passes, name)
    raise InputError(f"of must be forward, backward or parameter, not {kind[:40]!r}.")


def cell(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The sum behind one number of a forward step."""
    passes, index = session.passes(read_query(parameters)), index_of(parameters)
    step = passes.forward[required(parameters, "name")]
    if len(index) < 2:
        raise InputError("index must be row,column or head,row,column.")
    found = explain_cell(step, index[-2], index[-1], index[0] if len(index) == 3 else None)
    return {**found.to_dict(), "zero": why_zero(passes.forward, step, found)}


def verify(session: Session, parameters: Parameters) -> dict[str, Any]:
    """One entry of a gradient against a finite difference."""
    passes = session.passes(read_query(parameters))
    step, index = passes.backward[required(parameters, "name")], index_of(parameters)
    return {**verify_entry(step, index).to_dict(), "zero": why_zero_gradient(passes.backward, step, index)}


# -------------------------------------------------------------------- changes


def step(session: Session, parameters: Parameters) -> dict[str, Any]:
    """One step of training on the sentence: what was predicted before it and after it."""
    query, rate = read_query(parameters), learning_rate(parameters.get("learning_rate", ""))
    before = session.passes(query)
    shown, old = _predictions(before), before.probabilities.copy()
    done = session.step(query, rate, parameters.get("optimiser", plain_words()[0]))
    after = session.passes(query)
    for old_entry in shown["predictions"]:                # the words of before and of after, in one table
        row = old_entry["row"]
        ids = dict.fromkeys([old_entry["target_id"], *(c["id"] for c in old_entry["candidates"]),
                             *(c["id"] for c in after.candidates(row))])
        old_entry["words"] = [{"id": i, "token": session.tokenizer.vocabulary[i],
                               "before": float(old[row, i]), "after": float(after.probabilities[row, i])}
                              for i in ids]
    return {"loss_before": done["loss"], "loss_after": done["loss_after"], "predictions": shown["predictions"],
            "parts": done["parts"], **_training_state(session)}


def undo(session: Session, parameters: Parameters) -> dict[str, Any]:
    """Take back the last step."""
    session.undo()
    return _training_state(session)


def reset(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The model as it was loaded."""
    session.reset()
    return _training_state(session)


ANSWERS: dict[str, Answer] = {"info": info, "sentence": sentence, "forward": forward, "backward": backward,
                              "matrix": matrix, "cell": cell, "verify": verify, "attention": attention,
                              "layers": layers, "saliency": saliency, "run": run, "checkpoint": checkpoint,
                              "timeline": timeline, "intervene": intervene, "weight": weight, "compare": compare}
CHANGES: dict[str, Answer] = {"step": step, "undo": undo, "reset": reset}
