"""Cassettes: recorded exchanges, one JSON object a line, without secrets.

    {"format": "zlclient-cassette/1", "id": "…", "recording": "…", "started": "2026-11-30T12:00:00Z",
     "request": {"method": "POST", "path": "/v1/messages", "query": {}, "headers": {…}, "body": {"json": {…}}},
     "response": {"status": 200, "headers": {…}, "delay": 0.31, "body": {"json": {…}}}}

`delay` is the seconds until the head. A stream has `events` instead of `body`: pairs of the seconds since the last one
and the event as it came. `broken` says that the connection broke after what is there. Lines are appended whole, under a
lock on the file where the system has one (`fcntl`), so recorders in several threads and processes may share a file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ..errors import ConfigError
from .redaction import REQUEST_HEADERS, RESPONSE_HEADERS, Redaction
from .wire import WireRequest

FORMAT = "zlclient-cassette/1"
_SSE = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One exchange of a cassette. `request` and `response` have the shapes of the file."""

    id: str
    recording: str
    started: str
    request: Mapping[str, Any]
    response: Mapping[str, Any]

    def line(self) -> bytes:
        """The exchange as a line of a cassette."""
        value = {"format": FORMAT, "id": self.id, "recording": self.recording, "started": self.started}
        return json.dumps({**value, "request": self.request, "response": self.response}).encode() + b"\n"


def request_record(request: WireRequest, redaction: Redaction) -> dict[str, Any]:
    """A request as a cassette holds it: cleaned, and the same for the same question whoever asks it."""
    clean = redaction.with_secrets_of(request.headers)
    return {
        "method": request.method,
        "path": clean.text(request.path),
        "query": clean.query(request.query),
        "headers": clean.headers(request.headers, REQUEST_HEADERS),
        "body": body_record(request.body, clean),
    }


def request_key(record: Mapping[str, Any]) -> str:
    """A hash of what makes two recorded requests the same: method, path, query, API version and the whole body."""
    version = record["headers"].get("anthropic-version", "")
    parts = [record["method"], record["path"], record["query"], version, record["body"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def body_record(body: bytes, clean: Redaction) -> dict[str, Any]:
    """A body: `json`, `text` or `base64`; no key for an empty one."""
    if not body:
        return {}
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}
    try:
        return {"json": clean.value(json.loads(text))}
    except (ValueError, RecursionError):
        return {"text": clean.text(text)}


def body_bytes(record: Mapping[str, Any]) -> bytes:
    """The bytes of a recorded body."""
    if "json" in record:
        return json.dumps(record["json"], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if "text" in record:
        return cast("str", record["text"]).encode("utf-8")
    return base64.b64decode(record.get("base64", ""))


class ExchangeRecorder:
    """Listens to one exchange and makes its record. Times come from `clock`, in seconds."""

    def __init__(
        self,
        request: WireRequest,
        redaction: Redaction | None = None,
        *,
        recording: str = "",
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        redaction = redaction or Redaction()
        self._clean = redaction.with_secrets_of(request.headers)
        self._request = request_record(request, redaction)
        self._recording = recording
        self._clock = clock
        self._started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now()))
        self._last = clock()
        self._response: dict[str, Any] = {"status": 200, "headers": {}, "delay": 0.0}
        self._stream = False
        self._events: list[tuple[float, str]] = []
        self._rest = b""

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        """The response's head has arrived."""
        kept = self._clean.headers(headers, RESPONSE_HEADERS)
        self._response = {"status": status, "headers": kept, "delay": self._elapsed()}
        self._stream = kept.get("content-type", "").startswith(_SSE)

    def data(self, data: bytes) -> None:
        """A part of the body has arrived."""
        self._rest += data
        if not self._stream:
            return
        ends = [self._rest.rfind(gap) + len(gap) for gap in (b"\n\n", b"\r\n\r\n") if gap in self._rest]
        if ends:
            end = max(ends)
            self._event(self._rest[:end])
            self._rest = self._rest[end:]

    def end(self, *, broken: bool = False) -> Recorded:
        """The record of the exchange, which is over; `broken` where it broke off."""
        if self._stream:
            if self._rest:
                self._event(self._rest)
            self._response["events"] = self._events
        else:
            self._response["body"] = body_record(self._rest, self._clean)
        if broken:
            self._response["broken"] = True
        return Recorded(uuid.uuid4().hex, self._recording, self._started, self._request, self._response)

    def _event(self, data: bytes) -> None:
        self._events.append((self._elapsed(), self._clean.event(data.decode("utf-8", "replace"))))

    def _elapsed(self) -> float:
        now = self._clock()
        elapsed, self._last = now - self._last, now
        return round(max(elapsed, 0.0), 4)


class CassetteWriter:
    """Appends exchanges to a file, made for its owner only; any number of writers may share it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.recording = uuid.uuid4().hex
        self._lock = threading.Lock()

    def append(self, recorded: Recorded) -> None:
        """Add one line. Raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        with self._lock:
            handle = os.open(self.path, flags, 0o600)
            try:
                with _locked(handle):
                    _write_line(handle, recorded.line())
            finally:
                os.close(handle)


def _write_line(handle: int, line: bytes) -> None:
    size = os.lseek(handle, 0, os.SEEK_END)
    if size:
        os.lseek(handle, size - 1, os.SEEK_SET)
        if os.read(handle, 1) != b"\n":
            line = b"\n" + line  # a writer before us was killed; its half line stays on its own
    while line:
        line = line[os.write(handle, line) :]


@contextmanager
def _locked(handle: int) -> Generator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: one write a line is all the protection there is between processes
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)


def load_cassette(path: str | os.PathLike[str]) -> list[Recorded]:
    """The exchanges of a cassette in order. Raises ConfigError with file and line."""
    name = os.fspath(path)
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=name) from None
    lines = data.split(b"\n")
    return [_recorded(line, name, number) for number, line in enumerate(lines, 1) if line.strip()]


def _recorded(line: bytes, file: str, number: int) -> Recorded:
    try:
        value = json.loads(line)
        if value["format"] != FORMAT:
            raise ConfigError(f"{FORMAT} is expected", key="format", value=value["format"], file=file, line=number)
        request, response = value["request"], value["response"]
        request_key(request)
        _check_response(response)
        return Recorded(value["id"], value["recording"], value["started"], request, response)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"no line of a cassette: {type(error).__name__}", file=file, line=number) from None


def _check_response(response: Mapping[str, Any]) -> None:
    """Raises ValueError, TypeError or KeyError where something that a replay needs is not there."""
    int(response["status"])
    dict(response["headers"])
    float(response["delay"])
    if "events" in response:
        for seconds, text in response["events"]:
            float(seconds)
            cast("str", text).encode()
    else:
        body_bytes(response["body"])
