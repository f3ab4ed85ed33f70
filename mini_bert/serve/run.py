"""Starting and ending a server."""

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TextIO

from ..api.pipeline import Pipeline
from ..errors import ConfigError
from ..inference.collection import Collection as VectorCollection
from ..interrupts import broken_pipes_raise
from ..readers import read_text
from ..workers import Workers, workers
from .addresses import OwnNames, address_of, is_loopback, open_socket
from .app import Keys, create_app
from .calls import Service
from .collection import ServedCollection, Texts
from .connection import Server, make_server
from .limits import Limits
from .metrics import Metrics
from .models import opened_models, served_name

PORT = 8641
KEY = "MINI_BERT_API_KEY"     # the variable of the environment
_SPARE_FILES = 256            # that are open beside connections


def read_keys(file: Path | None) -> Keys:
    """The keys in a file, one a line, or the one in the environment; without either there are none."""
    given = os.environ.get(KEY, "")
    if file is not None:
        found = [line.strip() for line in read_text(file, ConfigError, largest=1 << 20).splitlines() if line.strip()]
        if not found:
            raise ConfigError(f"{file} has no API key; write one a line.")
    else:
        found = [given] if given else []
    for number, key in enumerate(found, 1):
        if len(key) < 8 or not key.isascii() or not key.isprintable() or " " in key:
            raise ConfigError(f"API key {number} must have at least 8 characters of ASCII without spaces.")
    return Keys(found)


@contextmanager
def service_of(pipelines: Collection[Pipeline], limits: Limits, *, threads: int = 0, collection: Path | None = None,
               texts: Iterable[str] | None = None) -> Iterator[Service]:
    """What the requests share: models with their threads, until the block ends."""
    metrics = Metrics()
    with workers(threads) as team:
        models = opened_models(pipelines, team, limits, metrics)
        served: ServedCollection | None = None
        try:
            if collection is not None:
                served = _collection(collection, texts, pipelines, team, limits)
            yield Service(models, limits, metrics, served, began=int(time.time()))
        finally:
            models.close()
            if served is not None:
                served.close()


def _collection(path: Path, texts: Iterable[str] | None, pipelines: Collection[Pipeline], team: Workers,
                limits: Limits) -> ServedCollection:
    found = VectorCollection(path)
    names = [served_name(one) for one in pipelines if one.model.config.hidden_size == found.width]
    if not names:
        raise ConfigError(f"{path} has vectors of {found.width} numbers, which no model here gives.")
    return ServedCollection(found, None if texts is None else Texts(texts), names[0], team, limits)


def run_server(pipelines: Collection[Pipeline], *, host: str = "127.0.0.1", port: int | None = None,
               limits: Limits | None = None, keys: Keys | None = None, names: Sequence[str] = (), threads: int = 0,
               collection: Path | None = None, texts: Iterable[str] | None = None, log: TextIO | None = None,
               say: Callable[[str], None] = print) -> None:
    """Serve until SIGTERM or Ctrl-C, and then answer what was accepted."""
    allowed = _within_files(limits or Limits())
    with open_socket(host, port, PORT, waiting=1024) as listening, \
            service_of(pipelines, allowed, threads=threads, collection=collection, texts=texts) as service:
        own = OwnNames(host, listening.getsockname()[1], names)
        server = make_server(create_app(service, own, keys=keys, log=log), service)
        if not is_loopback(host) and not keys:
            say(f"Warning: {host or 'every address'} can be reached by other machines; whoever reaches it can use the "
                f"models. An API key ({KEY}, --api-key-file) keeps others out.")
        say(f"{', '.join(map(served_name, pipelines))} at {address_of(listening, host)}docs; Ctrl-C ends it.")
        with broken_pipes_raise():
            server.run(sockets=[listening])


@contextmanager
def serving(pipelines: Collection[Pipeline], *, limits: Limits | None = None, keys: Keys | None = None,
            threads: int = 0, collection: Path | None = None, texts: Iterable[str] | None = None,
            log: TextIO | None = None) -> Iterator[tuple[str, Server]]:
    """A server beside the caller, at a free port of this machine, for tests and scripts: its address, and itself."""
    with open_socket("127.0.0.1", 0, PORT, waiting=1024) as listening, \
            service_of(pipelines, limits or Limits(), threads=threads, collection=collection, texts=texts) as service:
        own = OwnNames("127.0.0.1", listening.getsockname()[1])
        server = make_server(create_app(service, own, keys=keys, log=log), service)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield address_of(listening, "127.0.0.1"), server
        finally:
            server.should_exit = True
            thread.join()


def _within_files(limits: Limits) -> Limits:
    """As many connections as the process may have files, after asking the system for as many as it allows."""
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * limits.connections + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = limits.connections if soft == resource.RLIM_INFINITY else max(16, (soft - _SPARE_FILES) // 2)
    return replace(limits, connections=min(limits.connections, room))
