"""Answers in the form of Hugging Face's text-embeddings-inference."""

from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool

from ...core.arrays import Array
from ...core.ops.silu import sigmoid
from ...core.ops.softmax import softmax_forward
from ...errors import InputError
from ...text.tokenizer import Tokenizer
from ...version import __version__
from ..calls import Call, numbers
from ..models import ServedModel


async def embed(call: Call) -> Any:
    """POST /embed."""
    given, model = call.given, call.find()
    if given["dimensions"] not in (None, model.width):
        raise InputError(f"The vectors of {model.name} have {model.width} dimensions; it gives no others.")
    return numbers(await call.vectors(model, given["inputs"], normalise=given["normalize"], truncate=given["truncate"],
                                      keep_end=given["truncation_direction"].lower() == "left"))


async def predict(call: Call) -> Any:
    """POST /predict: labels with their scores, the highest first; of taggers and readers, what `predict` gives."""
    asked, model = call.given["inputs"], call.find(lambda model: model.pipeline.task is not None)
    tokens = await _count_records(call, model, asked.records)
    task = model.classifier
    if task is None:
        found = await call.computed(model.call(lambda: model.pipeline.predict(_as_given(asked.records)), tokens))
        shown = [one.to_dict() for one in found]
        return shown if asked.many else shown[0]
    for number, (_, pair) in enumerate(asked.records):
        if task.pairs not in (None, pair is not None):
            raise InputError(f"Element {number} of inputs {'is one text' if pair is None else 'is a pair'}; "
                             f"{model.name} takes {'pairs of texts' if task.pairs else 'single texts'}.")
    scores = await call.computed(model.scores(asked.records, tokens))
    values = scores if call.given["raw_scores"] else task.model.loss.values(scores)
    answers = [_sorted(dict(zip(task.labels, numbers(row), strict=True))) for row in values]
    return answers if asked.many else answers[0]


def _as_given(records: list[tuple[str, str | None]]) -> Any:
    return [text if pair is None else (text, pair) for text, pair in records]


def _sorted(scores: dict[str, float]) -> list[dict[str, Any]]:
    return [{"score": scores[label], "label": label} for label in sorted(scores, key=lambda label: -scores[label])]


async def rerank(call: Call) -> Any:
    """POST /rerank: by a model of pairs if there is one, and otherwise by the cosines of vectors."""
    given, model = call.given, call.find(lambda model: model.ranker)
    query, texts = given["query"], given["texts"]
    if model.ranker is not None:
        pairs = [(query, text) for text in texts]
        scores = _relevance(await call.computed(model.scores(pairs, await _count_records(call, model, pairs))),
                            raw=given["raw_scores"])
    else:
        vectors = await call.vectors(model, [query, *texts])
        scores = vectors[1:] @ vectors[0]
    shown = numbers(scores)
    order = np.argsort(-scores, kind="stable").tolist()
    return [{"index": i, **({"text": texts[i]} if given["return_text"] else {}), "score": shown[i]} for i in order]


def _relevance(scores: Array, *, raw: bool) -> Array:
    """(N, 1) or (N, 2) -> (N,): the only score, or that of the second label."""
    if scores.shape[1] == 1:
        only: Array = scores[:, 0]
        return only if raw else sigmoid(only)
    two: Array = scores[:, 1] - scores[:, 0] if raw else softmax_forward(scores)[0][:, 1]
    return two


async def _count_records(call: Call, model: ServedModel, records: list[tuple[str, str | None]]) -> int:
    call.require_few(len(records))
    texts = [one for record in records for one in record if one is not None]
    rows = await run_in_threadpool(lambda: model.ids(texts))
    tokens = model.tokens(rows)
    call.tokens += tokens
    return tokens


async def tokenize(call: Call) -> Any:
    """POST /tokenize: for each text its tokens, with the characters that they stand for."""
    given, model = call.given, call.find()
    await call.ids(model, given["inputs"])
    tokenizer = model.pipeline.tokenizer
    return await run_in_threadpool(lambda: [_tokens(tokenizer, text, given["add_special_tokens"])
                                            for text in given["inputs"]])


def _tokens(tokenizer: Tokenizer, text: str, special: bool) -> list[dict[str, Any]]:
    found, ordinary = tokenizer.align(text, add_special_tokens=special), tokenizer.vocabulary.ordinary
    return [{"id": number, "text": token, "special": not bool(ordinary[number]),
             "start": None if word is None else start, "stop": None if word is None else stop}
            for number, token, (start, stop), word in zip(found.ids, found.tokens, found.offsets, found.word_ids,
                                                          strict=True)]


async def health(call: Call) -> Any:
    """GET /health."""
    return {"status": "stopping" if call.service.stopping else "ok"}


async def info(call: Call) -> Any:
    """GET /info: the first model in text-embeddings-inference's words, the limits, and all models."""
    models, limits = list(call.service.models.by_name.values()), call.service.limits
    first, collection = models[0], call.service.collection
    return {"model_id": first.name, "model_sha": None, "model_dtype": first.pipeline.model.dtype.name,
            "model_type": {"embedding": {"pooling": "mean"}}, "max_input_length": first.longest,
            "max_concurrent_requests": limits.queue, "max_batch_tokens": limits.batch_tokens,
            "max_batch_requests": None, "max_client_batch_size": limits.inputs, "max_request_tokens": limits.tokens,
            "max_request_bytes": limits.body, "auto_truncate": False, "version": __version__,
            "models": [model.about() for model in models],
            "collection": None if collection is None else collection.about()}
