"""When a failed attempt is repeated, and after how long. Pure; tenacity runs it.

One retry after 3 s, for connection errors, timeouts, 408, 409, 429, ≥ 500 and overloaded events, and only while no
content was delivered. Retry-After replaces the 3 s when it fits the deadline, or 10 s where there is none; when it does
not fit, the call fails at once and the error carries it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import BadAnswer, ConnectFailed, RateLimited, SendError, StatusError, Timeout

if TYPE_CHECKING:
    from ..prepared import Bounds

LONGEST_RETRY_AFTER = 10.0
_RETRYABLE_STATUSES = (408, 409, 429)


def is_transient(error: SendError) -> bool:
    """Whether the same request may succeed a moment later. Broken streams and bad answers never count."""
    if isinstance(error, ConnectFailed | Timeout):
        return True
    if isinstance(error, StatusError) and error.status is not None:
        return error.status in _RETRYABLE_STATUSES or error.status >= 500
    return False


def is_unavailable(error: SendError) -> bool:
    """Whether a fallback route should be tried: the arm is down, not the request wrong."""
    return is_transient(error) or isinstance(error, BadAnswer)


def retry_wait(error: SendError, attempts: int, bounds: Bounds, left: float | None) -> float | None:
    """Seconds to wait before the next attempt, or None to give up.

    Args:
        error: why the last attempt failed.
        attempts: how many attempts were made on this route.
        left: seconds until the deadline; None without one.
    """
    if attempts > bounds.retry or not is_transient(error):
        return None
    if isinstance(error, RateLimited) and bounds.on_rate_limit != "wait":
        return None
    asked = error.retry_after if isinstance(error, StatusError) else None
    wait = bounds.retry_wait if asked is None else asked
    longest = LONGEST_RETRY_AFTER if left is None else left
    if asked is None and left is None:
        return wait
    return wait if wait < longest or (left is None and wait == longest) else None
