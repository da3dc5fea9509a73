"""What the caller passes through to the wire as it is: further body fields and headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import InputError

# Set on every request, whatever the wire: the decoder and the catalogue's rules depend on them.
_OURS = frozenset(["messages", "model", "stream", "stream_options"])


def add_extra(body: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Put `extra` into `body`.

    Raises:
        InputError: a key is one that the request sets itself, so that one of the two would be lost.
    """
    for key in extra:
        if key in _OURS or key in body:
            raise InputError("is set by the request itself; use its own option", where=f"extra.{key}")
    body.update(extra)


def lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    """Header names in lower case, so that a caller's `Authorization` replaces ours instead of joining it."""
    return {name.lower(): value for name, value in headers.items()}
