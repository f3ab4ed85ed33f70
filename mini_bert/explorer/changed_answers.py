"""Answers about a model with something changed, and about two sides: other sentences, other models."""

from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.passes.interventions import changed_probabilities, check_place
from ..errors import InputError
from ..evaluation.metrics import target_ranks
from ..evaluation.representations.geometry import layer_states, unit_rows
from .layer_answers import attention
from .queries import Parameters, Query, index_of, read_edits, read_heads, read_query, required
from .session import TOP, Passes, Session

Floats = npt.NDArray[np.floating]
_SMALL = 1e-3                 # half the reach of a slider where a parameter is all zeros


def intervene(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The predictions with some heads off (off=0.1,2.3) and some weights edited (edit=W_Q_0:3,5:0.7), before and after.

    The model is as before when the answer is there.
    """
    passes = session.passes(read_query(parameters))
    heads, edits = read_heads(parameters.get("off", "")), read_edits(parameters.get("edit", ""))
    if not passes.targets:
        raise InputError("Nothing is masked, so there is no prediction to watch: click a word to mask it.")
    before, loss = passes.probabilities, passes.loss(passes.targets)
    was = []
    for edit in edits:
        check_place(session.model, edit.name, edit.index)
        was.append(float(session.model.params[edit.name][edit.index]))
    after = changed_probabilities(session.model, passes.sentence.ids, types=passes.sentence.types, heads=heads,
                                  edits={(edit.name, edit.index): edit.value for edit in edits})
    tiny = float(np.finfo(after.dtype).tiny)
    now = -sum(log(max(float(after[row, target]), tiny)) for row, target in passes.targets.items())
    return {"loss_before": loss, "loss_after": now / len(passes.targets) if heads or edits else loss,
            "edits": [{"name": edit.name, "index": list(edit.index), "before": old, "value": edit.value}
                      for edit, old in zip(edits, was, strict=True)],
            "predictions": [_moved(passes, row, target, before, after) for row, target in passes.targets.items()]}


def _moved(passes: Passes, row: int, target: int, before: Floats, after: Floats) -> dict[str, Any]:
    """The likeliest words of before and of after, with both probabilities."""
    size, names = len(passes.tokenizer), passes.tokenizer.vocabulary
    best = [np.argsort(-table[row, :size], kind="stable")[:TOP].tolist() for table in (before, after)]
    ids = list(dict.fromkeys([target, *best[0], *best[1]]))
    return {"position": row + passes.ahead, "row": row, "target": names[target], "target_id": target,
            "rank": int(target_ranks(after[row][None], np.array([target])).above[0]) + 1,
            "words": [{"id": i, "token": names[i], "before": float(before[row, i]), "after": float(after[row, i])}
                      for i in ids]}


def weight(session: Session, parameters: Parameters) -> dict[str, Any]:
    """One number of a parameter, and how far a slider for it should reach."""
    name, index = required(parameters, "name"), index_of(parameters)
    check_place(session.model, name, index)
    array = session.model.params[name]
    return {"name": name, "index": list(index), "value": float(array[index]),
            "reach": 2 * float(np.abs(array).max()) or 2 * _SMALL}


def compare(session: Session, parameters: Parameters) -> dict[str, Any]:
    """The sentence on one side and another one, or another model, on the other side.

    Without other=... it is the same sentence for another model, or else the same words in reverse order.
    """
    query = read_query(parameters)
    first, second = session.passes(query), session.other or session
    chosen = not parameters.get("other") and session.other is None
    text = parameters.get("other") or (query.text if session.other is not None else _reversed(query.text))
    asked = {"text": text, "pair": parameters.get("otherpair", query.pair if not parameters.get("other") else "")}
    marks = parameters.get("othermask", "")
    with second.lock:
        plain = second.passes(read_query(asked))
        mask = "" if marks == "none" else marks or ",".join(map(str, _same_words(first, plain)))
        there = second.passes(read_query({**asked, "mask": mask}))
        sides = [_side(session, first), _side(second, there)]
        alike = _cosine(first, there)
    return {"sides": sides, "models": session.other is not None, "chosen": chosen, **alike}


def _reversed(text: str) -> str:
    return " ".join(reversed(text.split()))


def _same_words(first: Passes, second: Passes) -> list[int]:
    """Where the words that are masked in the first stand in the second, the first time each."""
    words = [first.original[place] for place in first.masks]
    return sorted({second.original.index(word) for word in words if word in second.original})


def _side(session: Session, passes: Passes) -> dict[str, Any]:
    query: Query = passes.query
    predicts = session.model.modules.predicts_words
    targets = passes.targets if predicts else {}
    found = attention(session, {"text": query.text, "pair": query.pair, "mask": ",".join(map(str, query.mask))})
    return {"name": session.name, "text": query.text, "pair": query.pair, "tokens": passes.sentence.tokens,
            "original": passes.original, "masks": passes.masks, "special": passes.special, "types": passes.types,
            "predicts": predicts, "loss": passes.loss(targets) if targets else None,
            "predictions": [passes.prediction(row, target) for row, target in targets.items()],
            "weights": found["weights"], "heads": found["heads"]}


def _cosine(first: Passes, second: Passes) -> dict[str, Any]:
    """By layer and position, if both sides have vectors of one length at as many positions."""
    states = [layer_states(passes.forward.cache) for passes in (first, second)]
    shapes = [[state.shape for state in side.values()] for side in states]
    if shapes[0] != shapes[1]:
        return {}
    units = [[unit_rows(state[0].astype(np.float64)) for state in side.values()] for side in states]
    cosine = [np.einsum("th,th->t", a, b).tolist() for a, b in zip(*units, strict=True)]
    names = [f"layer {name.removeprefix('hidden_')}" if name.startswith("hidden_") else name.replace("_", " ")
             for name in states[0]]
    tokens = zip(first.sentence.tokens, second.sentence.tokens, strict=True)
    return {"cosine": cosine, "layers": names, "labels": [a if a == b else f"{a} / {b}" for a, b in tokens]}
