"""Replay of recorded exchanges: a request that was recorded gets what was answered then.

    server = LocalServer(interceptors=[Replay(load_cassette("cassette.jsonl"))])

A request is the recorded one if its method, path, query, API version and whole body are, but for what was removed from
the recording. Each recorded answer is given once, in the order of the recording: a retry gets the second answer, an
agent walks through its turns, and nothing starts over. It answers before any responder, with the bytes as they came.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from ..errors import WireError, error_response
from ..recording import Recorded, body_bytes, request_key, request_record
from ..redaction import REMOVED, Redaction, matches
from ..server import dialect_of
from ..wire import Drop, Pause, Piece, WireRequest, WireResponse
from .scenario_match import Difference, body_differences

_INSTANT = 0.001  # shorter waits are not worth a wake-up


class Replay:
    """Answers requests from recorded exchanges; an interceptor of LocalServer.

    Args:
        exchanges: what was recorded, in order.
        strict: a request that was not recorded, or more often than it was, is an error; otherwise the server's
            responders answer it.
        timing: wait as long as the recorded answer took, also between the events of a stream.
    """

    def __init__(
        self,
        exchanges: Iterable[Recorded],
        *,
        strict: bool = False,
        timing: bool = True,
        redaction: Redaction | None = None,
    ) -> None:
        self._strict, self._timing = strict, timing
        self._redaction = redaction or Redaction()
        self._lock = threading.Lock()
        self._exchanges = tuple(exchanges)
        self._left: dict[str, deque[Recorded]] = defaultdict(deque)
        self._counts: dict[str, int] = defaultdict(int)
        self._cleaned: dict[str, Mapping[str, Any]] = {}  # the requests that something was removed from
        for exchange in self._exchanges:
            key = request_key(exchange.request)
            self._left[key].append(exchange)
            self._counts[key] += 1
            if REMOVED in json.dumps(exchange.request):
                self._cleaned[key] = exchange.request

    def __call__(self, request: WireRequest) -> WireResponse | None:
        """The recorded answer, or None."""
        if "x-zl-fault" in request.headers or request.path == "/health":
            return None
        record = request_record(request, self._redaction)
        key = request_key(record)
        with self._lock:
            left = self._left[key] if key in self._counts else self._queue_like(record)
            found = left.popleft() if left else None
        if found is not None:
            return self._response(found)
        return self._missed(request, record, key) if self._strict else None

    def remaining(self) -> int:
        """How many recorded answers were not given yet."""
        with self._lock:
            return sum(len(left) for left in self._left.values())

    def _queue_like(self, record: Mapping[str, Any]) -> deque[Recorded] | None:
        """The answers of a recorded request that this one is, but for what was removed from the recording."""
        for key, like in self._cleaned.items():
            if self._left[key] and _version(like) == _version(record) and matches(_asked(like), _asked(record)):
                return self._left[key]
        return None

    def _response(self, found: Recorded) -> WireResponse:
        response = found.response
        request_id = f"req_{found.id[:24]}"
        headers = {**response["headers"], "x-zl-responder": "replay"}
        headers["request-id" if "/messages" in found.request["path"] else "x-request-id"] = request_id
        return WireResponse(int(response["status"]), headers, self._pieces(response))

    def _pieces(self, response: Mapping[str, Any]) -> Iterator[Piece]:
        yield from self._wait(response["delay"])
        if "events" in response:
            for seconds, text in response["events"]:
                yield from self._wait(seconds)
                yield cast("str", text).encode()
        elif body := body_bytes(response["body"]):
            yield body
        if response.get("broken"):
            yield Drop()

    def _wait(self, seconds: float) -> Iterator[Piece]:
        if self._timing and seconds >= _INSTANT:
            yield Pause(seconds)

    def _missed(self, request: WireRequest, record: Mapping[str, Any], key: str) -> WireResponse:
        error = WireError(
            404,
            "\n".join(["zlclient replay: no recorded answer for this request.", *self._why(record, key)]),
            headers={"x-should-retry": "false", "x-zl-responder": "none"},
        )
        return error_response(dialect_of(request), error, "req_replay")

    def _why(self, record: Mapping[str, Any], key: str) -> Iterator[str]:
        count = self._counts.get(key, 0)
        if count:
            yield f"It was recorded {count} times, and all of those answers were given."
            return
        ranked = sorted(
            ((tuple(_differences(exchange.request, record)), index) for index, exchange in enumerate(self._exchanges)),
            key=lambda entry: (sum(1 - difference.closeness for difference in entry[0]), entry[1]),
        )
        if not ranked:
            yield "The recording is empty."
            return
        differences, index = ranked[0]
        yield f"The nearest of {len(ranked)} recorded exchanges is number {index + 1}; the request differs from it in:"
        for difference in differences:
            yield from difference.lines()


def _differences(recorded: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Difference]:
    for name in ("method", "path", "query"):
        yield from body_differences(recorded[name], got[name], name)
    yield from body_differences(_version(recorded), _version(got), "header anthropic-version")
    one, other = _content(recorded), _content(got)
    yield from body_differences(one, other, "request")
    for extra in body_differences(other, one, "request"):
        if extra.got == "absent":
            yield Difference(extra.name, "absent", extra.wanted, extra.closeness)


def _version(record: Mapping[str, Any]) -> str | None:
    return record["headers"].get("anthropic-version")


def _asked(record: Mapping[str, Any]) -> list[Any]:
    return [record["method"], record["path"], record["query"], record["body"]]


def _content(record: Mapping[str, Any]) -> Any:
    body = record["body"]
    return body.get("json", body)
