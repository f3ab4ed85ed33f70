"""The application: routes of the table, and a guard in front of them that refuses, counts and logs."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any, TextIO

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Registered
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InputError, MiniBertError
from ..evaluation.result import to_json
from ..readers import parse_json
from .addresses import OwnNames, is_of_another_page
from .batching import BusyError, StoppedError
from .calls import Call, LateError, LeftError, Service
from .fields import read_fields
from .models import NotServedError, TooLargeError
from .openapi import openapi
from .routes import PATHS, ROUTES, Route

_log = logging.getLogger(__name__)
STATIC = Path(__file__).parent / "static"
_PAGE = {"/docs": ("docs.html", "text/html; charset=utf-8"), "/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
         "/docs.css": ("docs.css", "text/css; charset=utf-8")}
_OPEN = {*_PAGE, "/openapi.json", *(route.path for route in ROUTES if route.open)}
_LONGEST_ADDRESS = 2000
_LEFT = 499                   # in the log alone, as nginx has it
_HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"), (b"cross-origin-resource-policy", b"same-origin"),
            (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; "
             b"img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")]
_STATUS = ((BusyError, 429, "overloaded"), (StoppedError, 503, "stopping"), (TooLargeError, 413, "too_large"),
           (NotServedError, 404, "model_not_found"), (LateError, 504, "timeout"), (MiniBertError, 400, "validation"))


class RefusedError(MiniBertError):
    """A request that is answered with this status before its fields are looked at."""

    def __init__(self, status: int, kind: str, message: str, **headers: str):
        super().__init__(message)
        self.status, self.kind, self.headers = status, kind, headers


class Keys:
    """API keys. They are compared by their digests, in a time that says nothing about them."""

    def __init__(self, keys: Iterable[str]):
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def allow(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        given = [value for name, value in headers if name == b"authorization"]
        scheme, _, key = (given[0] if len(given) == 1 else b"").partition(b" ")
        digest = sha256(key.strip()).digest()
        return bool(sum([compare_digest(digest, one) for one in self._digests])) and scheme.lower() == b"bearer"


@dataclass
class Record:
    """What the log says of a request."""

    method: str
    path: str
    client: str
    model: str | None = None
    tokens: int = 0
    cached: int = 0
    status: int = 0
    size: int = 0

    def line(self, seconds: float) -> str:
        return json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "client": self.client,
                           "method": self.method[:20], "path": self.path[:200], "status": self.status,
                           "ms": round(1e3 * seconds, 2), "bytes": self.size, "model": self.model,
                           "tokens": self.tokens, "cached": self.cached})


def create_app(service: Service, names: OwnNames, *, keys: Keys | None = None, log: TextIO | None = None) -> ASGIApp:
    """The application for requests to a server of these names; `log` gets a line of JSON for each."""
    wanted = keys or Keys(())
    routes = [Registered(path, _content((STATIC / name).read_bytes(), kind)) for path, (name, kind) in _PAGE.items()]
    described = to_json(openapi(keys=bool(wanted)))
    routes += [Registered("/", _moved), Registered("/openapi.json", _content(described, "application/json")),
               Registered("/metrics", _metrics(service))]
    routes += [Registered(route.path, _endpoint(service, route), methods=[route.method]) for route in ROUTES]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed, Exception: _failed})
    app.router.redirect_slashes = False               # what is not in the table is not there
    return Guard(app, service, names, wanted, log)


class Guard:
    """Refuses requests that are not for this server or not allowed, and counts and logs all of them."""

    def __init__(self, app: ASGIApp, service: Service, names: OwnNames, keys: Keys, log: TextIO | None):
        self.app, self.service, self.names, self.keys, self.log = app, service, names, keys, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begin, record = time.monotonic(), Record(scope["method"], scope["path"], (scope.get("client") or ("?",))[0])
        scope["mini-bert"] = record

        async def reply(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS,
                                      *([(b"connection", b"close")] if self.service.stopping else [])]
            else:
                record.size += len(message.get("body", b""))
            await send(message)

        refusal = self._refusal(scope)
        try:
            if refusal is None:
                await self.app(scope, receive, reply)
            else:
                await _refused(refusal, scope["path"])(scope, receive, reply)
        except Exception:                             # it has been answered, by _failed
            _log.exception("The server failed at %r.", scope["path"][:200])
        finally:
            seconds = time.monotonic() - begin
            path = "/v1/models/{name}" if scope["path"].startswith("/v1/models/") else \
                scope["path"] if scope["path"] in PATHS else "other"
            self.service.metrics.count("requests_total", path=path, status=str(record.status))
            self.service.metrics.observe("request_seconds", seconds, path=path)
            if self.log is not None:
                with suppress(OSError, ValueError):           # nobody reads the log any more
                    print(record.line(seconds), file=self.log, flush=True)

    def _refusal(self, scope: Scope) -> RefusedError | None:
        headers, path = scope["headers"], scope["path"]
        if (said := self.names.refusal(headers)) is not None:
            return RefusedError(421, "host", said)
        if self.service.stopping and path != "/metrics":
            return RefusedError(503, "stopping", "The server is stopping.", **{"retry-after": "5"})
        if path not in ("/", "/docs") and is_of_another_page(headers):       # a link to the page may be anywhere
            return RefusedError(403, "origin", "This server answers only to its own page and to programs.")
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string", b"")) > _LONGEST_ADDRESS:
            return RefusedError(414, "address", f"The address is longer than {_LONGEST_ADDRESS} characters.")
        if self.keys and path not in _OPEN and not self.keys.allow(headers):
            return RefusedError(401, "key", "This server wants an API key: Authorization: Bearer KEY.",
                                **{"www-authenticate": "Bearer"})
        return None


# -------------------------------------------------------------------- answers

Endpoint = Callable[[Request], Awaitable[Response]]


def _endpoint(service: Service, route: Route) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        record: Record = request.scope["mini-bert"]
        try:
            given = await _body(service, request) if route.method == "POST" else dict(request.path_params)
            call = Call(service, read_fields(route.fields, given) if route.fields else given, request.receive)
            try:
                found = await route.answer(call)
            finally:
                record.model, record.tokens, record.cached = call.model, call.tokens, call.cached
        except LeftError:
            record.status = _LEFT
            return _Nothing()
        except MiniBertError as error:
            return _refused(error, route.path)
        except MemoryError:
            return _refused(RefusedError(503, "memory", "There is not enough memory for this request."), route.path)
        return Response(to_json(found), media_type="application/json")

    return endpoint


class _Nothing(Response):
    """For a client that has gone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        return


async def _body(service: Service, request: Request) -> Any:
    """The JSON of a request, whose bytes are bounded, alone and together with those of all others."""
    limits, kind = service.limits, request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "content_type", "The body must be JSON; send the header Content-Type: "
                           "application/json.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 12 or int(declared) > limits.body:
        raise TooLargeError(f"The body is larger than {limits.body:,} bytes.")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.receive):
            more = True
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise LeftError("The client has gone.")
                part = message.get("body", b"")
                if len(body) + len(part) > limits.body:
                    raise TooLargeError(f"The body is larger than {limits.body:,} bytes.")
                if service.receiving + len(part) > limits.bodies:
                    raise RefusedError(503, "overloaded", "Too many requests are being received; try again in a "
                                       "second.", **{"retry-after": "1"})
                service.receiving += len(part)
                body += part
                more = message.get("more_body", False)
        return parse_json(bytes(body), InputError, "The request")
    except TimeoutError:
        raise RefusedError(408, "timeout", f"The body did not arrive in {limits.receive:g} seconds.") from None
    finally:
        service.receiving -= len(body)


def _refused(error: MiniBertError, path: str) -> Response:
    """An error as OpenAI's libraries or those of text-embeddings-inference read it."""
    if isinstance(error, RefusedError):
        status, kind, headers = error.status, error.kind, error.headers
    else:
        status, kind = next((status, kind) for of, status, kind in _STATUS if isinstance(error, of))
        headers = {"retry-after": str(error.seconds)} if isinstance(error, BusyError) else {}
    if path.startswith("/v1/"):
        said: Any = {"error": {"message": str(error), "type": "server_error" if status >= 500 else
                               "invalid_request_error", "param": None, "code": kind}}
    else:
        said = {"error": str(error), "error_type": kind}
    return Response(to_json(said), status, headers, media_type="application/json")


def _content(content: bytes, kind: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


def _metrics(service: Service) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return endpoint


async def _moved(request: Request) -> Response:
    return Response(b"", 307, {"location": "/docs"})


async def _not_found(request: Request, error: Exception) -> Response:
    return _refused(RefusedError(404, "not_found", "There is nothing at this address; /docs lists what there is."),
                    request.url.path)


async def _not_allowed(request: Request, error: Exception) -> Response:
    allowed = getattr(error, "headers", None) or {}
    return _refused(RefusedError(405, "method", "This address does not take such a request.", **allowed),
                    request.url.path)


async def _failed(request: Request, error: Exception) -> Response:
    """For a fault of the server itself; starlette raises it again after this answer, for the log."""
    return _refused(RefusedError(500, "internal", "The server failed at this; its log says how."), request.url.path)

