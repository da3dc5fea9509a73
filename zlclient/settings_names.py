"""Names that settings refer to: models, providers, domains, snippets. Each must exist when the settings are loaded.

A wrong name would otherwise be found at the first call that uses it, far from the line that holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import values
from .errors import ConfigError, InputError
from .settings_sources import config_error

if TYPE_CHECKING:
    from .settings import Settings

ALIASES = ("auto", "legacy")


def check_names(settings: Settings) -> None:
    """Every name in `settings` means something.

    Raises:
        ConfigError: one does not; names the key, the value, and the file and line.
    """
    if settings.provider is not None and settings.provider not in settings.providers:
        problem = f"no such provider; known are {', '.join(settings.providers)}"
        raise config_error(problem, "provider", settings.origins, settings.provider)
    for route in settings.routes.values():
        _check_route_target(settings, route.name, route.model)
        _check_snippets(settings, f"routes.{route.name}.anchors", route.anchors or ())
    _check_target(settings, "model", settings.model)
    for name in settings.fallback:
        _check_target(settings, "fallback", name)
    _check_snippets(settings, "anchors", settings.anchors)
    if settings.domains or settings.domain is not None:
        _check_domains(settings)


def _check_target(settings: Settings, key: str, name: str) -> None:
    """An alias, a configured route, a pinned id, or with `provider` a bare id."""
    if name in ALIASES or name in settings.routes or _is_pinned(settings, name):
        return
    if ":" not in name and settings.provider is not None:
        return
    known = ", ".join(dict.fromkeys([*ALIASES, *settings.routes]))
    problem = (
        f'must be one of {known}, "provider:model-id" with a provider among {", ".join(settings.providers)}, '
        "or a bare model id together with provider"
    )
    raise config_error(problem, key, settings.origins, name)


def _check_route_target(settings: Settings, name: str, model: str | None) -> None:
    """A route names a pinned model; only one that refines an alias or a pinned id may leave it out."""
    key = f"routes.{name}"
    if model is None:
        if name not in ALIASES and not _is_pinned(settings, name):
            raise config_error('needs model = "provider:model-id"', key, settings.origins)
    elif not _is_pinned(settings, model):
        problem = f'must be "provider:model-id" with a provider among {", ".join(settings.providers)}'
        raise config_error(problem, f"{key}.model", settings.origins, model)


def _is_pinned(settings: Settings, name: str) -> bool:
    provider, _, model = name.partition(":")
    return bool(model) and provider in settings.providers


def _check_snippets(settings: Settings, key: str, names: Iterable[str]) -> None:
    for name in names:
        from .shaping.anchors import snippets

        if name not in snippets():
            problem = f"no such snippet; known are {', '.join(sorted(snippets()))}"
            raise config_error(problem, key, settings.origins, name)


def _check_domains(settings: Settings) -> None:
    from .shaping.domains import bundled_domains, find_domain

    for name, entry in settings.domains.items():
        try:
            find_domain(name, settings.domains)
        except ConfigError as error:
            key = error.key or f"domains.{name}"
            raise config_error(error.args[0], key, settings.origins, error.value, whole=True) from None
        try:
            values.texts(entry.get("anchors", ()))
        except ValueError:
            raise config_error("must be a list of strings", f"domains.{name}.anchors", settings.origins) from None
    if settings.domain is not None:
        try:
            find_domain(settings.domain, settings.domains)
        except InputError:
            known = ", ".join(sorted({*bundled_domains(), *settings.domains}))
            raise config_error(
                f"no such domain; known are {known}", "domain", settings.origins, settings.domain
            ) from None
