"""The models of a server: each has a queue, a thread and a cache of vectors, and is used through its pipeline."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.passes.sequences import read_sentence
from ..api.pipeline import Pipeline
from ..core.arrays import Array
from ..core.cache import of_every_layer
from ..core.modules.heads.tasks import Answers
from ..errors import ConfigError, InputError, MiniBertError
from ..evaluation.formats.tables import Labelled
from ..evaluation.tasks.encode import encode_texts
from ..evaluation.tasks.predict import scores_of_texts
from ..evaluation.tasks.storage import SavedTask
from ..inference.embed import vectors_of_ids
from ..inference.ragged import MOST_TEXTS
from ..text.tokenizer import checked
from ..workers import Workers
from .batching import Batcher, Done
from .fields import Single
from .limits import Limits
from .metrics import Metrics
from .vector_cache import VectorCache

Vectors = npt.NDArray[np.float32]
Ids = list[int]
_JOINED = ("embed", "predict")        # kinds of jobs that share a batch


class NotServedError(MiniBertError):
    """No model of this name, or none that can do what is asked."""


class TooLargeError(MiniBertError):
    """A request above a limit."""


def served_name(pipeline: Pipeline) -> str:
    """What requests call a model: its name, or the last part of its directory."""
    return Path(pipeline.name).name or pipeline.name


class ServedModel:
    """One model. What computes runs in its thread: `submit` and the methods that return a Future."""

    def __init__(self, pipeline: Pipeline, team: Workers, limits: Limits, metrics: Metrics):
        self.pipeline, self.name, self._team, self._limits = pipeline, served_name(pipeline), team, limits
        self.cache = VectorCache(limits.cache, pipeline.model.config.hidden_size)
        self._metrics = metrics
        self.batcher = Batcher(self.name, self._run, limits, joined=_JOINED, told=self._told)

    def _told(self, done: Done) -> None:
        self._metrics.observe("batch_seconds", done.seconds, model=self.name)
        self._metrics.observe("batch_tokens", done.tokens, model=self.name)
        self._metrics.count("batch_requests_total", done.jobs, model=self.name)

    @property
    def longest(self) -> int:
        """Tokens that the model reads at once."""
        return self.pipeline.model.config.max_seq_length

    @property
    def width(self) -> int:
        return self.pipeline.model.config.hidden_size

    @property
    def classifier(self) -> SavedTask | None:
        """Its task, if it gives labels or a number to texts or pairs."""
        task = self.pipeline.task
        return task if task is not None and task.model.task.answers is Answers.SEQUENCE else None

    @property
    def ranker(self) -> SavedTask | None:
        """Its task, if its answer to a pair is one score: of a single output, or of two labels the second one's."""
        task = self.classifier
        return task if task is not None and task.pairs is not False and task.model.task.outputs <= 2 else None

    # ---------------------------------------------------------------- tokens

    def ids(self, inputs: Iterable[str | Ids], *, truncate: bool = False, keep_end: bool = False) -> list[Ids]:
        """The ids of texts without special tokens; ids that are given are checked. `truncate` cuts what the model does
        not read at once, at the end or, with `keep_end`, at the beginning; otherwise such a text is read in windows."""
        tokenizer, found = self.pipeline.tokenizer, []
        room, pieces = max(1, self.longest - tokenizer.template.added()), len(tokenizer)
        for given in inputs:
            row = tokenizer.ids(checked(given)) if isinstance(given, str) else given
            if not isinstance(given, str) and row and max(row) >= pieces:
                raise InputError(f"The id {max(row)} is outside the vocabulary, whose ids are 0 to {pieces - 1}.")
            if truncate and len(row) > room:
                row = row[-room:] if keep_end else row[:room]
            found.append(row)
        return found

    def tokens(self, rows: Iterable[Sequence[int]], *, pair: bool = False) -> int:
        """How many tokens the rows have with their special ones; more than a request may have are refused."""
        added = self.pipeline.tokenizer.template.added(pair=pair)
        total = sum(len(row) + added for row in rows)
        if total > self._limits.tokens:
            raise TooLargeError(f"The request has {total:,} tokens; at most {self._limits.tokens:,} are allowed. Send "
                                "it in parts.")
        return total

    def count(self, texts: Iterable[str]) -> int:
        """The tokens of texts that a method of the pipeline will read."""
        return self.tokens(self.ids(texts))

    # ---------------------------------------------------------------- jobs

    def vectors(self, rows: Sequence[Ids]) -> "tuple[list[bytes], list[Array | None], Future[Vectors] | None]":
        """The key of each row, its vector if it is in the cache, and the vectors of the other rows, to come."""
        keys = [VectorCache.key(row) for row in rows]
        known = [self.cache.get(key) for key in keys]
        hits = sum(vector is not None for vector in known)
        self._metrics.count("cache_total", hits, model=self.name, result="hit")
        self._metrics.count("cache_total", len(rows) - hits, model=self.name, result="miss")
        missing = [row for row, vector in zip(rows, known, strict=True) if vector is None]
        return keys, known, self.submit("embed", missing, self.tokens(missing)) if missing else None

    def scores(self, records: Sequence[Single], tokens: int) -> "Future[Array]":
        """The scores (N, C) of the head for texts or pairs, before softmax."""
        return self.submit("predict", [Labelled(text, pair, "") for text, pair in records], tokens)

    def call(self, function: Callable[[], Any], tokens: int) -> "Future[Any]":
        """The result of a function that runs in the model's thread."""
        return self.submit("call", function, tokens)

    def submit(self, kind: str, given: Any, tokens: int) -> "Future[Any]":
        self._metrics.count("input_tokens_total", tokens, model=self.name)
        return self.batcher.submit(kind, given, tokens)

    def _run(self, kind: str, given: Sequence[Any]) -> Sequence[Any]:
        """In the model's thread: one answer for each of a batch's jobs."""
        if kind == "call":
            return [function() for function in given]
        together = [item for items in given for item in items]
        borders = np.cumsum([len(items) for items in given])[:-1]
        found = self._embed(together) if kind == "embed" else self._predict(together)
        return np.split(found, borders)

    def _embed(self, rows: list[Ids]) -> Vectors:
        return vectors_of_ids(self.pipeline.model, self.pipeline.tokenizer, rows, batch_size=MOST_TEXTS,
                              team=self._team)

    def _predict(self, records: list[Labelled]) -> Array:
        task = self.classifier
        assert task is not None
        encoded = encode_texts(records, task.tokenizer, self.longest, [],
                               with_types=task.model.config.token_types > 1)
        return scores_of_texts(task.model, encoded, self._team)

    # ---------------------------------------------------------------- attention

    def attention(self, text: str, layer: int | None) -> dict[str, Any]:
        """Of every head: (layers, heads, tokens, tokens), rows are what a token attends to."""
        model = self.pipeline.model
        if layer is not None and layer >= model.config.num_layers:
            raise InputError(f"The model has {model.config.num_layers} layers, 0 to {model.config.num_layers - 1}.")
        sentence = read_sentence(model, self.pipeline.tokenizer, text)
        weights: dict[str, Array] = {}

        def look(name: str, value: Array) -> Array:
            if name.startswith("attention_weights"):
                weights[name] = value
            return value

        model.encode(sentence.ids[None], forward_only=True, hook=look)
        layers = of_every_layer(weights, "attention_weights", model.config.num_layers)
        chosen = range(len(layers)) if layer is None else [layer]
        return {"tokens": sentence.tokens, "layers": list(chosen),
                "attention": [np.round(layers[number][0].astype(np.float64), 6).tolist() for number in chosen]}

    # ---------------------------------------------------------------- about

    def offers(self) -> list[str]:
        """The addresses that it can answer."""
        lacks, found = self.pipeline.lacks, ["embeddings", "embed", "similar", "tokenize"]
        found += [name for name in ("predict", "fill_mask", "score") if lacks(name) is None]
        found += ["rerank"] if self.ranker is not None else []
        return [*found, "explain"]

    def about(self) -> dict[str, Any]:
        model, labels = self.pipeline.model, self.pipeline.task
        return {"id": self.name, "parameters": model.get_parameter_count(), "layers": model.config.num_layers,
                "dimensions": self.width, "max_input_length": self.longest, "vocabulary": len(self.pipeline.tokenizer),
                "labels": None if labels is None else list(labels.labels), "pooling": "mean",
                "offers": self.offers()}


class Models:
    """The models by name; the first that can do what is asked answers where no name is given."""

    def __init__(self, models: Sequence[ServedModel]):
        self.by_name: Mapping[str, ServedModel] = {model.name: model for model in models}
        if not models:
            raise ConfigError("A server needs at least one model.")
        if len(self.by_name) < len(models):
            names = [model.name for model in models]
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"Two models are called {twice}; rename the directory of one, as requests name it.")

    def find(self, name: str | None, able: Callable[[ServedModel], Any] = lambda model: True) -> ServedModel:
        """The model of this name, or the first that is able, or the first, which then says what it lacks."""
        if name is None:
            return next(filter(able, self.by_name.values()), next(iter(self.by_name.values())))
        if name not in self.by_name:
            raise NotServedError(f"There is no model {name[:100]!r} here; the models are {', '.join(self.by_name)}.")
        return self.by_name[name]

    def close(self) -> None:
        for model in self.by_name.values():
            model.batcher.close()


def opened_models(pipelines: Collection[Pipeline], team: Workers, limits: Limits, metrics: Metrics) -> Models:
    """The models of a server, with what /metrics says of them."""
    made = Models([ServedModel(pipeline, team, limits, metrics) for pipeline in pipelines])

    def gauges() -> Iterable[tuple[str, Mapping[str, str], float]]:
        for model in made.by_name.values():
            requests, tokens = model.batcher.depth
            yield "queue_requests", {"model": model.name}, requests
            yield "queue_tokens", {"model": model.name}, tokens
            yield "cache_vectors", {"model": model.name}, len(model.cache)

    metrics.gauges.append(gauges)
    return made

