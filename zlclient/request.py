"""What is asked: one validated, immutable Request from whatever the caller handed in.

The neutral form of a message is Anthropic's: `{"role": "user" | "assistant", "content": str | [block, …]}`, with
`text`, `image`, `document`, `tool_use` and `tool_result` blocks. OpenAI's shapes of the same things (a `system`
message, `tool_calls`, a `tool` message) are taken too and turned into it; blocks of either wire that have no twin on
the other pass through untouched.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from . import values
from .errors import InputError
from .values import OFF

if TYPE_CHECKING:
    from .answering.jobs import Progress
    from .shaping.documents import Document

Json = Mapping[str, Any]
Policy = Literal["off", "record", "raise", "retry"]
RateLimitPolicy = Literal["wait", "shorten", "split", "fallback"]

POLICIES = ("off", "record", "raise", "retry")
RATE_LIMIT_POLICIES = ("wait", "shorten", "split", "fallback")
SANITIZE_MODES = ("standard", "strict", "minimal", "naive", "off")
PRESETS = ("precise", "balanced", "varied")
MODES = ("answer", "summary", "extract")
SEGMENT_ERROR_POLICIES = ("raise", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call. A field that is None takes the route's or the settings' value.

    Args:
        messages: the conversation in the neutral form, oldest first, ending with what is to be answered.
        system: system text, or a list of text blocks.
        model: "auto", "legacy", a route of the configuration, or "provider:model-id".
        provider: where "auto", "legacy" or a bare model id is to be found, such as "local" for the offline engine.
        domain: a key of the domain table ("finance", "law" …): its tag goes before the first user text.
        anchors: names of system-side snippets to add ("fidelity", "format" …).
        reinforce: add the reinforcing snippet when the system prompt's anchor density is under the threshold.
        max_tokens: tokens of output, at most.
        temperature, preset: sampling, sent only where the model accepts it on the API version in force.
        effort: reasoning effort, in the provider's own words.
        tools, tool_choice: tool definitions in either wire's shape.
        output: a pydantic model class; the answer is constrained to its schema and parsed into `reply.parsed`.
        stop: stop sequences.
        source: the text that the answer's numbers, dates and names are checked against.
        fidelity: policy of that check: "off", "record", "raise" or "retry" (ask once more). Given without a
            source, the prompt is the source; without either there is no check.
        format: a FormatSpec, or a dict of its fields, that the answer must meet; `format_policy` as above.
        timeout: seconds that bound the first event and each silence after it; "off" for none.
        deadline: seconds that bound the whole call, waits included.
        retry: how many times a failed attempt is repeated; 0 or "off" for never.
        retry_wait: seconds before a repeat, unless the provider's Retry-After replaces it.
        fallback: routes tried in order when a route is unavailable.
        on_rate_limit: what to do on 429: "wait", or at once "shorten", "split" or "fallback".
        strict: an option that the model rejects is an error instead of an adjustment.
        document: a Document, a path to one, or its text, to answer from: sent before the question where it fits the
            model's window, else read in segments whose answers are merged. The next five options go with it.
        mode: "answer", "summary", or "extract" (sentences word for word).
        segment_tokens: tokens of document text in one request, at most; what the window holds when None.
        concurrency: how many segments are read at once, 8 when None.
        on_segment_error: "raise" when a segment fails after its retries, or "skip" and note it.
        progress: a function that is told a Progress after each segment.
        experiment, unit, attributes, arm: A/B routing: the experiment, the id it is sticky on, targeting, a forced arm.
        extra: body fields passed through as they are. `extra_headers`: the same for headers.
    """

    messages: tuple[Json, ...]
    system: str | tuple[Json, ...] | None = None
    model: str | None = None
    provider: str | None = None
    domain: str | None = None
    anchors: tuple[str, ...] | None = None
    reinforce: bool | None = None
    sanitize: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    preset: str | None = None
    effort: str | None = None
    tools: tuple[Json, ...] = ()
    tool_choice: Any = None
    output: type | None = None
    stop: tuple[str, ...] = ()
    source: str | None = None
    fidelity: str | None = None
    format: Any = None
    format_policy: str | None = None
    timeout: float | Literal["off"] | None = None
    deadline: float | None = None
    retry: int | None = None
    retry_wait: float | None = None
    fallback: tuple[str, ...] | None = None
    on_rate_limit: str | None = None
    strict: bool | None = None
    document: Document | None = None
    mode: str | None = None
    segment_tokens: int | None = None
    concurrency: int | None = None
    on_segment_error: str | None = None
    progress: Callable[[Progress], None] | None = None
    experiment: str | None = None
    unit: str | None = None
    attributes: Json = field(default_factory=dict[str, Any])
    arm: str | None = None
    extra: Json = field(default_factory=dict[str, Any])
    extra_headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, prompt: Any, /, **options: Any) -> Request:
        """A Request from a string, a list of messages, or a rendered template.

        Raises:
            InputError: an option is unknown or has a wrong value, or there is nothing to answer.
        """
        rendered = getattr(prompt, "messages", None)
        if rendered is not None and not isinstance(prompt, str | list | tuple):
            options = {**getattr(prompt, "options", {}), **options}
            options.setdefault("system", getattr(prompt, "system", None))
            prompt = rendered
        messages, system = _conversation(prompt)
        checked = {name: _check(name, value) for name, value in options.items() if value is not None}
        own = checked.get("system")
        if system:
            checked["system"] = _joined_system([*_system_blocks(own), *system])
        elif own is not None:
            checked["system"] = _joined_system(_system_blocks(own))
        lone = next((name for name in _WITH_DOCUMENT if name in checked), None)
        if lone is not None and "document" not in checked:
            raise InputError("goes with a document; give document= too", where=lone)
        return cls(messages=messages, **checked)


def _conversation(prompt: Any) -> tuple[tuple[Json, ...], list[Json]]:
    """(messages in the neutral form, system blocks found among them)."""
    if isinstance(prompt, str):
        return ({"role": "user", "content": prompt},), []
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
        kind = type(prompt).__name__
        raise InputError(f"must be a string, a list of messages or a rendered template, not {kind}", where="prompt")
    system: list[Json] = []
    messages: list[Json] = []
    for index, message in enumerate(cast("Sequence[Any]", prompt)):
        where = f"messages[{index}]"
        if not isinstance(message, Mapping) or "role" not in message:
            raise InputError('must be a mapping with "role" and "content"', where=where)
        message = cast("Json", message)
        role = message["role"]
        if role in ("system", "developer"):
            system.extend(_system_blocks(message.get("content")))
        elif role == "tool":
            messages.append(_tool_message(message))
        elif role == "assistant" and message.get("tool_calls"):
            messages.append(_calling_message(message, where))
        elif role in ("user", "assistant"):
            _check_content(message.get("content"), where)
            messages.append({"role": role, "content": message["content"]})
        else:
            raise InputError(f"unknown role {role!r}; accepted are user, assistant, system, tool", where=where)
    if not messages:
        raise InputError("there is no message to answer", where="messages")
    return tuple(messages), system


def _check_content(content: Any, where: str) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, Sequence):
        raise InputError("content must be a string or a list of content blocks", where=f"{where}.content")
    for index, block in enumerate(cast("Sequence[Any]", content)):
        if not isinstance(block, Mapping) or "type" not in block:
            raise InputError('a content block must be a mapping with "type"', where=f"{where}.content[{index}]")


def _tool_message(message: Json) -> Json:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.get("tool_call_id", "")}
    return {"role": "user", "content": [{**block, "content": message.get("content") or ""}]}


def _calling_message(message: Json, where: str) -> Json:
    content = message.get("content")
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
    if isinstance(content, list):
        blocks.extend(cast("list[Any]", content))
    for index, call in enumerate(message["tool_calls"]):
        called = call.get("function", {})
        try:
            arguments = json.loads(called.get("arguments") or "{}")
        except json.JSONDecodeError:
            raise InputError("arguments are not JSON", where=f"{where}.tool_calls[{index}]") from None
        blocks.append({"type": "tool_use", "id": call.get("id", ""), "name": called.get("name"), "input": arguments})
    return {"role": "assistant", "content": blocks}


def _system_blocks(system: Any) -> list[Json]:
    if system is None or system == "":
        return []
    if isinstance(system, str):
        return [{"type": "text", "text": system}]
    if isinstance(system, Sequence) and all(isinstance(block, Mapping) for block in cast("Sequence[Any]", system)):
        return [dict(block) for block in cast("Sequence[Json]", system)]
    raise InputError("must be a string or a list of text blocks", where="system")


def _joined_system(blocks: list[Json]) -> str | tuple[Json, ...] | None:
    """Plain text blocks join to one string; blocks with anything more (cache_control …) stay blocks."""
    if any(block.keys() - {"type", "text"} for block in blocks):
        return tuple(blocks)
    return "\n\n".join(block["text"] for block in blocks) or None


def _model_class(value: Any) -> type:
    if not isinstance(value, type) or not hasattr(value, "model_json_schema"):
        raise ValueError("must be a pydantic model class")
    return value


def _as_is(value: Any) -> Any:
    return value


def _format(value: Any) -> Any:
    from .checking.format import FormatSpec

    if isinstance(value, FormatSpec):
        return value
    return FormatSpec(**{str(key): item for key, item in values.mapping(value).items()})


def _document(value: Any) -> Document:
    from .shaping.documents import Document

    if isinstance(value, Document):
        return value
    if isinstance(value, Path):
        try:
            return Document.from_path(value)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where="document") from None
    if not isinstance(value, str):
        raise ValueError("must be a Document, a path or a text")
    if _FILE_NAME.fullmatch(value):
        raise ValueError("is a file's name, not a text; give pathlib.Path(…) or Document.from_path(…)")
    return Document.from_text(value)


_FILE_NAME = re.compile(r"\S{1,250}\.[A-Za-z]{2,5}")


def _callable(value: Any) -> Any:
    if not callable(value):
        raise ValueError("must be a function")
    return value


def _unit(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError("must be a non-empty string or a whole number")
    return str(value)


_CHECKS: dict[str, values.Check] = {
    "system": _as_is,
    "model": values.text,
    "provider": values.text,
    "domain": values.text,
    "anchors": values.texts,
    "reinforce": values.flag,
    "sanitize": values.one_of(*SANITIZE_MODES),
    "max_tokens": values.number(1, whole=True),
    "temperature": values.number(0, 2),
    "preset": values.one_of(*PRESETS),
    "effort": values.text,
    "tools": values.mappings,
    "tool_choice": _as_is,
    "output": _model_class,
    "stop": values.texts,
    "source": values.text,
    "fidelity": values.one_of(*POLICIES),
    "format": _format,
    "format_policy": values.one_of(*POLICIES),
    "timeout": values.number(1e-3, off=OFF),
    "deadline": values.number(1e-3),
    "retry": values.number(0, 10, whole=True, off=0),
    "retry_wait": values.number(0),
    "fallback": values.texts,
    "on_rate_limit": values.one_of(*RATE_LIMIT_POLICIES),
    "strict": values.flag,
    "document": _document,
    "mode": values.one_of(*MODES),
    "segment_tokens": values.number(64, whole=True),
    "concurrency": values.number(1, 1000, whole=True),
    "on_segment_error": values.one_of(*SEGMENT_ERROR_POLICIES),
    "progress": _callable,
    "experiment": values.text,
    "unit": _unit,
    "attributes": values.mapping,
    "arm": values.text,
    "extra": values.mapping,
    "extra_headers": values.mapping,
}

_WITH_DOCUMENT = ("mode", "segment_tokens", "concurrency", "on_segment_error", "progress")
OPTIONS = tuple(f.name for f in fields(Request) if f.name != "messages")


def _check(name: str, value: Any) -> Any:
    check = _CHECKS.get(name)
    if check is None:
        near = difflib.get_close_matches(name, _CHECKS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; accepted are {', '.join(_CHECKS)}"
        raise InputError(f"unknown option{hint}", where=name)
    try:
        return check(value)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{error}, not {values.shown(value)}", where=name) from None
