"""Which model a prompt file is written for, on which API version, and the options it sets, with their places."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from zlclient.errors import ConfigError
from zlclient.models import Catalogue, Model
from zlclient.prompts.offsets import LineIndex
from zlclient.prompts.parts import KeyPath, PromptSource, Span

if TYPE_CHECKING:
    from zlclient.prompts.yaml_nodes import YamlDocument

OPTIONS = {
    "temperature": "temperature",
    "topP": "top_p",
    "top_p": "top_p",
    "topK": "top_k",
    "top_k": "top_k",
    "maxOutputTokens": "max_tokens",
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "effort": "effort",
    "reasoning_effort": "effort",
    "reasoningEffort": "effort",
    "response_format": "response_format",
    "responseFormat": "response_format",
    "frequencyPenalty": "frequency_penalty",
    "frequency_penalty": "frequency_penalty",
    "presencePenalty": "presence_penalty",
    "presence_penalty": "presence_penalty",
}
_OPTION_TABLES: tuple[KeyPath, ...] = (
    (),
    ("config",),
    ("options",),
    ("parameters",),
    ("modelParameters",),
    ("model_parameters",),
    ("invocationParameters",),
    ("model", "options"),
    ("model", "options", "additionalProperties"),
    ("model", "parameters"),
    ("metadata", "zlclient"),
)
# Not azure_deployment: a deployment may bear any name, and Azure has retirement dates of its own.
_MODEL_PATHS: tuple[KeyPath, ...] = (
    ("model", "id"),
    ("model", "configuration", "model"),
    ("model", "configuration", "name"),
    ("modelName",),
    ("model",),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A model at a provider; `version` is the API version if one is pinned. `model.known` tells if it is catalogued."""

    provider: str
    model: Model
    version: str | None = None

    def takes_sampling(self, effort: str | None) -> bool:
        """Whether temperature and its kin are accepted on the pinned version, or else on any version there is."""
        versions = Catalogue.bundled().provider(self.provider).versions
        candidates = (self.version,) if self.version else versions
        return any(self.model.takes_sampling(version, effort) for version in candidates)


@dataclass(frozen=True, slots=True)
class Option:
    """A model option as written: its value, and the file's spans of key and value."""

    value: Any
    key: Span
    place: Span


@dataclass(frozen=True)
class ModelUse:
    """One model with the options set beside it. `span` is where its id stands, None for a target from settings."""

    name: str
    span: Span | None
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    target: Target | None = None
    is_override: bool = False


@dataclass(frozen=True, slots=True)
class Retired:
    """A model id that can no longer be called."""

    match: str
    retired: date
    renamed: str | None = None


@cache
def retired_models() -> tuple[Retired, ...]:
    """Ids that the catalogue no longer lists."""
    text = (files(__package__ or "zlclient.linting") / "data" / "retired.toml").read_text("utf-8")
    return tuple(Retired(**entry) for entry in tomllib.loads(text)["model"])


def find_retired(model_id: str) -> Retired | None:
    """The entry for an id that can no longer be called."""
    return next((entry for entry in retired_models() if fnmatchcase(model_id, entry.match)), None)


def bare_id(name: str) -> str:
    """The model id in `openai:chat:gpt-5`, `anthropic/claude-opus-5` or a plain id."""
    return name.rsplit("/", 1)[-1].rsplit(":", 1)[-1].strip()


def provider_of(model_id: str) -> str | None:
    """The provider whose ids look like `model_id`."""
    if model_id.startswith("claude"):
        return "anthropic"
    if model_id.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4", "text-davinci", "codex-")):
        return "openai"
    return None


def parse_target(text: str, on: date) -> Target | None:
    """A target from `claude-opus-5`, `anthropic:claude-sonnet-4-6@2023-06-01`, `auto` or `openai:legacy`.

    None where no provider has ids of that look.

    Raises:
        ConfigError: the provider is named and unknown.
    """
    name, _, version = text.strip().partition("@")
    provider, _, rest = name.rpartition(":")
    provider = provider.split(":", 1)[0].rsplit("/", 1)[-1]
    model_id = rest.rsplit("/", 1)[-1]
    catalogue = Catalogue.bundled()
    if provider and provider not in catalogue.providers:
        provider = ""
        if not provider_of(model_id):
            raise ConfigError(
                f"no such provider; known are {', '.join(sorted(catalogue.providers))}", key="target-model", value=text
            )
    provider = provider or provider_of(model_id) or ("anthropic" if model_id in ("auto", "legacy") else "")
    if not provider:
        return None
    resolved = catalogue.provider(provider).resolve(model_id, on)
    if resolved:
        model_id, pinned = resolved
        version = version or pinned or ""
    return Target(provider, catalogue.find(provider, model_id), version or None)


def find_uses(source: PromptSource, document: YamlDocument | None, on: date) -> Iterator[ModelUse]:
    """Every model named in a file with its options; one nameless use where only options are set."""
    if source.format == "python":
        yield from _python_uses(source, on)
        return
    data: Any = document.data if document else None
    if document is None or not isinstance(data, dict):
        return
    if source.format == "promptfoo":
        yield from _promptfoo_uses(document, on)
        return
    name, span = _model_name(document)
    options: dict[str, Option] = {}
    for table in _OPTION_TABLES:
        options.update(_options(document, table))
    route = _at(document, "metadata", "zlclient", "route")
    if isinstance(route, str):  # as where a template is sent
        name, span = route, document.values.get(("metadata", "zlclient", "route"))
    if name or options:
        yield _use(name, span, options, on)


def _use(name: str, span: Span | None, options: dict[str, Option], on: date) -> ModelUse:
    target: Target | None = None
    model_id = bare_id(name)
    provider = provider_of(model_id)
    if provider:
        target = Target(provider, Catalogue.bundled().find(provider, model_id))
    elif name in ("auto", "legacy"):
        target = parse_target(name, on)
    return ModelUse(name, span, options, target)


def _at(document: YamlDocument, *path: str | int) -> Any:
    found: Any = document.data
    for step in path:
        if isinstance(found, dict):
            found = cast("dict[Any, Any]", found).get(step)
        elif isinstance(found, list) and isinstance(step, int) and step < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[step]
        else:
            return None
    return found


def _model_name(document: YamlDocument) -> tuple[str, Span | None]:
    for path in _MODEL_PATHS:
        value = _at(document, *path)
        if isinstance(value, str) and value.strip() and "${" not in value and "{{" not in value:
            return value.strip(), document.values.get(path)
    return "", None


def _options(document: YamlDocument, table: KeyPath) -> dict[str, Option]:
    found: dict[str, Option] = {}
    values: Any = _at(document, *table)
    if not isinstance(values, dict):
        return found
    for key, value in cast("dict[Any, Any]", values).items():
        path = (*table, key)
        if key in OPTIONS and path in document.keys and path in document.values:
            found[OPTIONS[key]] = Option(value, document.keys[path], document.values[path])
    return found


def _promptfoo_uses(document: YamlDocument, on: date) -> Iterator[ModelUse]:
    for key in ("providers", "targets"):
        entries: Any = _at(document, key)
        for index, entry in enumerate(cast("list[Any]", entries) if isinstance(entries, list) else []):
            if isinstance(entry, str):
                yield _use(entry, document.values.get((key, index)), {}, on)
            elif isinstance(_at(document, key, index, "id"), str):
                options = _options(document, (key, index, "config"))
                yield _use(_at(document, key, index, "id"), document.values.get((key, index, "id")), options, on)


def _python_uses(source: PromptSource, on: date) -> Iterator[ModelUse]:
    if "model=" not in source.text.replace(" ", ""):
        return
    try:
        tree = ast.parse(source.text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = LineIndex(source.text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        named = {keyword.arg: keyword for keyword in node.keywords if keyword.arg}
        model = named.get("model")
        if model is None or not isinstance(model.value, ast.Constant) or not isinstance(model.value.value, str):
            continue
        options = {
            OPTIONS[name]: Option(
                keyword.value.value, _span(source.text, lines, keyword), _span(source.text, lines, keyword.value)
            )
            for name, keyword in named.items()
            if name in OPTIONS and isinstance(keyword.value, ast.Constant)
        }
        yield _use(model.value.value, _span(source.text, lines, model.value), options, on)


def _span(text: str, lines: LineIndex, node: ast.expr | ast.keyword) -> Span:
    return Span(
        _offset(text, lines, node.lineno, node.col_offset),
        _offset(text, lines, node.end_lineno or node.lineno, node.end_col_offset or 0),
    )


def _offset(text: str, lines: LineIndex, line: int, column: int) -> int:
    # ast counts UTF-8 bytes.
    start = lines.offset(line)
    raw = text[start : start + column].encode("utf-8", "surrogatepass")[:column]
    return start + len(raw.decode("utf-8", "ignore"))
