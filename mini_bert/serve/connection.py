"""Connections that are slow or too many, and a stop that loses no answer: what uvicorn leaves open.

    too many connections      the next one is told so, with 503, and closed
    no head of a request      a connection that sends none in time is closed, however slowly its bytes come
    an answer is not read     the connection is cut off
    SIGTERM, SIGINT           new requests are refused for a moment, so that none is cut off unseen, then the sockets
                              close; what was accepted is answered
"""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..evaluation.result import to_json
from .calls import Service

_TOLD = 0.4                   # seconds in which new requests are told that the server is stopping
_LINGER, _LINGERING = 1.0, 512          # seconds for, and number of, refused connections that may read their answer
_SAID = to_json({"error": "There are too many connections; try again in a second.", "error_type": "overloaded"})
_REFUSAL = (b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
            b"connection: close\r\ncontent-length: " + str(len(_SAID)).encode() + b"\r\n\r\n" + _SAID)


def connection_class(service: Service) -> type[H11Protocol]:
    """The protocol of a server's connections."""
    limits = service.limits
    refused: set[asyncio.Transport] = set()

    class Connection(H11Protocol):
        _refused = False
        _unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:      # type: ignore[override]
            if len(self.connections) >= limits.connections:
                self._refuse(transport)
                return
            super().connection_made(transport)
            self.timeout_keep_alive_task = self.loop.call_later(limits.head, self.timeout_keep_alive_handler)

        def _refuse(self, transport: asyncio.Transport) -> None:
            self._refused, self.transport = True, transport
            service.metrics.count("requests_total", path="other", status="503")
            transport.write(_REFUSAL)
            if len(refused) >= _LINGERING:
                transport.close()
                return
            refused.add(transport)
            if transport.can_write_eof():
                transport.write_eof()
            self.loop.call_later(_LINGER, transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._refused:
                refused.discard(self.transport)
                return
            super().connection_lost(exc)
            if self._unread is not None:
                self._unread.cancel()

        def data_received(self, data: bytes) -> None:
            if self._refused:
                return
            timer, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
            super().data_received(data)
            if timer is None:
                return
            if self.timeout_keep_alive_task is None and (self.cycle is None or self.cycle.response_complete):
                self.timeout_keep_alive_task = timer          # no whole head yet: its time goes on
            else:
                timer.cancel()

        def timeout_keep_alive_handler(self) -> None:
            if self.transport.get_write_buffer_size():        # an answer that nobody reads
                self.transport.abort()
            else:
                super().timeout_keep_alive_handler()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._unread = self.loop.call_later(limits.send, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()

    return Connection


class Server(uvicorn.Server):
    """uvicorn's server with another end: see above."""

    def __init__(self, config: uvicorn.Config, service: Service):
        super().__init__(config)
        self._service = service
        self._exit_at: float | None = None
        service.metrics.gauges.append(lambda: [("connections", {}, len(self.server_state.connections))])

    def stop(self) -> None:
        """Refuse new requests, and end when those that were accepted are answered."""
        self._service.stopping = True
        self._exit_at = time.monotonic() + _TOLD

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._service.stopping and sig == signal.SIGINT:
            self.force_exit = self.should_exit = True         # Ctrl-C again
        elif not self._service.stopping:
            self.stop()

    async def on_tick(self, counter: int) -> bool:
        if self._exit_at is not None and time.monotonic() >= self._exit_at:
            self.should_exit = True
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Without raising the signal again at the end: the server has done what it asked for."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {number: signal.signal(number, self.handle_exit)
                                  for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def make_server(app: Callable[..., Any], service: Service) -> Server:
    limits = service.limits
    return Server(uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", ws="none",
                                 http=connection_class(service), server_header=False, proxy_headers=False,
                                 timeout_keep_alive=int(limits.keep_alive), backlog=1024,
                                 timeout_graceful_shutdown=int(limits.stop)), service)
