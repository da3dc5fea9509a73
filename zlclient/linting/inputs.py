"""The inputs a prompt file declares, with their places, whatever the format calls them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from zlclient.prompts.parts import KeyPath, PromptSource, Span

if TYPE_CHECKING:
    from zlclient.prompts.yaml_nodes import YamlDocument


class Input(NamedTuple):
    """A declared input: `span` is its name in the file, `spec` what is said of it ({} if nothing)."""

    name: str
    span: Span
    spec: Mapping[str, Any]
    path: KeyPath

    @property
    def trust(self) -> str | None:
        """ "trusted" or "untrusted" where declared."""
        trust = self.spec.get("trust")
        return trust if isinstance(trust, str) else None


def declared_inputs(source: PromptSource, document: YamlDocument | None) -> list[Input]:
    """The declared inputs in the order of the file, duplicates included."""
    content: Any = document.data if document else None
    if document is None or not isinstance(content, dict):
        return []
    data = cast("dict[str, Any]", content)
    found: list[Input] = []
    if source.format == "dotprompt":
        schema: Any = _at_table(data, "input", "schema")
        path: KeyPath = ("input", "schema")
        if _at_table(data, "input", "schema", "properties"):
            # JSON Schema instead of Picoschema.
            path, schema = (*path, "properties"), _at_table(data, "input", "schema", "properties")
        found += _mapped(document, path, schema)
        found += _mapped(document, ("input", "default"), _at_table(data, "input", "default"))
    elif source.format in ("prompty", "jinja", "markdown", "text"):
        found += _listed_or_mapped(document, ("inputs",), data.get("inputs"))
        # The first .prompty format also declares an input by giving a sample of it.
        known = {item.name for item in found}
        found += [item for item in _mapped(document, ("sample",), data.get("sample")) if item.name not in known]
    for key in ("input_variables", "inputVariables"):
        found += _listed_or_mapped(document, (key,), data.get(key))
    return found


def _at_table(data: Any, *path: str) -> Any:
    for step in path:
        data = cast("dict[str, Any]", data).get(step) if isinstance(data, dict) else None
    return data


def _listed_or_mapped(document: YamlDocument, path: KeyPath, value: Any) -> list[Input]:
    if isinstance(value, dict):
        return list(_mapped(document, path, value))
    found: list[Input] = []
    for index, item in enumerate(cast("list[Any]", value) if isinstance(value, list) else []):
        at = (*path, index)
        if isinstance(item, str) and at in document.values:
            found.append(Input(item, document.values[at], {}, at))
        elif isinstance(item, dict):
            spec = cast("dict[str, Any]", item)
            name = spec.get("name")
            if isinstance(name, str) and (*at, "name") in document.values:
                found.append(Input(name, document.values[(*at, "name")], spec, at))
    return found


def _mapped(document: YamlDocument, path: KeyPath, value: Any) -> Iterator[Input]:
    if not isinstance(value, dict):
        return
    for key, spec in cast("dict[Any, Any]", value).items():
        at = (*path, key)
        if not isinstance(key, str) or at not in document.keys:
            continue
        # Picoschema: `name?` is optional, `name(array)` and `name(object, note)` give a type.
        name = key.split("(", 1)[0].rstrip("?").strip()
        if name and name != "*":
            yield Input(name, document.keys[at], cast("dict[str, Any]", spec) if isinstance(spec, dict) else {}, at)
