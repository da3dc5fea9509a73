"""Configuration: what every call starts from, and where each value came from.

Sources, weakest first: the defaults below, `zlclient.toml`, `[tool.zlclient]` in pyproject.toml, `ZLCLIENT_*`
variables, arguments of Client(...). The two files are the nearest ones at or above the working directory.

    [tool.zlclient]
    model = "auto"
    timeout = 5
    [tool.zlclient.providers.vllm]
    kind = "openai"
    base_url = "http://127.0.0.1:8000/v1"
    key_env = "VLLM_API_KEY"
    accepts = { context = 32768 }
    [tool.zlclient.routes.auto]
    model = "vllm:qwen3-32b"
    anchors = ["fidelity"]
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from . import values
from .errors import ConfigError
from .models import Catalogue, Model
from .request import OPTION_CHECKS, PRESETS
from .settings_names import check_names
from .settings_sources import Origin, Source, config_error, environment_source, file_sources

Kind = Literal["anthropic", "openai", "local"]
KINDS = ("anthropic", "openai", "local")

# sampling presets: temperature, sent only where the model accepts sampling on the API version in force
PRESET_TEMPERATURES = {"precise": 0.3, "balanced": 0.35, "varied": 0.4}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """How to reach one provider. `accepts` overrides what the catalogue says of all its models.

    Headers and the address may hold credentials, so repr leaves them out.
    """

    name: str
    kind: Kind
    base_url: str = field(repr=False)
    key_env: str | None = None
    version: str | None = None
    max_tokens_param: str = "max_tokens"
    max_connections: int = 100
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    accepts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSettings:
    """What a route name means: a model, optionally an API version, and options that apply when it is taken."""

    name: str
    model: str | None = None
    version: str | None = None
    preset: str | None = None
    effort: str | None = None
    max_tokens: int | None = None
    anchors: tuple[str, ...] | None = None


BUILT_IN_PROVIDERS: tuple[ProviderSettings, ...] = (
    ProviderSettings(
        name="anthropic", kind="anthropic", base_url="https://api.anthropic.com", key_env="ANTHROPIC_API_KEY"
    ),
    ProviderSettings(
        name="openai",
        kind="openai",
        base_url="https://api.openai.com/v1",
        key_env="OPENAI_API_KEY",
        max_tokens_param="max_completion_tokens",
    ),
    ProviderSettings(name="local", kind="local", base_url="local:"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Effective settings; immutable. `origins` says for each key where its value came from."""

    model: str = "auto"
    provider: str | None = None
    domain: str | None = None
    anchors: tuple[str, ...] = ()
    reinforce: bool = False
    density_threshold: float = 0.3
    sanitize: str = "standard"
    max_tokens: int = 4096
    preset: str = "balanced"
    effort: str | None = None
    timeout: float | Literal["off"] = 5.0
    deadline: float | None = None
    retry: int = 1
    retry_wait: float = 3.0
    fallback: tuple[str, ...] = ()
    on_rate_limit: str = "wait"
    strict: bool = False
    fidelity: str = "record"
    format_policy: str = "record"
    log_content: bool = False
    store: str = field(default="sqlite", repr=False)  # an address may hold a password
    providers: Mapping[str, ProviderSettings] = field(default_factory=dict[str, ProviderSettings])
    routes: Mapping[str, RouteSettings] = field(default_factory=dict[str, RouteSettings])
    domains: Mapping[str, Any] = field(default_factory=dict[str, Any])
    models: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rollouts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    catalogue: Catalogue = field(default_factory=Catalogue.bundled, repr=False)
    keyed: str = "anthropic"  # the built-in provider that has a key; read once, so that preparing stays pure
    origins: Mapping[str, Origin] = field(default_factory=dict[str, Origin], repr=False, compare=False)

    @classmethod
    def load(
        cls, arguments: Mapping[str, Any] | None = None, *, folder: str | Path | None = None, env: Any = None
    ) -> Settings:
        """Read all sources, check every value, and resolve providers and routes.

        Args:
            arguments: the strongest source, such as Client's keyword arguments.
            folder: where the search for files starts; the working directory when None.
            env: the environment; os.environ when None.

        Raises:
            ConfigError: a key is unknown or a value wrong; names the key, the value, and the file and line.
        """
        env = os.environ if env is None else env
        given = Source("argument", {k: v for k, v in (arguments or {}).items() if v is not None}, Origin("argument"))
        sources = [*file_sources(Path(folder or ".")), environment_source(env, _SCALARS, _TABLES + _ELSEWHERE), given]
        scalars: dict[str, Any] = {}
        tables: dict[str, dict[str, Any]] = {name: {} for name in _TABLES}
        origins: dict[str, Origin] = {}
        for source in sources:
            for key, value in source.values.items():
                origin = source.origin_of(key)
                if key in _TABLES:
                    _merge_table(tables[key], key, value, source, origins)
                elif key in _SCALARS:
                    scalars[key] = _checked(_SCALARS[key], key, value, origin)
                    origins[key] = origin
                elif key not in _ELSEWHERE:
                    raise _unknown(key, origin, [*_SCALARS, *_TABLES])
        return cls._assemble(scalars, tables, origins, env)

    @classmethod
    def _assemble(
        cls, scalars: dict[str, Any], tables: dict[str, dict[str, Any]], origins: dict[str, Origin], env: Any
    ) -> Settings:
        providers = {provider.name: provider for provider in BUILT_IN_PROVIDERS}
        catalogue = Catalogue.bundled()
        for name, entry in tables["providers"].items():
            provider = _provider(name, entry, providers.get(name), origins)
            providers[name] = provider
            if provider.accepts or name not in catalogue.providers:
                base = name if name in catalogue.providers else _CATALOGUE_BASES[provider.kind]
                catalogue = _placed(origins, partial(catalogue.with_provider, name, provider.accepts, base=base))
        for name, variable in _BASE_URLS.items():
            url = env.get(variable)
            if url and "base_url" not in tables["providers"].get(name, {}):
                origin = Origin(variable, variable=variable)
                checked = _checked(values.base_url, f"providers.{name}.base_url", url, origin)
                providers[name] = replace(providers[name], base_url=checked)
                origins[f"providers.{name}.base_url"] = origin
        for name, accepts in tables["models"].items():
            provider, _, model = name.partition(":")
            if not model or provider not in providers:
                raise config_error('must be "provider:model-id" with a known provider', f"models.{name}", origins)
            catalogue = _placed(origins, partial(catalogue.with_model, provider, model, accepts))
        routes = {name: _route(name, entry, origins) for name, entry in tables["routes"].items()}
        settings = cls(
            **scalars,
            providers=providers,
            routes=routes,
            domains=tables["domains"],
            models=tables["models"],
            rollouts=tables["rollouts"],
            catalogue=catalogue,
            keyed=_keyed(env),
            origins=origins,
        )
        check_names(settings)
        return settings

    @property
    def default_provider(self) -> str:
        """The provider that `auto` and `legacy` mean: `provider`, or else the one whose key was set at loading."""
        return self.provider or self.keyed

    def find_model(self, provider: str, model_id: str) -> Model:
        """What the catalogue, with this configuration's overrides, says of a model."""
        return self.catalogue.find(provider, model_id)

    def effective(self) -> list[tuple[str, Any, str]]:
        """(key, value, origin) of every setting, tables flattened; never a secret."""
        rows: list[tuple[str, Any, str]] = []
        for name in _SCALARS:
            rows.append((name, _open(getattr(self, name)), str(self.origins.get(name, "default"))))
        for provider in self.providers.values():
            for f in fields(ProviderSettings):
                key = f"providers.{provider.name}.{f.name}"
                value = getattr(provider, f.name)
                if f.name == "headers":
                    value = dict.fromkeys(cast("Mapping[str, str]", value), values.MASK)
                if f.name != "name" and value not in (None, {}):
                    rows.append((key, _open(value), str(self.origins.get(key, "default"))))
        for route in self.routes.values():
            for f in fields(RouteSettings):
                key, value = f"routes.{route.name}.{f.name}", getattr(route, f.name)
                if f.name != "name" and value is not None:
                    rows.append((key, value, str(self.origins.get(key, "default"))))
        for table in ("domains", "models", "rollouts"):
            for name, entry in getattr(self, table).items():
                for key, value in cast("Mapping[str, Any]", entry).items():
                    path = f"{table}.{name}.{key}"
                    rows.append((path, _open(value), str(self.origins.get(path, "default"))))
        return rows


def _open(value: Any) -> Any:
    """A value as it may be shown: addresses without user and password."""
    return values.shown_url(value) if isinstance(value, str) else value


_OWN_CHECKS: dict[str, values.Check] = {
    "density_threshold": values.number(0, 1),
    "log_content": values.flag,
    "store": values.text,
}
_SCALARS = {
    name: _OWN_CHECKS[name] if name in _OWN_CHECKS else OPTION_CHECKS[name]  # a call's option, set for all calls
    for name in (
        "model",
        "provider",
        "domain",
        "anchors",
        "reinforce",
        "density_threshold",
        "sanitize",
        "max_tokens",
        "preset",
        "effort",
        "timeout",
        "deadline",
        "retry",
        "retry_wait",
        "fallback",
        "on_rate_limit",
        "strict",
        "fidelity",
        "format_policy",
        "log_content",
        "store",
    )
}
_TABLES = ("providers", "routes", "domains", "models", "rollouts")
_ELSEWHERE = ("lint",)  # sections other rooms read from the same files

_PROVIDER_KEYS: dict[str, values.Check] = {
    "kind": values.one_of(*KINDS),
    "base_url": values.base_url,
    "key_env": values.variable,
    "version": values.text,
    "max_tokens_param": values.one_of("max_tokens", "max_completion_tokens"),
    "max_connections": values.number(1, whole=True),
    "headers": values.headers,
    "accepts": values.mapping,
}
_ROUTE_KEYS: dict[str, values.Check] = {
    "model": values.text,
    "version": values.text,
    "preset": values.one_of(*PRESETS),
    "effort": values.text,
    "max_tokens": values.number(1, whole=True),
    "anchors": values.texts,
}
_CATALOGUE_BASES: dict[str, str] = {"anthropic": "anthropic", "openai": "compatible", "local": "local"}
_ANTHROPIC_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
_BASE_URLS = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}


def _checked(check: values.Check, key: str, value: Any, origin: Origin) -> Any:
    try:
        return (values.from_text(check) if origin.variable else check)(value)
    except ValueError as error:
        problem, variable = str(error), origin.variable or key
        raise ConfigError(
            problem, key=variable, value=_showable(key, value), file=origin.file, line=origin.line
        ) from None


def _showable(key: str, value: Any) -> Any:
    """`value` if an error may repeat it, else None: no table, and nothing that is or may be a credential."""
    if not isinstance(value, str | int | float):
        return None
    table, _, rest = key.partition(".")
    name = rest.partition(".")[2]
    secret = name in ("", "headers", "key_env") or (name == "base_url" and "@" in str(value))
    return None if table == "providers" and secret else _open(value)


def _unknown(key: str, origin: Origin, accepted: list[str]) -> ConfigError:
    import difflib

    near = difflib.get_close_matches(key.rpartition(".")[2], accepted, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"accepted are {', '.join(accepted)}"
    return ConfigError(f"unknown; {hint}", key=origin.variable or key, file=origin.file, line=origin.line)


def _merge_table(table: dict[str, Any], name: str, value: Any, source: Source, origins: dict[str, Origin]) -> None:
    """Merge entries key by key, so that a stronger source may override one key of a weaker one's entry."""
    entries = _checked(values.mapping, name, value, source.origin_of(name))
    for entry_name, entry in cast("Mapping[str, Any]", entries).items():
        path = f"{name}.{entry_name}"
        if isinstance(entry, str) and name == "routes":
            entry = {"model": entry}  # noqa: PLW2901 - the short form of a route
        checked = _checked(values.mapping, path, entry, source.origin_of(path))
        table[entry_name] = {**table.get(entry_name, {}), **checked}
        origins[path] = source.origin_of(path)
        for key in cast("Mapping[str, Any]", checked):
            origins[f"{path}.{key}"] = source.origin_of(f"{path}.{key}")
        origins.update((key, origin) for key, origin in source.origins.items() if key.startswith(f"{path}."))


def _entry(
    path: str, entry: Mapping[str, Any], keys: Mapping[str, Any], origins: Mapping[str, Origin]
) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, value in entry.items():
        origin = origins.get(f"{path}.{key}", Origin("argument"))
        if key not in keys:
            raise _unknown(f"{path}.{key}", origin, list(keys))
        checked[key] = _checked(keys[key], f"{path}.{key}", value, origin)
    return checked


def _provider(
    name: str, entry: Mapping[str, Any], base: ProviderSettings | None, origins: Mapping[str, Origin]
) -> ProviderSettings:
    path = f"providers.{name}"
    checked = _entry(path, entry, _PROVIDER_KEYS, origins)
    if base is not None:
        return replace(base, **checked)
    missing = [key for key in ("kind", "base_url") if key not in checked]
    if missing:
        raise config_error(f"needs {' and '.join(missing)}", path, origins)
    return ProviderSettings(name=name, **checked)


def _route(name: str, entry: Mapping[str, Any], origins: Mapping[str, Origin]) -> RouteSettings:
    return RouteSettings(name=name, **_entry(f"routes.{name}", entry, _ROUTE_KEYS, origins))


def _placed(origins: Mapping[str, Origin], build: Callable[[], Catalogue]) -> Catalogue:
    """`build()`, its ConfigError given the file and line of its key."""
    try:
        return build()
    except ConfigError as error:
        raise config_error(error.args[0], error.key or "", origins, error.value, whole=True) from None


def _keyed(env: Mapping[str, str]) -> str:
    return "openai" if env.get("OPENAI_API_KEY") and not any(map(env.get, _ANTHROPIC_KEYS)) else "anthropic"
