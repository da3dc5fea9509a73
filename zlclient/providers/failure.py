"""What an adapter raises: a failed exchange, described in our own error classes, with no policy attached."""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from ..errors import BadAnswer, SendError, StatusError, status_error


class Failure(Exception):
    """One exchange failed. The sender adds the attempts and raises `kind`."""

    def __init__(
        self,
        kind: type[SendError],
        problem: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        error_type: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(problem)
        self.kind, self.problem = kind, problem
        self.status, self.request_id = status, request_id
        self.error_type, self.param = error_type, param
        self.retry_after = retry_after

    @property
    def details(self) -> dict[str, Any]:
        """The keyword arguments that only a StatusError takes."""
        if not issubclass(self.kind, StatusError):
            return {}
        return {"error_type": self.error_type, "param": self.param, "retry_after": self.retry_after}


def status_failure(status: int, headers: Mapping[str, str], body: Any, now: float) -> Failure:
    """The failure that an error response means. `body` is parsed JSON or text; `now` is wall-clock seconds.

    The provider's message is kept, since it names parameters and limits; it is cut to 500 characters.
    """
    error: Mapping[str, Any] = {}
    if isinstance(body, Mapping):
        inner = cast("Mapping[str, Any]", body).get("error")
        error = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else {}
        if isinstance(inner, str):
            error = {"message": inner}
    elif isinstance(body, str) and body.strip() and "<html" not in body[:1000].lower():
        error = {"message": body.strip()}
    message = str(error.get("message") or f"status {status} without an error body")[:500]
    return Failure(
        status_error(status),
        f"{status} {message}",
        status=status,
        request_id=request_id_of(headers),
        error_type=error.get("type"),
        param=error.get("param"),
        retry_after=retry_after(headers, now),
    )


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The provider's id of the request."""
    return headers.get("request-id") or headers.get("x-request-id")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or Retry-After (seconds or an HTTP date, RFC 9110 §10.2.3).

    None for anything that is no wait: not a number, negative, infinite, or a date in the past.
    """
    millis, raw = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    for seconds in (_number(millis, 1000), _number(raw), _seconds_until(raw, now)):
        if seconds is not None and math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _number(text: str, per_second: int = 1) -> float | None:
    try:
        return float(text) / per_second
    except ValueError:
        return None


def _seconds_until(text: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def not_an_answer(what: str, status: int, headers: Mapping[str, str]) -> Failure:
    """A success status whose body is no answer."""
    return Failure(BadAnswer, what, status=status, request_id=request_id_of(headers))
