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


def choose_route(name: str, settings: Settings, today: date) -> tuple[Route, tuple[Adjustment, ...]]:
    """The route that `name` means on day `today`.

    Args:
        name: "auto", "legacy", a configured route, or "provider:model-id".

    Raises:
        InputError: `name` is neither an alias, a route nor a pinned id.
        ConfigError: the provider it names has no such alias.
    """
    options = settings.routes.get(name)
    target = options.model if options is not None and options.model is not None else name
    provider_name, colon, model_id = target.partition(":")
    version = options.version if options is not None else None
    if not colon:
        if target not in ALIASES:
            known = ", ".join([*ALIASES, *settings.routes])
            raise InputError(f'unknown route {target!r}; use "provider:model-id" or one of {known}', where="model")
        provider_name = settings.default_provider()
        model_id, version = _alias(target, provider_name, version, settings, today)
    provider = settings.providers.get(provider_name)
    if provider is None:
        known = ", ".join(settings.providers)
        raise InputError(f"unknown provider {provider_name!r}; known are {known}", where="model")
    if provider.kind == "local" and model_id in ALIASES:
        model_id, version = _alias(model_id, provider_name, version, settings, today)
    model = settings.find_model(provider_name, model_id)
    version = version or provider.version
    versions = settings.catalogue.provider(provider_name).versions
    route = Route(name, provider, model, version or versions[0], version is not None, options)
    notes = [] if name == target and colon else [Adjustment("route", "alias", name, route.label, "resolved")]
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
