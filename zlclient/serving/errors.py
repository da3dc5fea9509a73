"""Error answers with the bodies, ids and headers of the real APIs.

A wire raises `WireError`; `error_response` writes it in the dialect of the request. Error types and the shape of the
bodies follow the error types of anthropic 2.14 and openai 3.57 and the providers' pages on errors, read 2026-11.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

from .wire import WireResponse

Dialect = Literal["anthropic", "openai"]
P = ParamSpec("P")
T = TypeVar("T")

ANTHROPIC_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI_TYPES: Mapping[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "not_found"),
    413: ("invalid_request_error", "context_length_exceeded"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "overloaded"),
}
MESSAGES: Mapping[Dialect, Mapping[int, str]] = {
    "anthropic": {
        400: "Bad request",
        401: "invalid x-api-key",
        402: "Your credit balance is too low to access the API.",
        403: "Your API key does not have permission to use the specified resource.",
        404: "Not found",
        408: "Request timed out",
        409: "Conflict",
        413: "Request exceeds the maximum size",
        422: "Unprocessable request",
        429: "This request would exceed your account's rate limit. Please try again later.",
        500: "Internal server error",
        503: "Service temporarily unavailable",
        504: "Request timed out",
        529: "Overloaded",
    },
    "openai": {
        400: "Bad request",
        401: "Incorrect API key provided.",
        403: "You are not allowed to use this resource.",
        404: "Not found",
        409: "Conflict",
        413: "Request body is too large",
        422: "Unprocessable request",
        429: "Rate limit reached for requests. Please try again later.",
        500: "The server had an error while processing your request. Sorry about that!",
        503: "The engine is currently overloaded, please try again later",
    },
}


class WireError(Exception):
    """An error answer. `message` may quote the request: it goes back to its sender only, never to a log."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        kind: str | None = None,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message
        self.kind, self.param, self.code = kind, param, code
        self.headers = dict(headers or {})


def reader(read: Callable[P, T]) -> Callable[P, T]:
    """A function that reads a request, and for which a value it stumbles over is the request's fault: WireError 400.

    The readers check and name what people get wrong; this is for the rest, such as an object where a name belongs.
    """

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise WireError(400, "A value in the request has the wrong type.") from None

    return reading


def error_body(dialect: Dialect, error: WireError, request_id: str) -> dict[str, Any]:
    """The JSON body of `error`."""
    message = error.message or MESSAGES[dialect].get(error.status) or f"HTTP {error.status}"
    if dialect == "anthropic":
        fallback = "api_error" if error.status >= 500 else "invalid_request_error"
        kind = error.kind or ANTHROPIC_TYPES.get(error.status, fallback)
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}
    default = ("server_error", None) if error.status >= 500 else ("invalid_request_error", None)
    kind, code = OPENAI_TYPES.get(error.status, default)
    return {
        "error": {
            "message": message,
            "type": error.kind or kind,
            "param": error.param,
            "code": error.code if error.code or error.kind else code,
        }
    }


def error_response(dialect: Dialect, error: WireError, request_id: str) -> WireResponse:
    """`error` as a response; the server adds the common headers."""
    body = json.dumps(error_body(dialect, error, request_id), ensure_ascii=False).encode()
    return WireResponse(error.status, {"content-type": "application/json", **error.headers}, body)
