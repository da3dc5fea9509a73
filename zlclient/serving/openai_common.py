"""What the two OpenAI wires share: their models, their rejections, their tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..models import Model
from .anthropic import input_tokens, prefix_cache
from .composing import Done
from .errors import WireError
from .fields import misfit
from .responders.base import Ask, Block, StopReason, Tool

if TYPE_CHECKING:
    from .server import Call, LocalServer

VERSION = "v1"
CACHE_STEP = 128  # cached tokens are counted in steps of this many
_NAMES = re.compile(r"(?:gpt-|chatgpt-|o\d|codex-|computer-use|ft:|claude-).*")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Body = Mapping[str, Any]

FINISH: Mapping[StopReason, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def missing(name: str) -> WireError:
    """The error of a required parameter that is not there."""
    return WireError(400, f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")


def invalid(message: str, param: str, code: str | None = "invalid_value") -> WireError:
    """A 400 that names its parameter."""
    return WireError(400, message, kind="invalid_request_error", param=param, code=code)


def model_of(call: Call, body: Body) -> Model:
    """The catalogue's entry for the request's model; raises WireError 400 or 404."""
    server = call.server
    name = body.get("model")
    if not isinstance(name, str) or not name:
        raise missing("model")
    if name in server.models:
        return server.catalogue.find("compatible", name)
    model = server.catalogue.find("openai", name)
    gone = server.today is not None and model.lifecycle(server.today) == "retired"
    if gone or (not model.known and (server.strict or not _NAMES.fullmatch(name))):
        message = f"The model `{name}` does not exist or you do not have access to it."
        if gone:
            message = f"The model `{name}` has been shut down on {model.retires}."
        raise WireError(404, message, kind="invalid_request_error", code="model_not_found")
    return model


def check_fields(body: Body, endpoint: str) -> None:
    """Raise WireError 400 for a field that `endpoint` does not have, or that holds something else."""
    wrong = misfit(body, endpoint)
    if wrong is None:
        return
    name, kinds = wrong
    if kinds is None:
        raise invalid(f"Unknown parameter: '{name}'.", name, "unknown_parameter")
    words = {"objects": "an array of objects", "strings": "an array of strings", "number": "a decimal"}
    expected = " or ".join(
        words.get(kind, f"{'an' if kind[0] in 'aio' else 'a'} {kind}") for kind in kinds.split(" or ")
    )
    raise invalid(f"Invalid type for '{name}': expected {expected}.", name, "invalid_type")


def check_sampling(body: Body, model: Model, effort: str | None, effort_name: str) -> None:
    """Raise WireError 400 for an effort, a temperature or a top_p that the model does not take."""
    if effort is not None and not model.effort:
        raise invalid(
            f"Unsupported parameter: '{effort_name}' is not supported with this model.",
            effort_name,
            "unsupported_parameter",
        )
    if effort is not None and effort not in model.effort:
        levels = ", ".join(f"'{level}'" for level in model.effort)
        raise invalid(
            f"Unsupported value: '{effort_name}' does not support '{effort}' with this model. "
            f"Supported values are: {levels}.",
            effort_name,
            "unsupported_value",
        )
    for name, top in (("temperature", 2), ("top_p", 1)):
        value = body.get(name)
        if value is None:
            continue
        if not 0 <= value <= top:
            low_high = "decimal_below_min_value" if value < 0 else "decimal_above_max_value"
            raise invalid(f"Invalid '{name}': expected a value between 0 and {top}, got {value}.", name, low_high)
        if value == 1 or model.takes_sampling(VERSION, effort):
            continue
        if name == "top_p":
            message, code = "Unsupported parameter: 'top_p' is not supported with this model.", "unsupported_parameter"
        else:
            code = "unsupported_value"
            message = (
                f"Unsupported value: 'temperature' does not support {value} with this model. "
                "Only the default (1) value is supported."
            )
        raise invalid(message, name, code)


def check_limit(body: Body, name: str, model: Model, least: int) -> int | None:
    """The token limit under `name`, checked; None when there is none."""
    value = body.get(name)
    if value is None:
        return None
    if value < least:
        message = (
            f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {value} instead."
        )
        raise invalid(message, name, "integer_below_min_value")
    if model.max_output is not None and value > model.max_output:
        limit = f"This model supports at most {model.max_output} completion tokens"
        raise invalid(f"{name} is too large: {value}. {limit}, whereas you provided {value}.", name)
    return value


def read_tool(tool: Body, where: str, *, strict: bool) -> Tool:
    """A function tool, checked; `tool` holds its name, description and parameters."""
    name = tool.get("name")
    if not isinstance(name, str):
        raise missing(f"{where}.name")
    if not _TOOL_NAME.fullmatch(name):
        message = f"Invalid '{where}.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
        raise invalid(message, f"{where}.name")
    schema = cast("Body", tool.get("parameters") or {"type": "object", "properties": {}})
    if strict:
        problem = strict_problem(schema)
        if problem:
            message = f"Invalid schema for function '{name}': {problem}"
            raise invalid(message, f"{where}.parameters", "invalid_function_parameters")
    return Tool(name, schema, tool.get("description") or "")


def read_schema(shape: Body, where: str) -> Body | None:
    """The schema of a response format (its `json_schema` part flattened in), or None for text."""
    kind = shape.get("type", "text")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    if kind != "json_schema":
        raise invalid(f"Invalid value: '{kind}'. Supported values are: 'json_object', 'json_schema', 'text'.", where)
    if not shape.get("name"):
        raise missing(f"{where}.name")
    schema = shape.get("schema")
    if not isinstance(schema, Mapping):
        raise missing(f"{where}.schema")
    if shape.get("strict"):
        problem = strict_problem(cast("Body", schema))
        if problem:
            message = f"Invalid schema for response_format '{shape['name']}': {problem}"
            raise invalid(message, where, "invalid_json_schema")
    return cast("Body", schema)


def strict_problem(schema: Any, context: tuple[str, ...] = ()) -> str:
    """Why `schema` is none that strict mode takes: every object closed, every property required; "" when it is one."""
    if isinstance(schema, list):
        found = (strict_problem(part, (*context, str(at))) for at, part in enumerate(cast("list[Any]", schema)))
        return next(filter(None, found), "")
    if not isinstance(schema, Mapping):
        return ""
    rules = cast("Body", schema)
    if rules.get("type") == "object":
        if rules.get("additionalProperties") is not False:
            return f"In context={context}, 'additionalProperties' is required to be supplied and to be false."
        names = cast("Body", rules.get("properties") or {})
        left_out = [name for name in names if name not in rules.get("required", ())]
        if left_out:
            return (
                f"In context={context}, 'required' is required to be supplied and to be an array including every key "
                f"in properties. Missing '{left_out[0]}'."
            )
    for key in ("properties", "$defs", "definitions"):
        for name, part in cast("Body", rules.get(key) or {}).items():
            if problem := strict_problem(part, (*context, key, name)):
                return problem
    parts = ((key, rules[key]) for key in ("items", "anyOf", "allOf") if key in rules)
    return next(filter(None, (strict_problem(part, (*context, key)) for key, part in parts)), "")


def content_blocks(content: Any, where: str = "content") -> tuple[Block, ...]:
    """A message's content, of either wire, as neutral blocks; raises WireError 400 for what is no content."""
    if content is None:
        return ()
    if isinstance(content, str):
        return ({"type": "text", "text": content},) if content else ()
    if not isinstance(content, list):
        raise invalid(f"Invalid type for '{where}': expected a string or an array.", where, "invalid_type")
    return tuple(_block(part, f"{where}[{at}]") for at, part in enumerate(cast("list[Any]", content)))


_TEXTS = {"text": "text", "input_text": "text", "output_text": "text", "refusal": "refusal"}


def _block(part: Any, where: str) -> Block:
    part = cast("Body", part if isinstance(part, dict) else {})
    kind = part.get("type")
    if not isinstance(kind, str):
        raise missing(f"{where}.type")
    if kind in _TEXTS:
        text = part.get(_TEXTS[kind])
        if not isinstance(text, str):
            raise invalid(f"Invalid type for '{where}.{_TEXTS[kind]}': expected a string.", where, "invalid_type")
        return {"type": "text", "text": text}
    if kind in ("image_url", "input_image"):
        return {"type": "image", "source": part.get("image_url") or {"type": "file", "file_id": part.get("file_id")}}
    if kind in ("file", "input_file"):
        return {"type": "document", "source": {"type": "file", "file": part.get("file") or part.get("file_id")}}
    return part


def arguments_of(text: Any) -> Body:
    """The arguments of an earlier call, which models sometimes write badly: what is no object is kept as text."""
    try:
        value: Any = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    return cast("Body", value) if isinstance(value, dict) else {"arguments": text}


def token_counts(server: LocalServer, ask: Ask) -> tuple[int, int]:
    """The (input, cached) tokens of an ask; the longest prefix seen before is cached, as both APIs do it unasked."""
    body = {
        "model": ask.model,
        "system": ask.system,
        "tools": [{"name": tool.name, "schema": tool.schema} for tool in ask.tools],
        "messages": [{"role": turn.role, "content": turn.blocks} for turn in ask.turns],
    }
    total = input_tokens(body)
    if total < server.cache_minimum:
        return total, 0
    read, _ = prefix_cache(server).account(body, every=True)
    return total, min(read, total) // CACHE_STEP * CACHE_STEP


def counted(done: Done, given: int, cached: int) -> tuple[int, int, int]:
    """The (input, cached, output) tokens, a responder's own counts first."""
    usage = done.usage
    return (
        given if usage.input_tokens is None else usage.input_tokens,
        cached if usage.cache_read_tokens is None else usage.cache_read_tokens,
        done.output_tokens if usage.output_tokens is None else usage.output_tokens,
    )
