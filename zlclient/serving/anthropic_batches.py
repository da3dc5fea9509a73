"""Message batches: accepted, in progress on their first look, ended on the next; results as JSON Lines.

Each request is answered when its result is read, by the same chain as a direct one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from .anthropic import json_response
from .anthropic_validation import version_of
from .errors import WireError, reader
from .models import page
from .wire import WireResponse

if TYPE_CHECKING:
    from .server import Call

MAX_REQUESTS = 100_000
EXPIRES = timedelta(hours=24)


@dataclass(slots=True)
class Batch:
    """A batch and where it stands; changed only under the server's lock."""

    id: str
    created: datetime
    requests: list[dict[str, Any]]
    url: str
    looks: int = 0
    cancelled: datetime | None = None
    ended: datetime | None = None
    results: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def create(call: Call) -> WireResponse:
    """POST /v1/messages/batches."""
    version_of(call)
    body = call.json()
    unknown = body.keys() - {"requests"}
    if unknown:
        raise WireError(400, f"{min(unknown)}: Extra inputs are not permitted")
    requests = read_requests(body)
    server = call.server
    host = call.request.headers.get("host", "localhost")
    batch_id = server.new_id("msgbatch_")
    batch = Batch(batch_id, _now(call), requests, f"http://{host}/v1/messages/batches/{batch_id}/results")
    with server.lock:
        _batches(call)[batch_id] = batch
        return json_response(_shown(batch))


@reader
def read_requests(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requests of a new batch, checked; raises WireError 400."""
    requests: list[dict[str, Any]] = body.get("requests") or []
    if not requests:
        raise WireError(400, "requests: List should have at least 1 item")
    if len(requests) > MAX_REQUESTS:
        raise WireError(400, f"requests: List should have at most {MAX_REQUESTS} items")
    seen: set[str] = set()
    for at, request in enumerate(requests):
        for name, kind in (("custom_id", str), ("params", dict)):
            if not isinstance(request.get(name), kind):
                raise WireError(400, f"requests.{at}.{name}: Field required")
        if request["custom_id"] in seen:
            raise WireError(400, f"requests: custom_id {request['custom_id']!r} is not unique")
        if request["params"].get("stream"):
            raise WireError(400, f"requests.{at}.params.stream: streaming is not supported in batches")
        seen.add(request["custom_id"])
    return requests


def retrieve(call: Call, batch_id: str) -> WireResponse:
    """GET /v1/messages/batches/{id}; the batch ends at the second look."""
    batch = _find(call, batch_id)
    with call.server.lock:
        batch.looks += 1
        due = batch.looks > 1
    if due:
        _finish(call, batch)
    return json_response(_shown(batch))


def listing(call: Call) -> WireResponse:
    """GET /v1/messages/batches, newest first."""
    with call.server.lock:
        shown = [_shown(batch) for batch in reversed(_batches(call).values())]
    return json_response(page(shown, call.request.query))


def cancel(call: Call, batch_id: str) -> WireResponse:
    """POST /v1/messages/batches/{id}/cancel."""
    batch = _find(call, batch_id)
    with call.server.lock:
        if batch.ended is None:
            batch.cancelled = batch.cancelled or _now(call)
    return json_response(_shown(batch))


def delete(call: Call, batch_id: str) -> WireResponse:
    """DELETE /v1/messages/batches/{id}, once it has ended."""
    batch = _find(call, batch_id)
    if batch.ended is None:
        raise WireError(400, "Message Batches can only be deleted once they've finished processing.")
    with call.server.lock:
        _batches(call).pop(batch_id, None)
    return json_response({"id": batch_id, "type": "message_batch_deleted"})


def results(call: Call, batch_id: str) -> WireResponse:
    """GET /v1/messages/batches/{id}/results."""
    batch = _find(call, batch_id)
    if batch.ended is None:
        raise WireError(400, "Message Batch results are not available until processing has ended.")
    return WireResponse(200, {"content-type": "application/x-jsonl"}, _lines(batch.results))


def _lines(made: list[dict[str, Any]]) -> Iterator[bytes]:
    for result in made:
        yield json.dumps(result, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _finish(call: Call, batch: Batch) -> None:
    """Answer every request of `batch`; a cancelled batch cancels them all."""
    if batch.ended is not None:
        return
    if batch.cancelled:
        made = [{"custom_id": one["custom_id"], "result": {"type": "canceled"}} for one in batch.requests]
    else:
        made = [_answered(call, one) for one in batch.requests]
    with call.server.lock:
        if batch.ended is None:
            batch.results, batch.ended = made, _now(call)


def _answered(call: Call, one: Mapping[str, Any]) -> dict[str, Any]:
    headers = {name: value for name, value in call.request.headers.items() if name != "x-zl-fault"}
    body = json.dumps(one["params"]).encode()
    request = replace(call.request, method="POST", path="/v1/messages", headers=headers, body=body, query={})
    response = call.server.handle(request)
    message = json.loads(b"".join(piece for piece in response.pieces() if isinstance(piece, bytes)))
    if response.status == 200:
        message["usage"]["service_tier"] = "batch"
        return {"custom_id": one["custom_id"], "result": {"type": "succeeded", "message": message}}
    return {"custom_id": one["custom_id"], "result": {"type": "errored", "error": message}}


def _shown(batch: Batch) -> dict[str, Any]:
    kinds = [result["result"]["type"] for result in batch.results]
    status = "ended" if batch.ended else "canceling" if batch.cancelled else "in_progress"
    counts = {kind: kinds.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")}
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": status,
        "request_counts": {"processing": 0 if batch.ended else len(batch.requests), **counts},
        "created_at": _text(batch.created),
        "expires_at": _text(batch.created + EXPIRES),
        "ended_at": _text(batch.ended),
        "cancel_initiated_at": _text(batch.cancelled),
        "archived_at": None,
        "results_url": batch.url if batch.ended else None,
    }


def _batches(call: Call) -> dict[str, Batch]:
    return cast("dict[str, Batch]", call.server.store("message_batches", dict))


def _find(call: Call, batch_id: str) -> Batch:
    with call.server.lock:
        batch = _batches(call).get(batch_id)
    if batch is None:
        raise WireError(404, f"Message Batch {batch_id} not found")
    return batch


def _now(call: Call) -> datetime:
    return datetime.fromtimestamp(call.server.clock(), UTC)


def _text(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None
