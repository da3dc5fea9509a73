"""The live report on loopback: the same page, kept up to date by server-sent events, with buttons to move a rollout.

Who may look and act is whoever holds the token in the address that is printed at the start. It becomes a cookie that
other sites cannot use; an action wants it in a header as well, and the Host must be ours, so that no other page in
the browser can reach through.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from hmac import compare_digest
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from ..errors import InputError, ZlclientError
from .judge import Judge, change_state
from .report.page import page, render_main
from .report.summary import Reporter
from .rollouts import Rollout
from .state import Action, possible_actions
from .stores import Store

_COOKIE = "zlclient_console"
_HEARTBEATS = 8
"""An event is sent when something changed, and at least once in so many turns, so that a gone reader is noticed."""


class Console(ThreadingHTTPServer):
    """Serves on 127.0.0.1 until `shutdown`; `url` opens it in a browser. `every` is the seconds between two looks."""

    daemon_threads = True

    def __init__(
        self,
        rollouts: Mapping[str, Rollout],
        store: Store,
        *,
        port: int = 0,
        by: str = "console",
        every: float = 2.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.rollouts, self.store, self.by, self.every, self.clock = rollouts, store, by, every, clock
        self._reporters = {name: Reporter(rollout, store) for name, rollout in rollouts.items()}
        self._turn = Lock()
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def url(self) -> str:
        """The address with the token."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    def main_of(self, name: str) -> str:
        """The inside of a rollout's page, its buttons first."""
        rollout = self.rollouts[name]
        with self._turn:
            summary = self._reporters[name].summarise(self.clock())
        actions = (
            [a for a in possible_actions(summary.state) if a != "advance" or rollout.stages] if summary.state else []
        )
        buttons = "".join(f"<button data-action='{action}'>{action}</button>" for action in actions)
        return f"<nav><a href='/'>all rollouts</a> {buttons}<output></output></nav>{render_main(summary)}"

    def index(self) -> str:
        """A line for every rollout."""
        rows = ""
        for name, rollout in self.rollouts.items():
            sentence = Judge(rollout, self.store).look(self.clock()).verdict.sentence
            link = f"<a href='/rollouts/{quote(name, safe='')}'>{escape(name)}</a>"
            rows += f"<tr><td>{link}</td><td>{escape(sentence)}</td></tr>"
        return f"<h1>Rollouts</h1><section><table><tbody>{rows}</tbody></table></section>"

    def act(self, name: str, action: str) -> None:
        """Carry `action` out; advancing wants the verdict PROMOTE, as on the command line.

        Raises:
            InputError: the action is not possible now.
        """
        rollout, now = self.rollouts[name], self.clock()
        state, _, verdict = Judge(rollout, self.store).look(now)
        possible: tuple[Action, ...] = possible_actions(state) if state else ()
        found: Action | None = next((word for word in possible if word == action), None)
        if state is None or found is None:
            raise InputError(f"{action} is not possible now", where=name)
        if action == "advance" and verdict.decision != "PROMOTE":
            raise InputError(verdict.sentence, where=name)
        if change_state(self.store, rollout, state, found, now, self.by, "from the console") is None:
            raise InputError("somebody else moved it at the same moment", where=name)


class _Handler(BaseHTTPRequestHandler):
    server: Console  # pyright: ignore[reportIncompatibleVariableOverride]
    server_version, sys_version = "zlclient", ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        token = parse_qs(address.query).get("token", [""])[0]
        if self.headers.get("Host") not in self.server.hosts:
            return self._answer(403, "text/plain", "this console answers on 127.0.0.1 only")
        if address.path == "/" and self._is_token(token):
            # The token leaves the address bar, and with it the browser's history.
            cookie = f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
            return self._answer(303, "text/plain", "", {"Set-Cookie": cookie, "Location": "/"})
        if not self._is_token(self._cookie()):
            return self._answer(403, "text/plain", "open the address that zlclient console printed")
        kind, _, name = address.path.removeprefix("/").partition("/")
        name = unquote(name)
        if address.path == "/":
            return self._answer(200, "text/html", page("Rollouts", self.server.index()))
        if name not in self.server.rollouts or kind not in {"rollouts", "events"}:
            return self._answer(404, "text/plain", "no such rollout")
        return self._page(name) if kind == "rollouts" else self._events(name)

    def do_POST(self) -> None:
        # The body is not read: what is asked for is in the address, who asks in the headers.
        self.close_connection = True
        trusted = self.headers.get("Host") in self.server.hosts and self._is_token(self._cookie())
        if not trusted or not self._is_token(self.headers.get("X-Zlclient-Token", "")):
            return self._answer(403, "text/plain", "the token is missing or wrong")
        kind, name, action = [*map(unquote, self.path.removeprefix("/").split("/")), "", "", ""][:3]
        if kind != "rollouts" or name not in self.server.rollouts:
            return self._answer(404, "text/plain", "no such rollout")
        try:
            self.server.act(name, action)
        except ZlclientError as error:
            return self._answer(409, "text/plain", str(error))
        return self._answer(200, "text/plain", f"{action}: done")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: a request line may hold the token."""

    def _page(self, name: str) -> None:
        nonce = secrets.token_urlsafe(12)
        script = files(__package__ or "").joinpath("report", "console.js").read_text("utf-8")
        values = {"token": self.server.token, "name": quote(name, safe="")}
        data = escape(json.dumps(values))
        policy = f"style-src 'unsafe-inline'; connect-src 'self'; script-src 'nonce-{nonce}'"
        extra = f"<script nonce='{nonce}' data-values='{data}'>{script}</script>"
        self._answer(200, "text/html", page(name, self.server.main_of(name), policy=policy, extra=extra))

    def _events(self, name: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        last, turn = "", 0
        try:
            while True:
                main = self.server.main_of(name)
                turn += 1
                if main != last or turn % _HEARTBEATS == 0:
                    self.wfile.write(f"data: {json.dumps(main)}\n\n".encode())
                    self.wfile.flush()
                last = main
                time.sleep(self.server.every)
        except (OSError, ZlclientError):
            # The reader has gone, or the store has: the browser asks again by itself.
            self.close_connection = True

    def _answer(self, status: int, kind: str, text: str, headers: Mapping[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        fixed = {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }
        safe = {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}
        for key, value in {**fixed, **safe, **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def _cookie(self) -> str:
        parts = self.headers.get("Cookie", "").split("; ")
        return next((part.partition("=")[2] for part in parts if part.startswith(f"{_COOKIE}=")), "")

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode(), self.server.token.encode())
