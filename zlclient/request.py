"""What is asked: one validated, immutable Request from whatever the caller handed in; `messages` holds its shapes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import values
from .errors import InputError
from .messages import conversation, joined_system, system_blocks
from .tools import checked_choice, checked_tools
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
    extra_headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

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
        messages, system = conversation(prompt)
        checked = {name: _check(name, value) for name, value in options.items() if value is not None}
        checked["system"] = joined_system([*checked.get("system", ()), *system])
        lone = next((name for name in _WITH_DOCUMENT if name in checked), None)
        if lone is not None and "document" not in checked:
            raise InputError("goes with a document; give document= too", where=lone)
        return cls(messages=messages, **checked)


def _model_class(value: Any) -> type:
    if not isinstance(value, type) or not hasattr(value, "model_json_schema"):
        raise ValueError("must be a pydantic model class")
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


OPTION_CHECKS: dict[str, values.Check] = {
    "system": system_blocks,
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
    "tools": checked_tools,
    "tool_choice": checked_choice,
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
    "extra": values.table_of_names,
    "extra_headers": values.headers,
}

_WITH_DOCUMENT = ("mode", "segment_tokens", "concurrency", "on_segment_error", "progress")
OPTIONS = tuple(f.name for f in fields(Request) if f.name != "messages")


def _check(name: str, value: Any) -> Any:
    check = OPTION_CHECKS.get(name)
    if check is None:
        near = difflib.get_close_matches(name, OPTION_CHECKS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; accepted are {', '.join(OPTION_CHECKS)}"
        raise InputError(f"unknown option{hint}", where=name)
    try:
        return check(value)
    except InputError:
        raise
    except ValueError as error:
        given = "" if isinstance(value, Mapping) else f", not {values.shown(value)}"
        raise InputError(f"{error}{given}", where=name) from None
