"""Which provider and model a request goes to: aliases, configured routes, pinned ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ConfigError, InputError
from ..reply import Adjustment

if TYPE_CHECKING:
    from datetime import date

    from ..models import Model
    from ..settings import ProviderSettings, RouteSettings, Settings

ALIASES = ("auto", "legacy")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes. `name` is what was asked for; `pinned` API version, None for the provider's newest."""

    name: str
    provider: ProviderSettings
    model: Model
    version: str
    pinned: bool
    options: RouteSettings | None = None

    @property
    def label(self) -> str:
        """`auto → anthropic:claude-sonnet-5-5`, or the id alone where it was pinned."""
        target = f"{self.provider.name}:{self.model.id}"
        return target if self.name == target else f"{self.name} → {target}"


def choose_route(
    name: str, settings: Settings, today: date, provider: str | None = None
) -> tuple[Route, tuple[Adjustment, ...]]:
    """The route that `name` means on day `today`.

    Args:
        name: "auto", "legacy", a configured route, "provider:model-id", or with `provider` a bare model id.
        provider: where an alias or a bare id is to be found, instead of the settings' provider.

    Raises:
        InputError: `name` is neither an alias, a route nor a pinned id.
        ConfigError: the provider it names has no such alias.
    """
    options = settings.routes.get(name) if provider is None else None
    target = options.model if options is not None and options.model is not None else name
    place, colon, model_id = target.partition(":")
    if not colon:
        place, model_id = provider or settings.default_provider, target
        if target not in ALIASES and provider is None and settings.provider is None:
            known = ", ".join([*ALIASES, *settings.routes])
            wanted = f'"provider:model-id", a bare id with provider=, or one of {known}'
            raise InputError(f"unknown route {target!r}; use {wanted}", where="model")
    elif provider is not None and provider != place:
        raise InputError(f"{target!r} is at another provider than provider={provider!r}", where="model")
    found = settings.providers.get(place)
    if found is None:
        known = ", ".join(settings.providers)
        raise InputError(f"unknown provider {place!r}; known are {known}", where="provider" if provider else "model")
    version = options.version if options is not None else None
    if model_id in ALIASES and (not colon or found.kind == "local"):
        model_id, version = _alias(model_id, place, version, settings, today)
    model = settings.find_model(place, model_id)
    version = version or found.version
    versions = settings.catalogue.provider(place).versions
    route = Route(name, found, model, version or versions[0], version is not None, options)
    notes = [] if name == target and colon else [Adjustment("route", "alias", name, f"{place}:{model.id}", "resolved")]
    return route, (*notes, *_lifecycle(model, today))


def _alias(alias: str, provider: str, version: str | None, settings: Settings, today: date) -> tuple[str, str | None]:
    meant = settings.catalogue.provider(provider).resolve(alias, today)
    if meant is None:
        raise ConfigError(
            f'provider {provider!r} has no model for it; set model = "{provider}:…"', key=f"routes.{alias}"
        )
    return meant[0], version or meant[1]


def _lifecycle(model: Model, today: date) -> tuple[Adjustment, ...]:
    stage = model.lifecycle(today)
    if stage == "active":
        return ()
    when = f" on {model.retires}" if model.retires else ""
    reason = f"{model.id} was retired{when}" if stage == "retired" else f"{model.id} retires{when}"
    return (Adjustment("route", "lifecycle", None, None, reason),)
