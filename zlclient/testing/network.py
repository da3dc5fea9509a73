"""Nothing leaves the machine: names are not looked up and connections not opened, but for loopback and what is allowed.

Works at the level of `socket`, so it holds for every client written in Python, with asyncio or without.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


class NetworkBlocked(RuntimeError):
    """The code under test wanted to reach another machine. `host` is which."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"this test may not reach {host!r}: zlclient's fixtures keep everything on this machine. "
            f'Allow it with @pytest.mark.zlclient(allow=["{host}"]), or for all tests with zl_allow in the settings.'
        )
        self.host = host


class Guard:
    """Which hosts may be reached: loopback, and those in `allow` (names or addresses; `.example.com` for all below)."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allow = frozenset(host.lower() for host in allow)
        self._resolved: set[str] = set()  # addresses of allowed names

    def allows(self, host: str) -> bool:
        """Whether `host` was allowed by name or address, loopback aside."""
        name = host.lower().rstrip(".")
        return name in self._allow or any(one.startswith(".") and name.endswith(one) for one in self._allow)

    def check(self, host: str) -> None:
        """Raises NetworkBlocked unless `host` is this machine or allowed."""
        if not (is_local(host) or self.allows(host) or host in self._resolved):
            raise NetworkBlocked(host)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Check every name lookup and connection until the patch is undone."""
        lookup = socket.getaddrinfo

        def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
            name = _text(host)
            self.check(name)
            found = lookup(host, *args, **kwargs)
            if self.allows(name):
                self._resolved.update(str(entry[4][0]) for entry in found)
            return found

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        for name in ("gethostbyname", "gethostbyname_ex"):
            monkeypatch.setattr(socket, name, self._checked_lookup(getattr(socket, name)))
        for name in ("connect", "connect_ex", "sendto"):
            monkeypatch.setattr(socket.socket, name, self._checked(getattr(socket.socket, name)))

    def _checked_lookup(self, original: Any) -> Any:
        def lookup(host: str) -> Any:
            self.check(host)
            return original(host)

        return lookup

    def _checked(self, original: Any) -> Any:
        def method(sock: socket.socket, *args: Any) -> Any:
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                self.check(_text(args[-1][0]))  # the address comes last in each of them
            return original(sock, *args)

        return method


def is_local(host: str) -> bool:
    """Whether `host` is this machine: a loopback or unspecified address, or a name for it."""
    if host in ("", "localhost") or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else host or ""
