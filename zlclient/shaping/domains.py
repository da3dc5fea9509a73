"""Domains: a subject with its tag, its anchors and its confidence threshold, from `data/domains.toml` and settings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from ..errors import ConfigError, InputError

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_TYPES: dict[str, tuple[type, ...]] = {
    "tag_zh": (str,),
    "tag_en": (str,),
    "anchors": (list, tuple),
    "threshold": (int, float),
}


@dataclass(frozen=True, slots=True)
class Domain:
    """A subject. `threshold` is the confidence (0 to 1) under which an answer should say it is not stated."""

    name: str
    tag_zh: str
    tag_en: str
    anchors: tuple[str, ...] = ()
    threshold: float = 0.6

    def tag(self, language: str) -> str:
        """The tag in "zh" or "en"."""
        return self.tag_zh if language == "zh" else self.tag_en

    @property
    def tags(self) -> tuple[str, str]:
        """Both tags."""
        return self.tag_zh, self.tag_en


def language_of(text: str) -> str:
    """ "zh" where the text holds Chinese characters, else "en"; decides which tag and snippet are used."""
    return "zh" if not text.isascii() and _HAN.search(text) else "en"


@cache
def bundled_domains() -> Mapping[str, Domain]:
    """The domains shipped with this release."""
    text = (files(__package__ or "zlclient.shaping") / "data" / "domains.toml").read_text("utf-8")
    return {name: make_domain(name, entry, None) for name, entry in tomllib.loads(text).items()}


def find_domain(name: str, configured: Mapping[str, Mapping[str, Any]]) -> Domain:
    """The domain `name`, with the configuration's keys over the bundled ones.

    Raises:
        InputError: there is no such domain; names the known ones.
        ConfigError: a configured key is unknown or has the wrong type.
    """
    base = bundled_domains().get(name)
    own = configured.get(name)
    if own is not None:
        return make_domain(name, own, base)
    if base is None:
        known = sorted({*bundled_domains(), *configured})
        raise InputError(f"no such domain {name!r}; known are {', '.join(known)}", where="domain")
    return base


def make_domain(name: str, entry: Mapping[str, Any], base: Domain | None) -> Domain:
    """A checked Domain from a table, over `base` where one is given."""
    for key, value in entry.items():
        where = f"domains.{name}.{key}"
        if key not in _TYPES:
            raise ConfigError(f"unknown; accepted are {', '.join(_TYPES)}", key=where)
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            raise ConfigError(f"must be {_TYPES[key][0].__name__}", key=where, value=value)
    values: dict[str, Any] = {key: tuple(value) if key == "anchors" else value for key, value in entry.items()}
    if not 0 <= values.get("threshold", 0) <= 1:
        raise ConfigError("must be from 0 to 1", key=f"domains.{name}.threshold", value=values["threshold"])
    if base is not None:
        return replace(base, **values)
    missing = [key for key in ("tag_zh", "tag_en") if not values.get(key)]
    if missing:
        raise ConfigError(f"needs {' and '.join(missing)}", key=f"domains.{name}")
    return Domain(name=name, **values)
