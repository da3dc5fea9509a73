"""Every error zlclient raises.

Each names what failed (a key and its value, a file and line, a provider, model and attempt) and what to do about
it. None ever holds a key or prompt text; the partial answer of a broken stream is an attribute, not a message.

    ZlclientError
    ├── ConfigError            a setting is wrong: key, value, file, line
    │   └── CredentialsError   no key for a provider
    ├── InputError             the call itself is wrong: nothing was sent
    ├── CheckError             the answer came and failed a check with policy "raise"
    └── SendError              the request was sent, or could not be
        ├── ConnectFailed      no connection, or it broke before the first content
        ├── Timeout            first event, silence between events
        │   └── DeadlineExceeded   the whole call's bound
        ├── StatusError        the provider answered with an error status
        │   ├── BadRequest (400, 413, 422)  Unauthorized (401)  Forbidden (403)  NotFound (404)  Conflict (409)
        │   ├── RateLimited (429)
        │   └── ServerError (≥ 500) ── Overloaded (529, or an overloaded event in a stream)
        ├── StreamBroken       content had begun, then the stream dropped, stalled or ended early
        ├── BadAnswer          a success that is no answer: HTML, no body, malformed JSON
        │   └── EmptyAnswer    a complete answer without any content
        ├── ClientClosed       the client was closed before or during the call
        └── SegmentsFailed     parts of a document could not be read (answering/errors.py)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .reply import Attempt, Reply, Usage

_E = TypeVar("_E", bound="ZlclientError")


class ZlclientError(Exception):
    """Base of all errors of this library."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        # Errors take keyword-only arguments, which Exception's own pickling would lose.
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[_E], args: tuple[Any, ...], state: dict[str, Any]) -> _E:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(ZlclientError):
    """A setting is wrong. `key`, `value` (never a secret's), `file` and `line` (1-based) where they are known."""

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        value: object = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        what = f"{key} = {value!r}: " if key and value is not None else f"{key}: " if key else ""
        super().__init__(f"{where}{what}{problem}")
        self.key, self.value, self.file, self.line = key, value, file, line


class CredentialsError(ConfigError):
    """No credentials for a provider; the message names the variable to set and the offline way."""


class InputError(ZlclientError, ValueError):
    """The call is wrong and nothing was sent. `where` names the argument, such as `messages[2].content`."""

    def __init__(self, problem: str, *, where: str | None = None) -> None:
        super().__init__(f"{where}: {problem}" if where else problem)
        self.where = where


class CheckError(ZlclientError):
    """The answer failed a check whose policy is "raise". The whole `reply` is attached, its checks included."""

    def __init__(self, problem: str, *, reply: Reply) -> None:
        super().__init__(problem)
        self.reply = reply


class SendError(ZlclientError):
    """A request failed on its way.

    `provider`, `model` and `route` name what failed; `attempts` lists every HTTP exchange in order, over all routes
    tried; `request_id` and `status` are the provider's; `partial_text` and `usage` hold what had arrived.
    """

    def __init__(
        self,
        problem: str,
        *,
        provider: str,
        model: str,
        route: str | None = None,
        attempts: tuple[Attempt, ...] = (),
        status: int | None = None,
        request_id: str | None = None,
        partial_text: str = "",
        usage: Usage | None = None,
    ) -> None:
        super().__init__(problem)
        self.provider, self.model, self.route = provider, model, route
        self.attempts = attempts
        self.status, self.request_id = status, request_id
        self.partial_text, self.usage = partial_text, usage

    def __str__(self) -> str:
        tries = f" after {len(self.attempts)} attempts" if len(self.attempts) > 1 else ""
        ident = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.provider}:{self.model}: {self.args[0]}{tries}{ident}"


class ConnectFailed(SendError):
    """No connection, or it broke before any content arrived."""


class Timeout(SendError):
    """The first event, or the next one, did not come within its bound."""


class DeadlineExceeded(Timeout):
    """The whole call, its waits and retries included, reached its `deadline`."""


class StatusError(SendError):
    """The provider answered with an error status. `error_type` is the provider's own word for it."""

    def __init__(
        self,
        problem: str,
        *,
        error_type: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(problem, **rest)
        self.error_type, self.param, self.retry_after = error_type, param, retry_after


class BadRequest(StatusError):
    """400, 413 or 422: the provider does not take this request; sending it again cannot help."""


class Unauthorized(StatusError):
    """401: the key is missing, wrong or expired."""


class Forbidden(StatusError):
    """403: the key may not do this."""


class NotFound(StatusError):
    """404: no such model or address."""


class Conflict(StatusError):
    """409, after its retry."""


class RateLimited(StatusError):
    """429. `retry_after` is the provider's wait in seconds, also where it was too long to wait for."""


class ServerError(StatusError):
    """500 and above."""


class Overloaded(ServerError):
    """529, or an `overloaded_error` event in a stream."""


class StreamBroken(SendError):
    """Content had begun to arrive, then the stream dropped, stalled or ended before its end; never retried."""


class BadAnswer(SendError):
    """A success status with something that is no answer: HTML, an empty body, malformed JSON."""


class EmptyAnswer(BadAnswer):
    """A complete answer without any content."""


class ClientClosed(SendError):
    """The client was closed before or during the call."""


STATUS_ERRORS: dict[int, type[StatusError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    422: BadRequest,
    429: RateLimited,
    529: Overloaded,
}


def status_error(status: int) -> type[StatusError]:
    """The class for an HTTP error status."""
    return STATUS_ERRORS.get(status) or (ServerError if status >= 500 else StatusError)
