"""The tune stage: what the chosen model accepts on the API version in force. Every value left out is noted.

Sampling: an explicit `temperature` is sent where the model takes it, on the older API version if it takes it only
there; a preset only where the version in force takes it. Sources for what is accepted: the catalogue's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..prepared import Bounds, Tuned
from ..reply import Adjustment
from ..settings import PRESET_TEMPERATURES
from ..values import OFF
from .anchors import add_snippets, anchor_density, system_text
from .domains import language_of
from .schema import SCHEMA_INSTRUCTION, open_part, strict_schema

if TYPE_CHECKING:
    from ..request import Request
    from ..routing.routes import Route
    from ..settings import Settings
    from .shape import Shaped

Json = Mapping[str, Any]

# The first-event bound grows for long prompts: one more second for every 5,000 estimated tokens above 10,000.
LONG_PROMPT_TOKENS = 10_000
TOKENS_PER_SECOND = 5_000
_LONG_ENOUGH_TO_COUNT = 10_000  # characters: a shorter text cannot hold that many tokens


@dataclass(slots=True)
class _Notes:
    """The adjustments of one tuning; `strict` turns a rejected explicit option into an error."""

    strict: bool
    found: list[Adjustment] = field(default_factory=list[Adjustment])

    def add(self, rule: str, before: Any, after: Any, reason: str) -> None:
        self.found.append(Adjustment("tune", rule, before, after, reason))

    def rejected(self, option: str, value: Any, reason: str, after: Any = None) -> None:
        if self.strict:
            raise InputError(f"{value!r} cannot be sent: {reason}", where=option)
        self.add(option, value, after, reason)


def tune(
    shaped: Shaped, route: Route, settings: Settings, rejected: frozenset[str] = frozenset()
) -> tuple[Tuned, tuple[Adjustment, ...]]:
    """`shaped` with what `route`'s model accepts; `rejected` names parameters it is known to refuse.

    Raises:
        InputError: under strict, an explicit option that the model rejects; always, a shape no version accepts.
    """
    request = shaped.request
    notes = _Notes(settings.strict if request.strict is None else request.strict)
    system = _anchored(shaped, route, settings, notes)
    effort = _effort(request, route, settings, notes, rejected)
    version, temperature = _sampling(request, route, settings, notes, rejected, effort)
    schema, name = None, "output"
    if request.output is not None:
        name = request.output.__name__
        schema = strict_schema(request.output, all_required=route.provider.kind == "openai")
        obstacle = _obstacle(schema, route, rejected)
        if obstacle is not None:
            instruction = SCHEMA_INSTRUCTION[language_of(_first_text(shaped.messages))] + _compact(schema)
            system = _append(system, instruction)
            notes.add("output", "schema", "instruction", obstacle)
            schema = None
    tuned = Tuned(
        request=request,
        shaped_system=shaped.system,
        route=route,
        version=version,
        system=system,
        tools=shaped.tools,
        messages=_accepted_messages(shaped.messages, route, version, notes),
        max_tokens=_max_tokens(request, route, settings, notes),
        max_tokens_param=_max_tokens_param(route, rejected, notes),
        temperature=temperature,
        effort=effort,
        schema=schema,
        schema_name=name,
        extra={key: value for key, value in request.extra.items() if key not in rejected},
    )
    for key in request.extra:
        if key in rejected:
            notes.rejected(key, request.extra[key], f"{route.model.id} rejects it, as its server said")
    return tuned, tuple(notes.found)


def bounds(tuned: Tuned, settings: Settings, size: int) -> Bounds:
    """The time limits of a call whose body has `size` bytes; long prompts get a longer first-event bound."""
    request = tuned.request
    timeout = settings.timeout if request.timeout is None else request.timeout
    silence = None if timeout == OFF else float(timeout)
    first = silence
    if silence is not None and request.timeout is None and size > _LONG_ENOUGH_TO_COUNT:
        from .tokens import estimate_tokens

        texts = "".join(texts_of(tuned.messages)) + system_text(tuned.system)
        extra = (estimate_tokens(texts, tuned.route.model.id) - LONG_PROMPT_TOKENS) / TOKENS_PER_SECOND
        first = silence + max(0.0, extra)
    return Bounds(
        first_event=first,
        silence=silence,
        deadline=settings.deadline if request.deadline is None else request.deadline,
        retry=settings.retry if request.retry is None else request.retry,
        retry_wait=settings.retry_wait if request.retry_wait is None else request.retry_wait,
        on_rate_limit=request.on_rate_limit or settings.on_rate_limit,
    )


def texts_of(messages: tuple[Json, ...]) -> list[str]:
    """Every text of a conversation, tool results and text documents included."""
    texts: list[str] = []
    for message in messages:
        content = message["content"]
        blocks: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            kind = block["type"]
            if kind == "text":
                texts.append(block.get("text", ""))
            elif kind == "tool_result" and isinstance(block.get("content"), str):
                texts.append(block["content"])
            elif kind == "tool_result" and isinstance(block.get("content"), list):
                texts.extend(part.get("text", "") for part in block["content"])
            elif kind == "document" and block.get("source", {}).get("type") == "text":
                texts.append(block["source"]["data"])
    return texts


def _first_text(messages: tuple[Json, ...]) -> str:
    return next((text for text in texts_of(messages) if text), "")


def _anchored(shaped: Shaped, route: Route, settings: Settings, notes: _Notes) -> str | tuple[Json, ...] | None:
    request = shaped.request
    names = list(settings.anchors if request.anchors is None else request.anchors)
    if route.options is not None and route.options.anchors is not None and request.anchors is None:
        names = list(route.options.anchors)
    reinforce = settings.reinforce if request.reinforce is None else request.reinforce
    text = system_text(shaped.system)
    if reinforce and text:
        share = anchor_density(text).share
        if share < settings.density_threshold:
            names.append("reinforce")
            notes.add("density", f"{share:.0%}", None, f"under {settings.density_threshold:.0%} structured lines")
    if not names:
        return shaped.system
    system, added = add_snippets(shaped.system, names, language_of(text or _first_text(shaped.messages)))
    notes.found.extend(added)
    return system


def _obstacle(schema: Json, route: Route, rejected: frozenset[str]) -> str | None:
    """Why structured output cannot be asked for, so that the schema is told; the answer is parsed either way."""
    if not route.model.structured_output or "response_format" in rejected or "output_config" in rejected:
        return f"{route.model.id} takes no structured output"
    kind = route.provider.kind
    if kind == "local":
        return None  # our own engine writes any schema's values
    if kind == "openai" and schema.get("type") != "object":
        return "structured output takes only an object at the root"
    part = open_part(schema)
    return None if part is None else f"structured output has no form for it: {part}"


def _append(system: str | tuple[Json, ...] | None, text: str) -> str | tuple[Json, ...]:
    if system is None:
        return text
    return f"{system}\n\n{text}" if isinstance(system, str) else (*system, {"type": "text", "text": text})


def _effort(request: Request, route: Route, settings: Settings, notes: _Notes, rejected: frozenset[str]) -> str | None:
    own = route.options.effort if route.options is not None else None
    effort = request.effort or own or settings.effort
    if effort is None:
        return None
    if {"effort", "output_config", "reasoning_effort"} & rejected:
        notes.rejected("effort", effort, f"{route.model.id} rejects it, as its server said")
        return None
    if effort in route.model.effort:
        return effort
    accepted = ", ".join(route.model.effort) or "none of them"
    notes.rejected("effort", effort, f"{route.model.id} accepts {accepted}")
    return None


def _sampling(
    request: Request, route: Route, settings: Settings, notes: _Notes, rejected: frozenset[str], effort: str | None
) -> tuple[str, float | None]:
    """(API version, temperature or None)."""
    explicit = request.temperature
    own = route.options.preset if route.options is not None else None
    preset = request.preset or own or settings.preset
    asked = PRESET_TEMPERATURES[preset] if explicit is None else explicit
    refused = _never_sampled(request, route, rejected)
    older = route.model.sampling_version(settings.catalogue.provider(route.provider.name).versions)
    if refused is None:
        if route.model.takes_sampling(route.version, effort):
            return route.version, asked
        if explicit is not None and older is not None and not route.pinned:
            notes.add("version", route.version, older, f"{route.model.id} takes temperature only on this version")
            return older, asked
        where = f"on {route.version}" if older else "on any version"
        if route.model.sampling == "effort-none":
            where = "unless its effort is none"
        refused = f"{route.model.id} rejects sampling {where}"
    if explicit is not None:
        notes.rejected("temperature", explicit, refused)
    else:
        notes.add("preset", f"{preset} {asked}", None, refused)
    return route.version, None


def _never_sampled(request: Request, route: Route, rejected: frozenset[str]) -> str | None:
    """Why temperature must be left out whatever the version, if it must."""
    if "temperature" in rejected:
        return f"{route.model.id} rejects it, as its server said"
    thinking = request.extra.get("thinking")
    if route.provider.kind == "anthropic" and thinking and thinking != {"type": "disabled"}:
        return "sampling is rejected while thinking is on"
    if "top_p" in request.extra and not route.model.temperature_with_top_p:
        return f"{route.model.id} rejects temperature together with top_p, which was given"
    return None


def _max_tokens(request: Request, route: Route, settings: Settings, notes: _Notes) -> int:
    own = route.options.max_tokens if route.options is not None else None
    asked = request.max_tokens or own or settings.max_tokens
    limit = route.model.max_output
    if limit is None or asked <= limit:
        return asked
    if request.max_tokens is not None:
        notes.rejected("max_tokens", asked, f"{route.model.id} writes at most {limit}", limit)
    return limit


def _max_tokens_param(route: Route, rejected: frozenset[str], notes: _Notes) -> str:
    """Chat Completions has two names for it, and a server may take only one."""
    param = route.provider.max_tokens_param
    if param not in rejected:
        return param
    other = "max_tokens" if param == "max_completion_tokens" else "max_completion_tokens"
    notes.add("max_tokens", param, other, f"{route.model.id} rejects {param}, as its server said")
    return other


def _accepted_messages(messages: tuple[Json, ...], route: Route, version: str, notes: _Notes) -> tuple[Json, ...]:
    """Messages in a shape that the version takes; what it would answer with a 400 is mended or refused here."""
    last = messages[-1]
    if last["role"] == "assistant" and route.model.known and not route.model.prefill:
        raise InputError(
            f"ends with an assistant turn, and {route.model.id} takes no prefill; end with a user turn",
            where=f"messages[{len(messages) - 1}]",
        )
    if route.provider.kind != "anthropic" or version != "2026-10-21":
        return messages
    mended: list[Json] = []
    for index, message in enumerate(messages):
        content = message["content"]
        if isinstance(content, str):
            mended.append(message)
            continue
        if message["role"] == "assistant" and any(block["type"] == "document" for block in content):
            raise InputError(
                f"a document block in an assistant turn is rejected on {version}; move it to a user turn",
                where=f"messages[{index}].content",
            )
        cited = message["role"] == "user" and any(
            block.get("citations") for block in content if block["type"] == "text"
        )
        if cited:
            notes.add("citations", f"messages[{index}]", None, f"citations in user text are rejected on {version}")
            content = [_without(block, "citations") if block["type"] == "text" else block for block in content]
        mended.append({**message, "content": content} if cited else message)
    return tuple(mended)


def _without(block: Json, key: str) -> Json:
    return {name: value for name, value in block.items() if name != key}


def _compact(schema: Json) -> str:
    import json

    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
