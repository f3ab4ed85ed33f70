"""The explorer's server: one page, its files from a fixed list, and JSON.

It answers only to its own name: a request whose Host is another one (a page elsewhere whose name was made to point
here) is refused, and so is one that the browser says comes from another page: each answer takes the processor's time.
What changes the model wants a header that no other page can send unasked.
"""

import logging
import webbrowser
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from threading import Thread, Timer
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InputError, MiniBertError
from ..evaluation.result import to_json
from ..interrupts import broken_pipes_raise
from ..readers import parse_json
from ..serve.addresses import OwnNames, address_of, is_loopback, is_of_another_page, open_socket
from .answers import ANSWERS, CHANGES, Answer
from .assets import FILES, TYPES
from .derivations import derivation_page, derivations
from .queries import read_query
from .session import Session

if TYPE_CHECKING:
    import uvicorn

PORT = 8640
_log = logging.getLogger(__name__)
OWN_HEADER = "x-mini-bert"
_LARGEST_BODY = 16_384
_LONGEST_ADDRESS = 16_384
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "font-src 'self'; "
                               "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin", "cross-origin-opener-policy": "same-origin"}


def create_app(session: Session, *, host: str = "127.0.0.1", port: int = PORT) -> ASGIApp:
    """The application, for requests to `host` and `port`."""
    files = {address: (path.read_bytes(), TYPES[path.suffix]) for address, path in FILES.items()}
    routes = [Route(address, _file(*content)) for address, content in files.items()]
    routes += [Route(f"/derivation/{name}", _derivation(name)) for name in derivations()]
    routes += [Route(f"/api/{name}", _asked(session, answer, name)) for name, answer in ANSWERS.items()]
    routes += [Route(f"/api/{name}", _changed(session, change), methods=["POST"]) for name, change in CHANGES.items()]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed, Exception: _failed})
    app.router.redirect_slashes = False       # what is not in the list is not there
    return _Guard(app, host, port)


class _Guard:
    """Refuses requests that are not meant for this server, and adds the headers that keep the page to itself."""

    def __init__(self, app: ASGIApp, host: str, port: int):
        self.app, self.names = app, OwnNames(host, port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if (refusal := self.names.refusal(scope["headers"])) is not None:
            await _sentence(421, refusal)(scope, receive, send)
        elif scope["path"] != "/" and is_of_another_page(scope["headers"]):      # a link to the page may be anywhere
            await _sentence(403, "This server answers only to its own page.")(scope, receive, send)
        elif len(scope.get("query_string", b"")) > _LONGEST_ADDRESS:
            await _sentence(414, f"The address is longer than {_LONGEST_ADDRESS} characters.")(scope, receive, send)
        else:
            async def reply(message: Message) -> None:
                try:
                    await send(message)
                except OSError:
                    raise ClientDisconnect from None

            try:
                await self.app(scope, receive, reply)
            except ClientDisconnect:                      # the client is gone
                pass
            except Exception:                             # it has been answered, by _failed
                _log.exception("The explorer failed at %r.", scope["path"])


# -------------------------------------------------------------------- answers

Endpoint = Callable[[Request], Awaitable[Response]]


def _file(content: bytes, kind: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)

    return endpoint


def _derivation(name: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        content = await run_in_threadpool(derivation_page, name)
        return Response(content, media_type=TYPES[".html"], headers=_HEADERS)

    return endpoint


def _asked(session: Session, answer: Answer, name: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        parameters = dict(request.query_params)
        response = await run_in_threadpool(_answered, session, answer, parameters)
        if name == "backward" and response.status_code == 200:
            response.background = BackgroundTask(_prepare, session, parameters)
        return response

    return endpoint


def _changed(session: Session, change: Answer) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        kind = request.headers.get("content-type", "").split(";")[0].strip()
        if kind != "application/json" or OWN_HEADER not in request.headers:
            return _sentence(403, "The model is changed only by this explorer's own page.")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_BODY:
                return _sentence(413, f"The request is larger than {_LARGEST_BODY} bytes.")
        try:
            parameters = parse_json(body or b"{}", InputError, "The request")
        except InputError:
            parameters = None
        if not isinstance(parameters, dict):
            return _sentence(400, "The request must be one JSON object.")
        words = {str(key): value if isinstance(value, str) else str(value) for key, value in parameters.items()}
        return await run_in_threadpool(_answered, session, change, words)

    return endpoint


def _answered(session: Session, answer: Answer, parameters: dict[str, str]) -> Response:
    try:
        with session.lock:
            found = to_json(answer(session, parameters))  # what it holds may be changed by the next request
        return Response(found, media_type="application/json", headers=_HEADERS)
    except MiniBertError as error:
        return _sentence(400, str(error))


def _prepare(session: Session, parameters: dict[str, str]) -> None:
    """Whoever looks at gradients will verify one: have the model in float64 ready by then."""
    try:
        with session.lock:
            check = session.passes(read_query(parameters)).backward.steps[0].check
            if check is not None:
                _ = check.values
    except MiniBertError:
        pass                              # the request itself will say it


def _sentence(status: int, text: str) -> Response:
    return Response(to_json({"error": text}), status, media_type="application/json", headers=_HEADERS)


async def _not_found(request: Request, error: Exception) -> Response:
    return _sentence(404, "There is nothing at this address.")


async def _not_allowed(request: Request, error: Exception) -> Response:
    return _sentence(405, "This address does not take such a request.")


async def _failed(request: Request, error: Exception) -> Response:
    """For a fault of the explorer itself; starlette raises it again after this answer, for the log."""
    return _sentence(500, "The explorer failed at this; the terminal in which it runs says how.")


# -------------------------------------------------------------------- serving


def run_server(session: Session, *, host: str = "127.0.0.1", port: int | None = None, browser: bool = True,
               fragment: str = "", say: Callable[[str], None] = print) -> None:
    """Serve until it is interrupted."""
    with open_socket(host, port, PORT) as listening:
        address = address_of(listening, host)
        if not is_loopback(host):
            say(f"Warning: {host or 'every address'} can be reached by other machines; whoever reaches it can use the "
                "model and change it in memory.")
        say(f"The explorer is at {address}{fragment}; Ctrl-C ends it.")
        app = create_app(session, host=host, port=listening.getsockname()[1])
        if browser:
            Timer(0.5, webbrowser.open, [address + fragment]).start()
        with broken_pipes_raise():
            _server(app).run(sockets=[listening])


@contextmanager
def serving(session: Session) -> Iterator[str]:
    """A server beside the caller, at a free port of this machine: its address, for tests and scripts."""
    with open_socket("127.0.0.1", 0, PORT) as listening:
        server = _server(create_app(session, port=listening.getsockname()[1]))
        thread = Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield address_of(listening, "127.0.0.1")
        finally:
            server.should_exit = True
            thread.join()


def _server(app: ASGIApp) -> "uvicorn.Server":
    import uvicorn

    return uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off", ws="none",
                                         server_header=False))
