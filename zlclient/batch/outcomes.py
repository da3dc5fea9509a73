"""What became of a request: the answer or the error, as the plain JSON that the ledger keeps and the output shows.

Nothing in it differs between two sendings of the same request to the same server but what the server said: no times,
no ids, no count of attempts. So a run that was broken gives the same file as one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import CheckError, SendError, ZlclientError
from ..reply import Reply, Timings, Usage, as_plain

if TYPE_CHECKING:
    from ..request import Request
    from ..settings import Settings

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`body` is the answer's fields, or with `ok` False the error's."""

    ok: bool
    body: Json


def answer(reply: Reply, discount: float = 1.0) -> Outcome:
    """The outcome of an answered request; `discount` is the share of the list price that is paid."""
    price = reply.cost
    body: dict[str, Any] = {
        "text": reply.text,
        "model": reply.model,
        "provider": reply.provider,
        "stop_reason": reply.stop_reason,
        "usage": as_plain(reply.usage),
        "cost": None if price is None else price * discount,
    }
    if any(block.get("type") != "text" or block.keys() - {"type", "text"} for block in reply.content):
        body["content"] = as_plain(reply.content)
    if reply.parsed is not None:
        body["parsed"] = as_plain(reply.parsed)
    if reply.checks:
        body["checks"] = as_plain(reply.checks)
    if reply.experiment is not None:
        body |= {"experiment": reply.experiment, "arm": reply.arm}
    for name in ("citations", "coverage"):  # an answer over a document has them
        if getattr(reply, name, None):
            body[name] = as_plain(getattr(reply, name))
    return Outcome(True, body)


def failure(error: ZlclientError) -> Outcome:
    """The outcome of a request that failed."""
    body: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, SendError):
        body |= {"status": error.status, "request_id": error.request_id}
    if isinstance(error, CheckError):
        body["text"] = error.reply.text
    return Outcome(False, body)


def failed(kind: str, message: str) -> Outcome:
    """A failure that no exception stands for."""
    return Outcome(False, {"type": kind, "message": message})


def usage_of(outcome: Outcome) -> Usage:
    """The tokens an answer took."""
    return Usage(**cast("dict[str, int]", outcome.body.get("usage") or {}))


def json_text(value: Any) -> str:
    """One line of JSON that can be written as UTF-8: escaped only where a lone surrogate needs it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


def needs_checks(request: Request) -> bool:
    """Whether an answer to `request` is checked."""
    return any(value is not None for value in (request.output, request.source, request.fidelity, request.format))


def checked(outcome: Outcome, request: Request, settings: Settings) -> Outcome:
    """The outcome of a provider's batch after the corridor's checks, which need the request beside the answer.

    A batch cannot ask again: "retry" is taken as "record".
    """
    if not outcome.ok or not needs_checks(request):
        return outcome
    from ..checking.checks import check, settled

    body = outcome.body
    content = tuple(cast("list[Json]", body.get("content") or [{"type": "text", "text": body["text"]}]))
    reply = Reply(
        id="",
        text=body["text"],
        model=body["model"],
        provider=body["provider"],
        route=body["model"],
        content=content,
        stop_reason=body["stop_reason"],
        usage=usage_of(outcome),
        timings=Timings(None, None, 0.0),
        adjustments=(),
        attempts=(),
        sent=request.messages,
    )
    try:
        reply = settled(check(reply, request, settings), request, settings)
    except CheckError as error:
        return failure(error)
    found = answer(replace(reply, usage=usage_of(outcome))).body
    return Outcome(True, {**body, **{name: found[name] for name in ("parsed", "checks") if name in found}})
