"""OpenAI batches: a file of requests in, a file of answers out; in progress at the first look, then completed."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from .anthropic import json_response
from .errors import WireError
from .openai_common import check_fields, invalid, missing
from .openai_files import add, find
from .wire import WireResponse

if TYPE_CHECKING:
    from .server import Call

ENDPOINTS = ("/v1/chat/completions", "/v1/responses", "/v1/embeddings")
DAY = 24 * 3600


@dataclass(slots=True)
class Batch:
    """A batch and where it stands; changed only under the server's lock."""

    id: str
    endpoint: str
    file: str
    created: int
    metadata: Any
    lines: list[dict[str, Any]]
    problem: str = ""
    looks: int = 0
    cancelled: int | None = None
    completed: int | None = None
    output: str | None = None
    errors: str | None = None
    failed: int = 0


def create(call: Call) -> WireResponse:
    """POST /v1/batches."""
    body = call.json()
    check_fields(body, "batches")
    for name in ("input_file_id", "endpoint", "completion_window"):
        if not body.get(name):
            raise missing(name)
    if body["endpoint"] not in ENDPOINTS:
        supported = ", ".join(f"'{endpoint}'" for endpoint in ENDPOINTS)
        raise invalid(f"Invalid value: '{body['endpoint']}'. Supported values are: {supported}.", "endpoint")
    if body["completion_window"] != "24h":
        raise invalid(f"Invalid value: '{body['completion_window']}'. Value must be '24h'.", "completion_window")
    lines, problem = _read(find(call.server, body["input_file_id"]).data, body["endpoint"])
    batch = Batch(
        id=call.server.new_id("batch_"),
        endpoint=body["endpoint"],
        file=body["input_file_id"],
        created=int(call.server.clock()),
        metadata=body.get("metadata"),
        lines=lines,
        problem=problem,
    )
    with call.server.lock:
        _batches(call)[batch.id] = batch
    return json_response(_shown(batch))


def retrieve(call: Call, batch_id: str) -> WireResponse:
    """GET /v1/batches/{id}."""
    batch = _find(call, batch_id)
    with call.server.lock:
        batch.looks += 1
        due = batch.looks > 1 and batch.completed is None and batch.cancelled is None and not batch.problem
    if due:
        _finish(call, batch)
    return json_response(_shown(batch))


def listing(call: Call) -> WireResponse:
    """GET /v1/batches, newest first."""
    with call.server.lock:
        shown = [_shown(batch) for batch in reversed(_batches(call).values())]
    ids = {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {}
    return json_response({"object": "list", "data": shown, "has_more": False, **ids})


def cancel(call: Call, batch_id: str) -> WireResponse:
    """POST /v1/batches/{id}/cancel."""
    batch = _find(call, batch_id)
    with call.server.lock:
        if batch.completed is None:
            batch.cancelled = batch.cancelled or int(call.server.clock())
    return json_response(_shown(batch))


def _read(data: bytes, endpoint: str) -> tuple[list[dict[str, Any]], str]:
    """The requests of an input file, and what is wrong with it."""
    lines: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            one: Any = json.loads(line)
        except ValueError:
            return [], f"Line {number} is not valid JSON."
        if (
            not isinstance(one, dict)
            or not {"custom_id", "method", "url", "body"} <= cast("dict[str, Any]", one).keys()
        ):
            return [], f"Line {number} needs custom_id, method, url and body."
        request = cast("dict[str, Any]", one)
        if request["url"] != endpoint:
            return [], f"Line {number}: its url is not the batch's endpoint {endpoint}."
        if request["custom_id"] in seen:
            return [], f"Line {number}: its custom_id is not unique."
        seen.add(request["custom_id"])
        lines.append(request)
    return lines, "" if lines else "The input file is empty."


def _finish(call: Call, batch: Batch) -> None:
    answers = [_answered(call, one) for one in batch.lines]
    good = [answer for answer in answers if answer["response"]["status_code"] == 200]
    bad = [answer for answer in answers if answer["response"]["status_code"] != 200]
    with call.server.lock:
        if batch.completed is not None:
            return
        batch.completed, batch.failed = int(call.server.clock()), len(bad)
        batch.output = _file(call, batch, "output", good)
        batch.errors = _file(call, batch, "error", bad)


def _file(call: Call, batch: Batch, kind: str, answers: list[dict[str, Any]]) -> str | None:
    if not answers:
        return None
    data = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    return add(call.server, f"{batch.id}_{kind}.jsonl", "batch_output", data.encode("utf-8", "surrogatepass")).id


def _answered(call: Call, one: dict[str, Any]) -> dict[str, Any]:
    headers = {name: value for name, value in call.request.headers.items() if name != "x-zl-fault"}
    sent = json.dumps({name: value for name, value in one["body"].items() if name != "stream"}).encode()
    response = call.server.handle(
        replace(call.request, method="POST", path=one["url"], headers=headers, body=sent, query={})
    )
    made = b"".join(piece for piece in response.pieces() if isinstance(piece, bytes))
    answer = {"status_code": response.status, "request_id": response.headers["x-request-id"], "body": json.loads(made)}
    return {"id": call.server.new_id("batch_req_"), "custom_id": one["custom_id"], "response": answer, "error": None}


def _shown(batch: Batch) -> dict[str, Any]:
    status = "failed" if batch.problem else "in_progress" if batch.looks else "validating"
    status = "cancelled" if batch.cancelled else "completed" if batch.completed else status
    done = len(batch.lines) - batch.failed if batch.completed else 0
    problems = [{"code": "invalid_request", "message": batch.problem, "line": None, "param": None}]
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": batch.endpoint,
        "input_file_id": batch.file,
        "completion_window": "24h",
        "status": status,
        "created_at": batch.created,
        "in_progress_at": batch.created if batch.looks else None,
        "expires_at": batch.created + DAY,
        "completed_at": batch.completed,
        "cancelled_at": batch.cancelled,
        "failed_at": batch.created if batch.problem else None,
        "output_file_id": batch.output,
        "error_file_id": batch.errors,
        "errors": {"object": "list", "data": problems} if batch.problem else None,
        "request_counts": {"total": len(batch.lines), "completed": done, "failed": batch.failed},
        "metadata": batch.metadata,
    }


def _batches(call: Call) -> dict[str, Batch]:
    return cast("dict[str, Batch]", call.server.store("batches", dict))


def _find(call: Call, batch_id: str) -> Batch:
    with call.server.lock:
        batch = _batches(call).get(batch_id)
    if batch is None:
        raise WireError(404, f"No batch found with id '{batch_id}'.", kind="invalid_request_error")
    return batch
