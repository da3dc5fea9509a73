"""YAML read into data together with the span of every key and value; bounded, never raising on bad input."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .parts import KeyPath, Problem, Span

# libyaml's composer recurses in C without a check: far fewer levels than this overflow its stack in a thread.
MAX_DEPTH = 200
_OPENERS = re.compile(r"[\[{]|[-?:][ \t\n]")


@dataclass
class YamlDocument:
    """`data` is None where `problem` is set. `scalars` lists every string value with its style and path."""

    data: Any = None
    keys: dict[KeyPath, Span] = field(default_factory=dict[KeyPath, Span])
    values: dict[KeyPath, Span] = field(default_factory=dict[KeyPath, Span])
    scalars: list[tuple[KeyPath, str, str | None, Span]] = field(
        default_factory=list[tuple[KeyPath, str, str | None, Span]]
    )
    duplicates: list[tuple[str, Span]] = field(default_factory=list[tuple[str, Span]])
    problem: Problem | None = None


def read_yaml(text: str, base: int = 0) -> YamlDocument:
    """Read one YAML document with the safe loader; `base` is added to every offset.

    Uses libyaml where PyYAML has it: about ten times faster, same marks.
    """
    import yaml

    loader_class = _loader_class()
    document = YamlDocument()
    try:
        if _too_deep(text, loader_class):
            document.problem = Problem("yaml-too-deep", f"nested deeper than {MAX_DEPTH} levels", base, base)
            return document
        loader = loader_class(text)
        try:
            node = loader.get_single_node()
            if node is not None:
                document.data = loader.construct_document(node)
                _walk(node, (), base, document, set())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        at = base + (error.problem_mark.index if error.problem_mark else 0)
        document.problem = Problem("yaml-invalid", error.problem or error.context or "invalid YAML", at, at)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError, AttributeError) as error:
        # Constructors of dates, numbers and sets raise these on malformed scalars.
        at = base + min(_position(error), len(text))
        document.problem = Problem("yaml-invalid", _first_line(error), at, at)
    if document.problem:
        document.data = None
    return document


@cache
def _loader_class() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):
        def flatten_mapping(self, node: Any) -> None:
            # Merge keys copy the merged pairs; without this, nested merges of repeated aliases grow exponentially.
            super().flatten_mapping(node)  # pyright: ignore[reportUnknownMemberType]
            node.value = list({(id(key), id(value)): (key, value) for key, value in node.value}.values())

    return Loader


def _position(error: BaseException) -> int:
    position = getattr(error, "position", 0)
    return position if isinstance(position, int) else 0


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _too_deep(text: str, loader_class: Any) -> bool:
    if sum(1 for _ in _OPENERS.finditer(text)) <= MAX_DEPTH:
        return False
    import yaml

    depth = 0
    parse: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    events: Any = parse(text, Loader=loader_class)
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return False


def _walk(node: Any, path: KeyPath, base: int, document: YamlDocument, seen: set[int]) -> None:
    # An alias gives the same node again: it is entered once, or a few lines of aliases would grow without bound.
    span = Span(base + node.start_mark.index, base + node.end_mark.index)
    document.values.setdefault(path, span)
    if node.id == "scalar":
        if node.tag == "tag:yaml.org,2002:str":
            document.scalars.append((path, node.value, node.style, span))
        return
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), base, document, seen)
        return
    names: set[str] = set()
    for key, value in node.value:
        if key.id != "scalar":
            continue
        key_span = Span(base + key.start_mark.index, base + key.end_mark.index)
        if key.value in names:
            document.duplicates.append((key.value, key_span))
        names.add(key.value)
        document.keys.setdefault((*path, key.value), key_span)
        _walk(value, (*path, key.value), base, document, seen)
