"""Which function answers which path. Wires are imported when their first request comes, so each costs nothing
before."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from .errors import WireError

if TYPE_CHECKING:
    from .wire import WireResponse

    Handler = Callable[..., WireResponse]

# method, path under an optional /v1, "module.function"; {name} is a path part handed in as a keyword argument
ROUTES: tuple[tuple[str, str, str], ...] = (
    ("POST", "/messages", "anthropic.create"),
    ("POST", "/messages/count_tokens", "anthropic.count_tokens"),
    ("POST", "/messages/batches", "anthropic_batches.create"),
    ("GET", "/messages/batches", "anthropic_batches.listing"),
    ("GET", "/messages/batches/{batch_id}", "anthropic_batches.retrieve"),
    ("DELETE", "/messages/batches/{batch_id}", "anthropic_batches.delete"),
    ("POST", "/messages/batches/{batch_id}/cancel", "anthropic_batches.cancel"),
    ("GET", "/messages/batches/{batch_id}/results", "anthropic_batches.results"),
    ("GET", "/models", "models.listing"),
    ("GET", "/models/{model_id}", "models.retrieve"),
    ("POST", "/chat/completions", "openai_chat.create"),
    ("POST", "/responses", "openai_responses.create"),
    ("POST", "/responses/input_tokens", "openai_responses.count_tokens"),
    ("GET", "/responses/{response_id}", "openai_responses.retrieve"),
    ("DELETE", "/responses/{response_id}", "openai_responses.delete"),
    ("POST", "/embeddings", "embeddings.create"),
    ("POST", "/files", "openai_files.create"),
    ("GET", "/files", "openai_files.listing"),
    ("GET", "/files/{file_id}", "openai_files.retrieve"),
    ("DELETE", "/files/{file_id}", "openai_files.delete"),
    ("GET", "/files/{file_id}/content", "openai_files.content"),
    ("POST", "/batches", "openai_batches.create"),
    ("GET", "/batches", "openai_batches.listing"),
    ("GET", "/batches/{batch_id}", "openai_batches.retrieve"),
    ("POST", "/batches/{batch_id}/cancel", "openai_batches.cancel"),
    ("GET", "/health", "models.health"),
    ("GET", "/health/zero-layer", "watching.zero_layer"),
    ("GET", "/metrics", "watching.metrics"),
)


@lru_cache(maxsize=256)
def find_route(method: str, path: str) -> tuple[Handler, dict[str, str]]:
    """The handler of a path and its parameters; raises WireError 404 or 405."""
    parts = path.removeprefix("/v1").rstrip("/").split("/")
    other_method = False
    for accepted, pattern, target in ROUTES:
        parameters = _matched(pattern.split("/"), parts)
        if parameters is None:
            continue
        if accepted == method:
            module, _, function = target.rpartition(".")
            return getattr(importlib.import_module(f".{module}", __package__), function), parameters
        other_method = True
    if other_method:
        raise WireError(405, f"{method} is not allowed on {path}")
    raise WireError(404, f"zlclient serve has no {method} {path}")


def _matched(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(parts):
        return None
    parameters: dict[str, str] = {}
    for expected, part in zip(pattern, parts, strict=True):
        if expected.startswith("{"):
            if not part:
                return None
            parameters[expected[1:-1]] = part
        elif expected != part:
            return None
    return parameters
