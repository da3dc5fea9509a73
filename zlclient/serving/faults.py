"""Faults on request: what the header `x-zl-fault` asks for, and how a fault looks on the wire.

x-zl-fault: 429                      an error status with the provider's body; 429 carries retry-after
x-zl-fault: 429; retry-after=3600    with that value, which is sent as it stands
x-zl-fault: drop | stall | html | malformed | empty
x-zl-fault: drop-mid | stall-mid | malformed-mid | empty-mid | 529-mid      after the first half of the answer
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast, get_args

from .errors import Dialect, WireError, error_response
from .responders.base import Event, Fault, FaultKind, Text, ToolCall
from .wire import STALL, Drop, WireResponse

_KINDS = frozenset(get_args(FaultKind)) - {"status"}
_HEADER = re.compile(r"(?P<what>\d{3}|[a-z]+)(?P<mid>-mid)?(?:\s*;\s*retry-after\s*=\s*(?P<after>.+))?")
HTML = b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
RETRY_AFTER = "1"


@dataclass(frozen=True, slots=True)
class AskedFault:
    """A fault that the request itself asks for, before or in the middle of its answer."""

    fault: Fault
    mid: bool


def asked_fault(header: str) -> AskedFault:
    """The value of `x-zl-fault`, parsed; raises WireError 400 naming what is accepted."""
    match = _HEADER.fullmatch(header.strip().lower())
    what = match["what"] if match else ""
    if match and what.isdigit() and 400 <= int(what) <= 599:
        fault = Fault("status", int(what), retry_after=match["after"])
    elif match and what in _KINDS:
        fault = Fault(cast("FaultKind", what))
    else:
        accepted = ", ".join(sorted(_KINDS))
        raise WireError(400, f"x-zl-fault: {header!r} is none of 400 to 599, {accepted}, with -mid or not")
    return AskedFault(fault, bool(match["mid"]))


def status_error(fault: Fault) -> WireError:
    """The error of a status fault; a 429 always says when to come back."""
    after = fault.retry_after or (RETRY_AFTER if fault.status == 429 else None)
    return WireError(fault.status, fault.message, headers={"retry-after": after} if after else None)


def fault_response(fault: Fault, dialect: Dialect, request_id: str, *, stream: bool = False) -> WireResponse:
    """The response of a fault that comes before any content."""
    kind = "text/event-stream; charset=utf-8" if stream else "application/json"
    match fault.kind:
        case "status":
            return error_response(dialect, status_error(fault), request_id)
        case "html":
            return WireResponse(200, {"content-type": "text/html; charset=utf-8"}, HTML)
        case "malformed":
            body = b"event: message_start\ndata: {not json\n\n" if stream else b'{"id": "broken", '
            return WireResponse(200, {"content-type": kind}, body)
        case "empty":
            return WireResponse(200, {"content-type": kind if stream else "text/plain"}, b"")
        case "drop":
            return WireResponse(200, {"content-type": kind}, iter((Drop(),)))
        case "stall":
            return WireResponse(200, {"content-type": kind}, iter((STALL,)))


def with_fault(events: Iterable[Event], fault: Fault) -> Iterator[Event]:
    """`events` up to the middle of the first content, then `fault`."""
    for event in events:
        if isinstance(event, Text):
            yield Text(event.text[: (len(event.text) + 1) // 2])
            break
        yield event
        if isinstance(event, ToolCall):
            break
    yield fault


def broken_body(body: bytes, fault: Fault, dialect: Dialect, request_id: str) -> WireResponse:
    """A whole (not streamed) answer `body` that goes wrong half way."""
    half = body[: len(body) // 2]
    headers = {"content-type": "application/json"}
    if fault.kind in ("drop", "stall"):
        headers["content-length"] = str(len(body))
        return WireResponse(200, headers, iter((half, Drop() if fault.kind == "drop" else STALL)))
    if fault.kind == "malformed":
        return WireResponse(200, headers, half)
    return fault_response(fault, dialect, request_id)
