"""Models as data: what each accepts on each API version, read from the TOML files in `data/`.

    catalogue = Catalogue.bundled()
    model = catalogue.find("anthropic", "claude-sonnet-4-6")
    model.takes_sampling("2023-06-01")        # True
    model.takes_sampling("2026-10-21")        # False

An id the catalogue does not list gets its provider's pattern entry (`known` is then False), because capability tables
lag releases: an unknown model is treated as rejecting what new models reject.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from ..errors import ConfigError

Generation = Literal["legacy", "auto"]
Lifecycle = Literal["active", "deprecated", "retired"]

BUNDLED = ("anthropic", "openai", "compatible", "local")


@dataclass(frozen=True, slots=True)
class Model:
    """What one model accepts. `sampling` is "always", "never", "effort-none", or the API versions that take it."""

    id: str
    provider: str
    known: bool = True
    line: str = ""
    generation: Generation = "auto"
    snapshots: tuple[str, ...] = ()
    context: int = 128_000
    max_output: int | None = None
    sampling: tuple[str, ...] | Literal["always", "never", "effort-none"] = "never"
    temperature_with_top_p: bool = False
    prefill: bool = False
    effort: tuple[str, ...] = ()
    default_effort: str = ""
    structured_output: bool = True
    tools: bool = True
    deprecated: bool = False
    retires: date | None = None

    def takes_sampling(self, version: str, effort: str | None = None) -> bool:
        """Whether temperature, top_p and top_k are accepted on API `version` at reasoning `effort` (None: default)."""
        if self.sampling == "effort-none":
            return (effort or self.default_effort) == "none"
        if isinstance(self.sampling, str):
            return self.sampling == "always"
        return version in self.sampling

    def sampling_version(self, versions: tuple[str, ...]) -> str | None:
        """The newest of `versions` on which sampling is accepted, or None; only where the version decides."""
        if isinstance(self.sampling, str):
            return None
        return next((version for version in versions if version in self.sampling), None)

    def lifecycle(self, on: date) -> Lifecycle:
        """The stage on day `on`. A model is callable through its retirement date."""
        if self.retires is not None and on > self.retires:
            return "retired"
        return "deprecated" if self.deprecated or self.retires is not None else "active"


@dataclass(frozen=True, slots=True)
class Alias:
    """What `auto` or `legacy` means at one provider: a pinned model, or the newest active one of a line."""

    model: str | None = None
    line: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """One provider's part of the catalogue. `versions` are its API versions, newest first."""

    id: str
    name: str
    versions: tuple[str, ...]
    default_effort: str
    aliases: Mapping[str, Alias]
    models: tuple[Model, ...]
    patterns: tuple[tuple[str, Model], ...]
    by_id: Mapping[str, Model] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        index = {name: model for model in self.models for name in (model.id, *model.snapshots)}
        object.__setattr__(self, "by_id", index)

    def find(self, model_id: str) -> Model:
        """The entry for `model_id` (a dated snapshot finds its model), or the first pattern that matches."""
        model = self.by_id.get(model_id)
        if model is not None:
            return model if model.id == model_id else replace(model, id=model_id)
        base = next(base for pattern, base in self.patterns if fnmatchcase(model_id, pattern))
        return replace(base, id=model_id)

    def resolve(self, alias: str, on: date) -> tuple[str, str | None] | None:
        """The (model id, pinned API version or None) that `alias` means on day `on`; None if there is no such alias."""
        meant = self.aliases.get(alias)
        if meant is None:
            return None
        if meant.model is not None:
            return meant.model, meant.version
        line = [model for model in self.models if model.line == meant.line]
        newest = next((model for model in line if model.lifecycle(on) == "active"), line[0])
        return newest.id, meant.version


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All providers' models. Immutable; `with_provider` gives a copy with a user's own provider added."""

    providers: Mapping[str, ProviderModels]

    @staticmethod
    def bundled() -> Catalogue:
        """The catalogue shipped with this release (one shared, immutable object)."""
        return _bundled()

    def find(self, provider: str, model_id: str) -> Model:
        """What `model_id` accepts at `provider`.

        Raises:
            ConfigError: the catalogue has no such provider.
        """
        return self.provider(provider).find(model_id)

    def provider(self, provider: str) -> ProviderModels:
        """One provider's models; raises ConfigError naming the known ones."""
        known = self.providers.get(provider)
        if known is None:
            raise ConfigError(f"no such provider; known are {', '.join(sorted(self.providers))}", key=provider)
        return known

    def with_provider(self, name: str, accepts: Mapping[str, Any], *, base: str = "compatible") -> Catalogue:
        """A copy with provider `name`: `base`'s entries with every field in `accepts` overridden.

        Raises:
            ConfigError: a key of `accepts` is no field of a model, or a value has the wrong type.
        """
        origin = self.provider(base)
        checked = _model_fields(accepts, where=f"providers.{name}.accepts")
        models = tuple(replace(model, provider=name, **checked) for model in origin.models)
        patterns = tuple((match, replace(model, provider=name, **checked)) for match, model in origin.patterns)
        return self._with(replace(origin, id=name, models=models, patterns=patterns))

    def with_model(self, provider: str, model_id: str, accepts: Mapping[str, Any]) -> Catalogue:
        """A copy in which `model_id` is known, starting from what the catalogue says of it; see `with_provider`."""
        origin = self.provider(provider)
        checked = _model_fields(accepts, where=f"models.{provider}:{model_id}")
        model = replace(origin.find(model_id), known=True, **checked)
        others = tuple(other for other in origin.models if other.id != model_id)
        return self._with(replace(origin, models=(model, *others)))

    def _with(self, provider: ProviderModels) -> Catalogue:
        return Catalogue({**self.providers, provider.id: provider})


_TYPES: dict[str, tuple[type, ...]] = {
    "line": (str,),
    "generation": (str,),
    "snapshots": (list,),
    "context": (int,),
    "max_output": (int,),
    "sampling": (list, str),
    "temperature_with_top_p": (bool,),
    "prefill": (bool,),
    "effort": (list,),
    "default_effort": (str,),
    "structured_output": (bool,),
    "tools": (bool,),
    "deprecated": (bool,),
    "retires": (date,),
}
_WORDS: dict[str, tuple[str, ...]] = {
    "generation": ("legacy", "auto"),
    "sampling": ("always", "never", "effort-none"),
}


def _model_fields(entry: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """`entry` checked key by key against the fields of Model; lists become tuples."""
    checked: dict[str, Any] = {}
    for key, value in entry.items():
        kinds = _TYPES.get(key)
        if kinds is None:
            raise ConfigError(f"unknown; accepted are {', '.join(_TYPES)}", key=f"{where}.{key}")
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ConfigError(f"must be {names}", key=f"{where}.{key}", value=value)
        words = _WORDS.get(key)
        if words and isinstance(value, str) and value not in words:
            raise ConfigError(f"must be one of {', '.join(words)}", key=f"{where}.{key}", value=value)
        checked[key] = tuple(cast("list[Any]", value)) if isinstance(value, list) else value
    return checked


def parse_provider(text: str, *, file: str) -> ProviderModels:
    """One provider's models from TOML; raises ConfigError naming `file` and the key."""
    try:
        data = tomllib.loads(text)
        head, defaults = data["provider"], data["defaults"]
        common = {"default_effort": head["default_effort"], **_model_fields(defaults, where="defaults")}
        models: list[Model] = []
        for entry in data.get("model", []):
            own = {key: value for key, value in entry.items() if key != "id"}
            own = _model_fields(own, where=f"model {entry['id']}")
            models.append(Model(id=entry["id"], provider=head["id"], **{**common, **own}))
        patterns: list[tuple[str, Model]] = []
        for entry in data["pattern"]:
            own = {key: value for key, value in entry.items() if key != "match"}
            own = _model_fields(own, where=f"pattern {entry['match']}")
            patterns.append((entry["match"], Model(id="", provider=head["id"], known=False, **{**common, **own})))
        if not patterns or patterns[-1][0] != "*":
            raise ConfigError('the last pattern must be "*"', key="pattern")
        return ProviderModels(
            id=head["id"],
            name=head["name"],
            versions=tuple(head["versions"]),
            default_effort=head["default_effort"],
            aliases={name: Alias(**meaning) for name, meaning in data["aliases"].items()},
            models=tuple(models),
            patterns=tuple(patterns),
        )
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(error), file=file) from None
    except KeyError as error:
        raise ConfigError("missing", key=str(error.args[0]), file=file) from None
    except ConfigError as error:
        raise ConfigError(error.args[0], file=file) from None


@cache
def _bundled() -> Catalogue:
    folder = files(__package__ or "zlclient.models") / "data"
    parsed = (
        parse_provider((folder / f"{name}.toml").read_text("utf-8"), file=f"models/data/{name}.toml")
        for name in BUNDLED
    )
    return Catalogue({provider.id: provider for provider in parsed})
