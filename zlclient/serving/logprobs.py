"""Log probabilities on the Chat Completions wire, where the responder has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .errors import WireError
from .responders.base import Chosen, Token

MOST = 20


def check_logprobs(body: Mapping[str, Any]) -> None:
    """Raise WireError 400 where `top_logprobs` is out of bounds, or comes without `logprobs`."""
    top = body.get("top_logprobs")
    if top is None:
        return
    if not body.get("logprobs"):
        message = "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled."
        raise WireError(400, message, kind="invalid_request_error", param="top_logprobs")
    if not 0 <= top <= MOST:
        message = f"Invalid value for 'top_logprobs': must be from 0 to {MOST}."
        raise WireError(400, message, kind="invalid_request_error", param="top_logprobs", code="invalid_value")


def asked_logprobs(body: Mapping[str, Any]) -> int | None:
    """How many likeliest tokens a checked request wants beside each token's own; None where it wants neither."""
    return int(body.get("top_logprobs") or 0) if body.get("logprobs") is True else None


def written_logprobs(tokens: Iterable[Chosen]) -> dict[str, Any] | None:
    """The `logprobs` of a choice; None where there are no tokens."""
    content = [{**_written(token), "top_logprobs": [_written(other) for other in token.top]} for token in tokens]
    return {"content": content, "refusal": None} if content else None


def _written(token: Token) -> dict[str, Any]:
    return {"token": token.text, "logprob": token.logprob, "bytes": list(token.data)}
