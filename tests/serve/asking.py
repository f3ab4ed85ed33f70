"""A small model behind the application, asked without a network."""

import asyncio
import io
import json
from contextlib import contextmanager

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the server needs starlette: pip install 'mini-bert[serve]'")

from mini_bert import MiniBERT, ModelConfig
from mini_bert.api.pipeline import Pipeline
from mini_bert.core.task_model import TaskModel
from mini_bert.evaluation.tasks.storage import SavedTask
from mini_bert.serve.addresses import OwnNames
from mini_bert.serve.app import Keys, create_app
from mini_bert.serve.limits import Limits
from mini_bert.serve.run import service_of
from mini_bert.text.vocabulary import SPECIAL_TOKENS

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "mat", ",", ".", "big", "red", "##s"]
CONFIG = ModelConfig(num_layers=2, num_heads=2, hidden_size=16, intermediate_size=24,
                     vocab_size=len(SPECIAL_TOKENS) + len(WORDS), max_seq_length=16, token_types=2)
JSON = {"content-type": "application/json"}
SMALL = Limits(cache=100_000, window=0.0)


class Answer:
    def __init__(self, messages):
        self.status = messages[0]["status"]
        self.headers = {key.decode(): value.decode() for key, value in messages[0]["headers"]}
        self.body = b"".join(message.get("body", b"") for message in messages[1:])

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def said(self):
        error = self.json["error"]
        return error if isinstance(error, str) else error["message"]


class Asked:
    """An application, and requests to it, one or many at a time."""

    def __init__(self, app, service, log):
        self.app, self.service, self.log = app, service, log

    def __call__(self, path, given=None, **how):
        return asyncio.run(self.one(path, given, **how))

    def many(self, requests):
        async def all_of_them():
            return await asyncio.gather(*(self.one(path, given) for path, given in requests))

        return asyncio.run(all_of_them())

    async def one(self, path, given=None, *, method=None, headers=None, body=None, hosts=("127.0.0.1:8641",),
                  receive=None):
        """`given` is the JSON of a POST; `receive` stands for a client of a special kind."""
        content = body if body is not None else b"" if given is None else json.dumps(given).encode()
        sent = {**(JSON if body is not None or given is not None else {}), **(headers or {})}
        path, _, query = path.partition("?")
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
                 "method": method or ("GET" if given is None and body is None else "POST"), "path": path,
                 "raw_path": path.encode(), "root_path": "", "query_string": query.encode(),
                 "headers": [(b"host", host.encode("latin-1")) for host in hosts]
                 + [(key.encode(), value.encode()) for key, value in sent.items()],
                 "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8641)}
        parts, messages = [{"type": "http.request", "body": content, "more_body": False}], []

        async def stays():
            if parts:
                return parts.pop(0)
            await asyncio.Event().wait()          # the client waits for its answer

        async def send(message):
            messages.append(message)

        await self.app(scope, receive or stays, send)
        return Answer(messages) if messages else None


def small_model(seed=1):
    model = MiniBERT(CONFIG)
    noise = np.random.default_rng(seed).standard_normal(model.params.flat.size)
    model.params.flat += (0.1 * noise).astype(np.float32)
    return model


def with_head(name, tokenizer, labels, *, pairs, head="sequence", task="classification"):
    model = TaskModel(small_model(2), head, len(labels), labels=labels, seed=5)
    return Pipeline(name, model, tokenizer, SavedTask(model, tokenizer, task, list(labels), pairs), threads=1)


@contextmanager
def asked_of(*pipelines, limits=SMALL, keys=(), host="127.0.0.1", names=(), **more):
    log = io.StringIO()
    with service_of(pipelines, limits, threads=1, **more) as service:
        yield Asked(create_app(service, OwnNames(host, 8641, names), keys=Keys(keys), log=log), service, log)
