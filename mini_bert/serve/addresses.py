"""Where a server listens, by which names it answers, and who may ask; for the explorer as well.

A server answers only to its own name: a request whose Host is another one (a page elsewhere whose name was made to
point here) is refused, and so is one that the browser says comes from another page.
"""

import socket
import sys
from collections.abc import Collection
from ipaddress import ip_address
from typing import Any

from ..errors import ConfigError, InputError


class OwnNames:
    """The names of a server that listens to `host` and `port`; `more` are names without a port, as behind a proxy."""

    def __init__(self, host: str, port: int, more: Collection[str] = ()):
        self.host, self.port = host.lower().strip("[]"), port
        self.more = {name.lower().strip("[]") for name in more}

    def refusal(self, headers: Collection[tuple[bytes, bytes]]) -> str | None:
        """Why a request with these headers is not for this server; None if it is."""
        names = [value.decode("latin-1") for key, value in headers if key == b"host"]
        if len(names) == 1 and self.answers_to(names[0]):
            return None
        return "This server answers only to its own address; the Host header names another one."

    def answers_to(self, name: str) -> bool:
        """Is this the name of this server? Where all addresses are served, any number is, but no other name."""
        host, port = _split_host(name.lower())
        if host in self.more and port != -1:
            return True
        if port != self.port:
            return False
        if host in ("127.0.0.1", "localhost", "::1", self.host):
            return True
        return is_any_address(self.host) and (_is_address(host) or host == socket.gethostname().lower())


def is_of_another_page(headers: Collection[tuple[bytes, bytes]]) -> bool:
    """By what browsers say of a request; `none` is one that the user made by hand, and programs say nothing."""
    return any(value.strip().lower() not in (b"same-origin", b"none")
               for key, value in headers if key == b"sec-fetch-site")


def _split_host(name: str) -> tuple[str, int]:
    """A Host header's name, without the brackets of IPv6, and its port; -1 for what is none."""
    host, colon, port = name.rpartition(":") if not name.endswith("]") else (name, "", "")
    if not colon:
        host, port = name, "80"
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else -1


def is_any_address(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def open_socket(host: str, port: int | None, usual: int, waiting: int = 64) -> socket.socket:
    """A listening socket: at the port that is asked for, else at the usual one or, if that is taken, a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wish in (usual, 0) if port is None else (port,):
        listening = socket.socket(family, socket.SOCK_STREAM)
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, wish))
            listening.listen(waiting)
        except (OSError, OverflowError, TypeError, ValueError) as error:      # the last two of names no host can have
            listening.close()
            if port is None and wish:
                continue
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"Cannot listen at {host}, port {wish}: {reason}.") from None
        return listening
    raise InputError("There is no free port.")


def address_of(listening: Any, host: str) -> str:
    shown = "127.0.0.1" if is_any_address(host) else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listening.getsockname()[1]}/"
