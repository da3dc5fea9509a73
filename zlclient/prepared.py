"""The request that leaves: tuned values in the neutral form, then the exact bytes for one wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import InputError
from .values import MASK, shown_url

if TYPE_CHECKING:
    from .reply import Adjustment
    from .request import Request
    from .routing.routes import Route

Json = Mapping[str, Any]

# Headers whose values are no secret. Which of the others is one, nobody can know: all are masked.
_OPEN_HEADERS = frozenset({"anthropic-version", "anthropic-beta", "content-type", "accept", "user-agent"})
_OPEN_PREFIX = "x-zl-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Time limits of one call, in seconds. None means unbounded."""

    first_event: float | None
    silence: float | None
    deadline: float | None
    retry: int
    retry_wait: float
    on_rate_limit: str = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What one model on one API version is asked, before it is written in that provider's wire."""

    request: Request
    shaped_system: str | tuple[Json, ...] | None
    route: Route
    version: str
    system: str | tuple[Json, ...] | None
    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    max_tokens: int
    max_tokens_param: str = "max_tokens"
    temperature: float | None = None
    effort: str | None = None
    schema: Json | None = None
    schema_name: str = "output"
    extra: Json = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The exact request that would leave. `wire` shows all of it, credentials masked; repr leaves those fields out.

    `content` is the body as it leaves: compact JSON in UTF-8, tools and system first, messages last.
    """

    tuned: Tuned
    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: Json = field(repr=False)
    content: bytes = field(repr=False)
    bounds: Bounds
    adjustments: tuple[Adjustment, ...]
    base_url: str = field(repr=False)
    auth_header: str | None = None

    @property
    def route(self) -> Route:
        """Where it goes."""
        return self.tuned.route

    @property
    def url(self) -> str:
        """The full address."""
        return self.base_url.rstrip("/") + self.path

    @property
    def wire(self) -> dict[str, Any]:
        """`{"method", "url", "headers", "body"}`; the user in the address and all but well-known headers are masked."""
        headers = {name: value if _is_open(name) else MASK for name, value in self.headers.items()}
        if self.auth_header:
            headers[self.auth_header] = MASK if self.auth_header != "authorization" else f"Bearer {MASK}"
        return {
            "method": self.method,
            "url": shown_url(self.url),
            "headers": headers,
            "body": json.loads(self.content),
        }


def _is_open(header: str) -> bool:
    name = header.lower()
    return name in _OPEN_HEADERS or name.startswith(_OPEN_PREFIX)


def encode(body: Json) -> bytes:
    """Compact JSON in UTF-8; equal bodies give equal bytes.

    Raises:
        InputError: something in the body is no JSON value, or holds a lone surrogate that cleaning was told to keep.
    """
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        raise InputError(
            'holds a lone surrogate, which cannot be sent; clean it (sanitize="minimal" is enough)'
        ) from None
    except RecursionError:
        raise InputError("is nested too deeply to be written as JSON") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"cannot be written as JSON: {error}") from None
