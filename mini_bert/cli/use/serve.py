"""mini-bert serve: models behind HTTP."""

import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from ...errors import ConfigError, InputError
from ..completion import models
from ..output import Output, ThreadsOption

_MODELS = typer.Option("--model", "-m", metavar="NAME|DIR", help="A model to serve; may be repeated. Requests name it "
                       "by its name, or the last part of its directory.", autocompletion=models)


def serve_command(
        model: Annotated[list[str] | None, _MODELS] = None,
        host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
        port: Annotated[int | None, typer.Option("--port", "-p", min=1, max=65535, help="Default: 8641, or a free port "
                                                 "if that is taken.")] = None,
        api_key_file: Annotated[Path | None, typer.Option(
            "--api-key-file", metavar="FILE", help="API keys, one a line. Or put one key into the environment variable "
            "MINI_BERT_API_KEY.")] = None,
        allow_host: Annotated[list[str] | None, typer.Option(
            "--allow-host", metavar="NAME", help="Another name that the Host header may have, as behind a proxy; may "
            "be repeated.")] = None,
        collection: Annotated[Path | None, typer.Option(
            "--collection", metavar="FILE", help="Vectors that /similar searches: a .npy file of mini-bert "
            "embed.")] = None,
        texts: Annotated[str | None, typer.Option(
            "--texts", metavar="FILE", help="The file that the vectors were made from, for the texts of the "
            "results.")] = None,
        threads: ThreadsOption = 0,
        batch_tokens: Annotated[int, typer.Option("--batch-tokens", min=1, help="Tokens that a model reads at a time, "
                                                  "of as many requests as fit.")] = 8192,
        window: Annotated[float, typer.Option("--window", min=0, max=1000, help="Milliseconds that a request waits for "
                                              "others to be computed with.")] = 2.0,
        queue: Annotated[int, typer.Option("--queue", min=1, help="Requests that may wait for a model; others are told "
                                           "when to come again.")] = 512,
        request_tokens: Annotated[int, typer.Option("--request-tokens", min=1, help="Tokens of a request, at "
                                                    "most.")] = 65_536,
        request_texts: Annotated[int, typer.Option("--request-texts", min=1, help="Texts of a request, at "
                                                   "most.")] = 2048,
        request_bytes: Annotated[int, typer.Option("--request-bytes", min=1, help="Bytes of a request, at "
                                                   "most.")] = 2_000_000,
        timeout: Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds for an answer.")] = 60.0,
        connections: Annotated[int, typer.Option("--connections", min=1, help="Connections at once, at most.")] = 1000,
        cache: Annotated[int, typer.Option("--cache", min=0, help="Megabytes of vectors kept for texts that come "
                                           "again, for each model; 0 for none.")] = 32,
        access_log: Annotated[bool, typer.Option("--access-log/--no-access-log", help="Print a line of JSON for each "
                                                 "request on standard error.")] = True,
        *, output: Output) -> None:
    """Serve models over HTTP, with the addresses of OpenAI's embeddings and of text-embeddings-inference.

    The page /docs lists the addresses, and a request to each can be tried there. Only this machine is answered unless
    --host says otherwise. Requests that come together are computed together. SIGTERM and Ctrl-C end the server when
    what it has accepted is answered.

    Example: mini-bert serve --model mini

    Example: mini-bert serve --model mini --model films.model --port 8650 --no-access-log
    """
    run, limits_of, read_keys = _server()
    from ...api.pipeline import pipeline
    from ...text.corpora.sources import find_sources, numbered_texts

    if texts is not None and collection is None:
        raise InputError("--texts are those of a collection; give the vectors with --collection.")
    limits = limits_of(batch_tokens=batch_tokens, window=window / 1000, queue=queue, tokens=request_tokens,
                       inputs=request_texts, body=request_bytes, bodies=max(64_000_000, request_bytes), answer=timeout,
                       connections=connections, cache=1_000_000 * cache)
    keys = read_keys(api_key_file)
    lines = None if texts is None else (line for source in find_sources([texts]) for _, line in numbered_texts(source))
    run([pipeline(name, threads=threads) for name in model or ["mini"]], host=host, port=port, limits=limits, keys=keys,
        names=allow_host or [], threads=threads, collection=collection, texts=lines,
        log=sys.stderr if access_log else None, say=said(output))


def said(output: Output) -> Callable[[str], None]:
    """Prints what a server says when it starts: with --json the address in an object, otherwise the sentences."""
    def say(sentence: str) -> None:
        address = re.search(r"https?://[^\s;]+", sentence)
        if output.as_json and address is not None:
            output.result({"address": address[0]})
        else:
            output.console.print(escape(sentence), soft_wrap=True)
        sys.stdout.flush()                        # a program reads it while the server runs

    return say


def _server() -> tuple[Callable[..., None], Callable[..., object], Callable[..., object]]:
    """The server's functions, if its libraries are installed."""
    for library in ("starlette", "uvicorn"):
        if find_spec(library) is None:
            raise ConfigError(f"The server needs {library}: pip install 'mini-bert[serve]'.")
    from ...serve.limits import Limits
    from ...serve.run import read_keys, run_server

    return run_server, Limits, read_keys
