"""The models endpoints of both providers, from the catalogue: lifecycle and capabilities included."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from ..models import Model
from .anthropic import json_response
from .errors import WireError
from .wire import WireResponse

if TYPE_CHECKING:
    from .server import Call

UNKNOWN_RELEASE = "1970-01-01T00:00:00Z"  # the reference's own value where a release date is unknown
STAGES = ("active", "deprecated", "retired")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


def listing(call: Call) -> WireResponse:
    """GET /v1/models."""
    if call.dialect == "anthropic":
        return json_response(_anthropic_page(call))
    models = [_openai(model) for model in call.server.catalogue.provider("openai").models]
    models += [
        {"id": name, "object": "model", "created": 0, "owned_by": "local"} for name in sorted(call.server.models)
    ]
    return json_response({"object": "list", "data": models})


def retrieve(call: Call, model_id: str) -> WireResponse:
    """GET /v1/models/{id}."""
    provider = call.server.catalogue.provider(call.dialect)
    known = provider.by_id.get(model_id)
    if known is None and model_id not in call.server.models:
        if call.dialect == "anthropic":
            raise WireError(404, f"model: {model_id}")
        raise WireError(404, f"The model '{model_id}' does not exist", param="model", code="model_not_found")
    model = known or call.server.catalogue.find("compatible", model_id)
    return json_response(_anthropic(model, call.server.on()) if call.dialect == "anthropic" else _openai(model))


def health(call: Call) -> WireResponse:  # noqa: ARG001 - handlers share one signature
    """GET /health: that the server is up."""
    return json_response({"status": "ok"})


def _anthropic_page(call: Call) -> dict[str, Any]:
    query, on = call.request.query, call.server.on()
    asked = query.get("lifecycle") or query.get("lifecycle[]") or list(STAGES[:2])
    wrong = [stage for stage in asked if stage not in STAGES]
    if wrong:
        raise WireError(400, f"lifecycle: Input should be 'active', 'deprecated' or 'retired', not '{wrong[0]}'")
    models = [m for m in call.server.catalogue.provider("anthropic").models if m.lifecycle(on) in asked]
    return page([_anthropic(model, on) for model in models], query)


def page(items: list[dict[str, Any]], query: Mapping[str, list[str]]) -> dict[str, Any]:
    """One page of an Anthropic list: `limit` (20, at most 1000), `after_id`, `before_id`."""
    try:
        limit = int(query.get("limit", ["20"])[0])
    except ValueError:
        raise WireError(400, "limit: Input should be a valid integer") from None
    if not 1 <= limit <= 1000:
        raise WireError(400, "limit: Input should be between 1 and 1000")
    ids = [item["id"] for item in items]
    start, end = 0, len(items)
    if after := query.get("after_id"):
        start = ids.index(after[0]) + 1 if after[0] in ids else end
    if before := query.get("before_id"):
        end = ids.index(before[0]) if before[0] in ids else 0
        start = max(start, end - limit)
    found = items[start : min(end, start + limit)]
    more = start + limit < end if not query.get("before_id") else start > 0
    return {
        "data": found,
        "has_more": more,
        "first_id": found[0]["id"] if found else None,
        "last_id": found[-1]["id"] if found else None,
    }


def _anthropic(model: Model, on: date) -> dict[str, Any]:
    stage = model.lifecycle(on)
    words = model.id.removeprefix("claude-").replace("-", " ").split()
    name = " ".join(["Claude", words[0].title(), ".".join(words[1:])]).strip()
    return {
        "type": "model",
        "id": model.id,
        "display_name": name,
        "created_at": UNKNOWN_RELEASE,
        "lifecycle": stage,
        "deprecated_at": None,
        "retires_at": _midnight(model.retires) if model.retires else None,
        "line": model.line or None,
        "max_input_tokens": model.context,
        "max_tokens": model.max_output,
        "capabilities": _capabilities(model),
    }


def _capabilities(model: Model) -> dict[str, Any]:
    """What the catalogue knows; what it does not list is given as this server takes it."""
    yes, no = {"supported": True}, {"supported": False}
    efforts = {level: {"supported": level in model.effort} for level in EFFORTS}
    thinking = dict.fromkeys(("adaptive", "between_tools", "disabled", "enabled"), yes)
    return {
        "batch": yes,
        "citations": no,
        "code_execution": no,
        "context_management": no,
        "effort": {"supported": bool(model.effort), **efforts},
        "image_input": yes,
        "pdf_input": yes,
        "server_tools": {"supported": False, "code_execution": no, "web_search": no},
        "structured_outputs": {"supported": model.structured_output},
        "thinking": {"supported": True, "types": thinking},
    }


def _openai(model: Model) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": model.id, "object": "model", "created": 0, "owned_by": "openai"}
    if model.retires:
        shown["shutdown_date"] = model.retires.isoformat()
    return shown


def _midnight(day: date) -> str:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).isoformat().replace("+00:00", "Z")
