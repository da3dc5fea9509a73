"""What a wire has no field for and leaves out, as notes: nothing is lost silently."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..reply import Adjustment

Json = Mapping[str, Any]


def unknown_keys(value: Json, known: frozenset[str], where: str) -> Iterator[tuple[str, str]]:
    """(key, where) of each key of `value` that says something and is not among `known`."""
    return ((key, where) for key in value if key not in known and value[key] is not None)


def left_out(found: Iterable[tuple[str, str]], wire: str) -> tuple[Adjustment, ...]:
    """One note a thing left out, with the first place it stood at and how many more there are."""
    places: dict[str, list[str]] = {}
    for thing, where in found:
        places.setdefault(thing, []).append(where)
    return tuple(
        Adjustment("tune", thing, _short(where), None, f"has no twin on the {wire} wire")
        for thing, where in places.items()
    )


def _short(where: list[str]) -> str:
    return where[0] if len(where) == 1 else f"{where[0]} and {len(where) - 1} more"
