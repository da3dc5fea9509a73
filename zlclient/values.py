"""Checks of single values, shared by the options of a call and by the settings.

Each raises ValueError saying what is wanted. None repeats the value: the caller knows whether it may be shown.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

OFF = "off"
MASK = "***"
Check = Callable[[Any], Any]


def text(value: Any) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value:
        raise ValueError("must be a non-empty string")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of non-empty strings; one string is a list of one."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(i, str) and i for i in cast("list[Any]", items)):
        raise ValueError("must be a string or a list of strings")
    return tuple(cast("list[str]", items))


def one_of(*accepted: str) -> Check:
    """One of the accepted words."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in accepted:
            raise ValueError(f"must be one of {', '.join(accepted)}")
        return value

    return check


def flag(value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def number(low: float, high: float = math.inf, *, whole: bool = False, off: Any = None) -> Check:
    """A number within bounds; `off` is what False and "off" stand for, where they are accepted."""
    bounds = f"from {low:g} to {high:g}" if high < math.inf else f"of at least {low:g}"
    wanted = f"must be a {'whole ' if whole else ''}number {bounds}" + (', or "off"' if off is not None else "")

    def check(value: Any) -> Any:
        if off is not None and (value is False or value == OFF):
            return off
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(wanted)
        if not low <= value <= high or (whole and value != int(value)):
            raise ValueError(wanted)
        return int(value) if whole else value

    return check


def mapping(value: Any) -> Mapping[str, Any]:
    """A table."""
    if not isinstance(value, Mapping):
        raise ValueError("must be a table")
    return cast("Mapping[str, Any]", value)


def mapping_of_texts(value: Any) -> Mapping[str, str]:
    """A table of strings."""
    items = cast("Mapping[Any, Any]", mapping(value)).items()
    if not all(isinstance(name, str) and isinstance(item, str) for name, item in items):
        raise ValueError("must be a table of strings")
    return dict(cast("Mapping[str, str]", value))


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_URL = re.compile(
    r"https?://(?:[^\s/?#@]*@)?(?:[^\s/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?(?:/[^\s?#]*)?|local:\S*"
)


def headers(value: Any) -> Mapping[str, str]:
    """A table of header lines: names as RFC 9110 has them (5.6.2, a token), values of printable ASCII."""
    checked = mapping_of_texts(value)
    for name, line in checked.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError("must have header names of letters, digits and -")
        if not _HEADER_VALUE.fullmatch(line):
            raise ValueError(f"must have a value of printable ASCII characters on one line for {name}")
    return checked


def base_url(value: Any) -> str:
    """The address that paths are put after: http or https, a host, perhaps a port and a path."""
    found = _URL.fullmatch(value) if isinstance(value, str) else None
    if not found or int(found["port"] or 0) > 65535:
        raise ValueError('must be an address such as "https://host/v1", without a query')
    return value


def variable(value: Any) -> str:
    """The name of an environment variable. A key put here by mistake rarely reads as one."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("must be the name of an environment variable")
    return value


def table_of_names(value: Any) -> Mapping[str, Any]:
    """A table whose keys are strings."""
    if not all(isinstance(name, str) for name in cast("Mapping[Any, Any]", mapping(value))):
        raise ValueError("must be a table with strings as keys")
    return cast("Mapping[str, Any]", value)


_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False}


def from_text(check: Check) -> Check:
    """`check` for a value that comes as text, from the environment: what reads as a number, a flag or a list is one."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return check(value)
        for candidate in _readings(value):
            try:
                return check(candidate)
            except ValueError:
                continue
        return check(value)

    return read


def _readings(value: str) -> list[Any]:
    found: list[Any] = []
    if value.lower() in _WORDS:
        found.append(_WORDS[value.lower()])
    with suppress(ValueError):
        found.append(float(value))
    if "," in value:
        found.append([part.strip() for part in value.split(",")])
    return found


def shown_url(text: str) -> str:
    """`text` with the user and password of an address masked."""
    return _USER_INFO.sub(f"//{MASK}@", text)


_USER_INFO = re.compile(r"//[^/?#\s]*@")


def shown(value: Any) -> str:
    """A value as an error may show it: short scalars as they are, of anything else only its type."""
    if isinstance(value, str) and len(value) <= 40:
        return repr(shown_url(value))
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a {type(value).__name__}" + (f" of {len(value)} characters" if isinstance(value, str) else "")
