"""The corridor's pure part: a Request in, finished requests out. Both drivers and `explain` walk through it.

shape (sanitise, domain tag) ─▶ route ─▶ tune (snippets, sampling, limits) ─▶ write the wire
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from .errors import BadRequest, InputError
from .prepared import Bounds, Prepared, Tuned, encode
from .providers import wire_of
from .providers.passthrough import lower_case
from .reply import Adjustment
from .routing.routes import Route, choose_route
from .shaping.shape import Shaped, shape
from .shaping.shorten import shortened
from .shaping.tune import bounds, texts_of, tune

if TYPE_CHECKING:
    from datetime import date

    from .errors import SendError
    from .request import Request
    from .settings import Settings

# What may be left out of a request without changing what is asked; an inner name before the field that holds it.
_DROPPABLE = (
    "temperature",
    "top_p",
    "top_k",
    "effort",
    "reasoning_effort",
    "output_config",
    "response_format",
)
# Chat Completions has two names for the limit, and a server may know only one of them.
_LIMITS = ("max_tokens", "max_completion_tokens")
_UNKNOWN_NAME = re.compile(r"unsupported|not supported|unrecogni[sz]ed|unknown|instead|extra inputs", re.IGNORECASE)

_NONE_KNOWN: Mapping[tuple[str, str], frozenset[str]] = MappingProxyType({})


def prepare(
    request: Request,
    settings: Settings,
    today: date,
    rejections: Mapping[tuple[str, str], frozenset[str]] = _NONE_KNOWN,
    route: str | None = None,
) -> Prepared:
    """Shape, route and tune `request`; pure, so two calls with the same arguments give equal bytes.

    Args:
        rejections: parameters that a (provider, model) is known to refuse.
        route: the route to take instead of the request's own.

    Raises:
        InputError: the call is wrong.
        ConfigError: the configuration is.
    """
    shaped, notes = shape(request, settings)
    name = route or request.model or settings.model
    provider = request.provider if route is None else None
    chosen, route_notes = choose_route(name, settings, today, provider)
    rejected = rejections.get((chosen.provider.name, chosen.model.id), frozenset())
    return retune(shaped, chosen, settings, rejected, (*notes, *route_notes))


def retune(
    shaped: Shaped, route: Route, settings: Settings, rejected: frozenset[str], notes: tuple[Adjustment, ...]
) -> Prepared:
    """Tune a shaped request for a chosen route and write it; `notes` are those of the stages before."""
    tuned, tune_notes = tune(shaped, route, settings, rejected)
    return write(tuned, settings, (*notes, *tune_notes))


def write(tuned: Tuned, settings: Settings, notes: tuple[Adjustment, ...], limits: Bounds | None = None) -> Prepared:
    """The exact request for a tuned one."""
    provider = tuned.route.provider
    wire = wire_of(provider.kind)
    body = wire.body(tuned)
    content = encode(body)
    return Prepared(
        tuned=tuned,
        method="POST",
        path=wire.path,
        headers={**lower_case(provider.headers), **wire.headers(tuned)},
        body=body,
        content=content,
        bounds=limits or bounds(tuned, settings, len(content)),
        adjustments=(*notes, *(note for note in wire.dropped(tuned) if note not in notes)),
        base_url=provider.base_url,
        auth_header=None if provider.kind == "local" or provider.key_env is None else wire.auth_header,
    )


def refused_parameter(prepared: Prepared, error: SendError) -> str | None:
    """The parameter of ours that a 400 names and that may be left out, if there is one."""
    if not isinstance(error, BadRequest) or error.status != 400:
        return None
    tuned, body, message = prepared.tuned, prepared.body, str(error.args[0])
    names = (*_DROPPABLE, *tuned.request.extra)
    sent = [name for name in names if name in body or (name == "effort" and tuned.effort is not None)]
    if prepared.route.provider.kind == "openai" and _UNKNOWN_NAME.search(message):
        sent += [name for name in _LIMITS if name in body]
    if error.param is not None:
        return error.param if error.param in sent else None
    return next((name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message)), None)


def without(prepared: Prepared, settings: Settings, rejected: frozenset[str]) -> Prepared | None:
    """`prepared` tuned again with more parameters known as rejected; None where strict forbids to leave one out."""
    before = [note for note in prepared.adjustments if note.stage != "tune"]
    tuned = prepared.tuned
    shaped = Shaped(tuned.request, tuned.shaped_system, tuned.messages, tuned.tools)
    try:
        again = retune(shaped, prepared.route, settings, rejected, tuple(before))
    except InputError:
        return None
    return again if again.content != prepared.content else None


def shorter(prepared: Prepared, settings: Settings) -> Prepared | None:
    """`prepared` at about half its size, once; None when nothing can be left out."""
    if any(note.rule == "shorten" for note in prepared.adjustments):
        return None
    cut = shortened(prepared.tuned)
    if cut is None:
        return None
    tuned, note = cut
    return write(tuned, settings, (*prepared.adjustments, note), replace(prepared.bounds, on_rate_limit="wait"))


def fits(prepared: Prepared) -> bool:
    """Whether the prompt, by the offline estimate, fits the model's context window."""
    if len(prepared.content) < prepared.route.model.context:
        return True  # a token has at least one byte
    from .shaping.tokens import estimate_tokens

    system = prepared.tuned.system
    texts = texts_of(prepared.tuned.messages) + ([system] if isinstance(system, str) else [])
    tokens = estimate_tokens("\n".join(texts), prepared.route.model.id)
    return tokens + prepared.tuned.max_tokens <= prepared.route.model.context
