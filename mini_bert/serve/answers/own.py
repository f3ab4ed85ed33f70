"""Answers that only Mini-BERT gives: filled masks, likelihoods, explanations, and the nearest of a collection."""

from typing import Any

import numpy as np

from ...errors import InputError
from ...evaluation.result import finite
from ..calls import Call, numbers


async def fill_mask(call: Call) -> Any:
    """POST /fill-mask."""
    given, model = call.given, call.find(lambda model: model.pipeline.lacks("fill_mask") is None)
    tokenizer = model.pipeline.tokenizer
    rows = await call.ids(model, [tokenizer.with_mask(text) for text in given["inputs"]])
    tokens, mask = call.tokens, tokenizer.vocabulary.roles.get("mask")
    written = given["top"] * sum(len(row) * row.count(mask) for row in rows if mask is not None)
    call.require_little(written, f"The text with each of {given['top']} words in place of each mask is {written:,} "
                        "tokens")
    found = await call.computed(model.call(lambda: model.pipeline.fill_mask(given["inputs"], given["top"]), tokens))
    return found.to_dict()


async def score(call: Call) -> Any:
    """POST /score."""
    given, model = call.given, call.find(lambda model: model.pipeline.lacks("score") is None)
    rows = await call.ids(model, given["inputs"])
    tokens = sum(len(row) * min(len(row) + 2, model.longest) for row in rows)          # each is masked in its window
    call.require_little(tokens, f"Each token is masked in turn, which makes {tokens:,} tokens to read")
    found = await call.computed(model.call(lambda: model.pipeline.score(given["inputs"]), tokens))
    return finite(found.to_dict())


async def explain(call: Call) -> Any:
    """POST /explain: what each token adds to a prediction, or the attention of every head."""
    given, method = call.given, call.given["method"]
    if method == "attention" and given["target"] is not None:
        raise InputError("A target belongs to the method saliency.")
    if method == "saliency" and given["layer"] is not None:
        raise InputError("A layer belongs to the method attention.")
    model = call.find(lambda model: method == "attention" or model.pipeline.lacks("explain") is None)
    tokens = await call.count(model, [given["inputs"]])
    if method == "attention":
        layers = model.pipeline.model.config.num_layers if given["layer"] is None else 1
        weights = layers * model.pipeline.model.config.num_heads * tokens**2
        call.require_little(weights, f"The text has {weights:,} weights of attention; ask for one layer")
        return await call.computed(model.call(lambda: model.attention(given["inputs"], given["layer"]), tokens))
    found = await call.computed(model.call(lambda: model.pipeline.explain(given["inputs"], given["target"]), tokens))
    return finite(found.to_dict())


async def similar(call: Call) -> Any:
    """POST /similar: for each text the nearest of the texts that are given, or of the loaded collection."""
    given, collection = call.given, call.service.collection
    if given["texts"] is not None:
        model = call.find()
        vectors = await call.vectors(model, [*given["inputs"], *given["texts"]])
        asked, known = vectors[: len(given["inputs"])], vectors[len(given["inputs"]) :]
        return [[{"index": i, "score": shown, "text": given["texts"][i]} for i, shown in _best(row, given["top"])]
                for row in asked @ known.T]
    if collection is None:
        raise InputError("No collection is loaded: give texts to compare with, or start the server with --collection.")
    model = call.find(lambda model: model.name == collection.model)
    if model.name != collection.model:
        raise InputError(f"The collection has vectors of {collection.model}, not of {model.name}.")
    asked = await call.vectors(model, given["inputs"])
    found = await call.computed(collection.search(asked, given["top"]))
    return [[{"index": hit.number, "score": numbers(hit.cosine), "text": collection.text(hit.number)} for hit in hits]
            for hits in found]


def _best(row: Any, top: int) -> list[tuple[int, float]]:
    order = np.argsort(-row, kind="stable")[:top]
    return list(zip(order.tolist(), numbers(row[order]), strict=True))
