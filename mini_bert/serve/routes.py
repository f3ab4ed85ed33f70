"""The table of addresses: what each takes, what it answers, and who computes it. OpenAPI is made from this table."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .answers import openai, own, tei
from .calls import Call
from .fields import FLAG, INPUTS, RECORDS, TEXT, TEXTS, Field, Schema, one_of, whole

Answer = Callable[[Call], Awaitable[Any]]
TOP = 1000                    # of results that are asked for


@dataclass(frozen=True)
class Route:
    """An address. `example` is a request, and `returns` the schema of the answer."""

    method: str
    path: str
    answer: Answer
    about: str                                # the first sentence is the summary
    returns: Schema
    fields: Sequence[Field] = ()
    example: Any = None
    form: str = "own"                         # whose form errors have: openai or own
    open: bool = False                        # without an API key


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


_NUMBER, _WHOLE, _STRING = {"type": "number"}, {"type": "integer"}, {"type": "string"}
_VECTOR = _array(_NUMBER)
_LABELS = _array(_object(score=_NUMBER, label=_STRING))
_MODEL = _object(id=_STRING, object=_STRING, created=_WHOLE, owned_by=_STRING)
_HIT = _object(index=_WHOLE, score=_NUMBER, text={"type": ["string", "null"]})
_CANDIDATE = _object(token=_STRING, id=_WHOLE, probability=_NUMBER, text=_STRING)

_which = Field("model", TEXT, "The name of a model; by default the first that can answer.", None)
_truncate = Field("truncate", FLAG, "Cut a text that is longer than the model reads at once. By default such a text is "
                  "read in overlapping windows, and its vector is their mean.", False)
_direction = Field("truncation_direction", one_of(Right="the end", Left="the beginning", right="the end",
                                                  left="the beginning"), "Where a text is cut.", "Right")
_unused = Field("truncate", FLAG, "Not used: a long text is read in overlapping windows.", None)
_dimensions = Field("dimensions", whole(1, 1_000_000), "The size of the vectors; only the model's own is given.", None)
_raw = Field("raw_scores", FLAG, "Scores as they leave the model, not as probabilities.", False)

ROUTES: Sequence[Route] = (
    Route("POST", "/v1/embeddings", openai.embeddings, "Vectors of texts, as OpenAI's interface. A vector has the "
          "length 1.", _object(object=_STRING, model=_STRING, data=_array(_object(
              object=_STRING, index=_WHOLE, embedding={"oneOf": [_VECTOR, _STRING]})),
              usage=_object(prompt_tokens=_WHOLE, total_tokens=_WHOLE)),
          (Field("input", INPUTS, "A text, several texts, or ids of tokens without special ones."), _which,
           Field("encoding_format", one_of(float="numbers", base64="bytes of float32, little-endian"),
                 "Numbers, or bytes of float32 in base64.", "float"), _dimensions,
           Field("user", TEXT, "Not used.", None)),
          {"input": ["A dog barks.", "A cat sleeps."]}, "openai"),
    Route("GET", "/v1/models", openai.models, "The models, as OpenAI's interface.",
          _object(object=_STRING, data=_array(_MODEL)), form="openai"),
    Route("GET", "/v1/models/{name}", openai.model, "One model, as OpenAI's interface.", _MODEL, form="openai"),
    Route("POST", "/embed", tei.embed, "Vectors of texts, as text-embeddings-inference.", _array(_VECTOR),
          (Field("inputs", INPUTS, "A text, several texts, or ids of tokens without special ones."),
           Field("normalize", FLAG, "Scale vectors to length 1.", True), _truncate, _direction, _dimensions, _which),
          {"inputs": ["A dog barks.", "A cat sleeps."]}),
    Route("POST", "/predict", tei.predict, "Labels with their scores, by a fine-tuned model. Of a list of lists, a "
          "list for each. Entities and answers to questions are as `mini-bert predict --json` has them.",
          {"oneOf": [_LABELS, _array(_LABELS), {"type": "object"}]},
          (Field("inputs", RECORDS, "A text, a pair of texts, or a list of lists of one or two texts."), _raw, _unused,
           _which),
          {"inputs": [["a warm and funny film"], ["dull"]]}),
    Route("POST", "/rerank", tei.rerank, "Texts in the order of their relevance to a query. A model of pairs with one "
          "score, or with two labels of which the second says relevant, scores each pair; where there is none, the "
          "score is the cosine of vectors.", _array(_object(index=_WHOLE, score=_NUMBER, text=_STRING)),
          (Field("query", TEXT, "What is looked for."), Field("texts", TEXTS, "The texts to order."), _raw,
           Field("return_text", FLAG, "Give each text back with its score.", False), _unused, _which),
          {"query": "Which animal barks?", "texts": ["A cat sleeps.", "A dog barks."]}),
    Route("POST", "/tokenize", tei.tokenize, "The tokens of texts, with their ids and characters.",
          _array(_array(_object(id=_WHOLE, text=_STRING, special={"type": "boolean"}, start=_WHOLE, stop=_WHOLE))),
          (Field("inputs", TEXTS, "A text, or several."),
           Field("add_special_tokens", FLAG, "With the special tokens around a text.", True), _which),
          {"inputs": "A dog barks."}),
    Route("POST", "/fill-mask", own.fill_mask, "The most probable words for each [MASK].",
          _array(_object(text=_STRING, masks=_array(_array(_CANDIDATE)))),
          (Field("inputs", TEXTS, "A text with [MASK], or several."),
           Field("top", whole(1, TOP), "Words for each mask.", 5), _which),
          {"inputs": "They met for the first [MASK] in Paris."}),
    Route("POST", "/score", own.score, "How likely texts are: the sum of the log-probabilities of their tokens.",
          _array(_object(text=_STRING, measure=_STRING, total=_NUMBER, tokens=_array(_STRING),
                         log_probabilities=_array(_NUMBER), perplexity=_NUMBER)),
          (Field("inputs", TEXTS, "A text, or several."), _which), {"inputs": ["The cat sat.", "The cat sats."]}),
    Route("POST", "/explain", own.explain, "Which tokens speak for a prediction, or what each head attends to. The "
          "method saliency explains the word at the only [MASK], or a label; attention gives the weights of every head "
          "(layers, heads, tokens, tokens).",
          {"oneOf": [_object(prediction=_STRING, probability=_NUMBER, tokens=_array(_STRING), attributions=_VECTOR),
                     _object(tokens=_array(_STRING), layers=_array(_WHOLE),
                             attention=_array(_array(_array(_VECTOR))))]},
          (Field("inputs", TEXT, "One text."),
           Field("method", one_of(saliency="integrated gradients", attention="weights of every head"),
                 "What explains.", "saliency"),
           Field("target", TEXT, "The word or label to explain; by default the most probable one.", None),
           Field("layer", whole(0, 1000), "One layer of attention, from 0; by default all.", None), _which),
          {"inputs": "They met for the first [MASK] in Paris."}),
    Route("POST", "/similar", own.similar, "The nearest texts by the cosine of vectors. They are looked for in the "
          "texts of the request, or else in the collection that the server has loaded. Of each input a list.",
          _array(_array(_HIT)),
          (Field("inputs", TEXTS, "A text to look for, or several."),
           Field("texts", TEXTS, "Texts to compare with, in place of the collection.", None),
           Field("top", whole(1, TOP), "Results for each input.", 5), _which),
          {"inputs": "A dog barks.", "texts": ["A cat sleeps.", "A dog howls.", "Rain falls."], "top": 2}),
    Route("GET", "/health", tei.health, "Is the server ready? While it stops, the status is 503.",
          _object(status=_STRING), open=True),
    Route("GET", "/info", tei.info, "The models, what each offers, and the limits.", {"type": "object"}),
)
PATHS = {route.path for route in ROUTES}
