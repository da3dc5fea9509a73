"""Jinja2 for templates that nobody vouches for: sandboxed, with bounded output, steps and memory, and marked values.

Values are plain data, so the only calls a template can make are to the few functions, filters and methods below.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound, Undefined, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from .errors import RenderLimitExceeded
from .jinja import scan
from .jinja_marks import CONCAT, EMIT, TICK, mark_outputs
from .roles import find_role_lines
from .segments import Limits, Marks, current_marks

UndefinedPolicy = Literal["strict", "empty"]

_FILTERS = """
    abs batch capitalize count d default dictsort e escape first float forceescape groupby int items last length list
    lower map max min reject rejectattr reverse round select selectattr slice sort string title trim truncate unique
    upper urlencode wordcount wordwrap
"""
_TEXT_METHODS = """
    capitalize count endswith find index isalnum isalpha isdigit islower isnumeric isspace isupper lower lstrip
    partition removeprefix removesuffix rfind rpartition rsplit rstrip split splitlines startswith strip title upper
"""
_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS.split()),
    dict: frozenset(["get", "items", "keys", "values"]),
    list: frozenset(["count", "index"]),
    tuple: frozenset(["count", "index"]),
}
_LONGEST_ARGUMENT = 10_000
_WIDEST_INDENT = 64
_LARGEST_INTEGER_BITS = 512
_LARGEST_FILE = 1_000_000


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one template root; thread-safe, templates are compiled once."""

    intercepted_binops = frozenset(["*", "**", "+", "%", "//", "/", "-"])

    def __init__(self, root: Path | None, *, undefined: UndefinedPolicy, limits: Limits) -> None:
        super().__init__(
            undefined=StrictUndefined if undefined == "strict" else Undefined,
            loader=_RootLoader(root),
            extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
            keep_trailing_newline=True,
            autoescape=False,
            cache_size=0,
        )
        self.limits = limits
        known: dict[str, Any] = self.filters
        self.filters = {name: _bounded(known[name]) for name in _FILTERS.split()}
        self.filters |= {
            "join": _join,
            "replace": _replace,
            "indent": _indent,
            "tojson": _tojson,
            "sum": _sum,
            "safe": str,
        }
        self.filters |= {EMIT: _emit, TICK: _tick, CONCAT: _concat}
        self.globals: dict[str, Any] = {"range": self._range, "dict": dict, "namespace": Namespace}

    def prepare(self, text: str, name: str | None, marks: Marks, *, role_lines: Iterable[Any] | None = None) -> Any:
        """A jinja2 template of `text`, with role lines and values marked in `marks`.

        Raises:
            TemplateSyntaxError: the template is wrong.
        """
        tags = scan(text)[0]
        lines = find_role_lines(text, tags) if role_lines is None else role_lines
        tree = self.parse(marks.mark_roles(text, lines), name)
        mark_outputs(tree, text, tags, marks)
        return self.template_class.from_code(self, self.compile(tree, name, name), self.make_globals(None))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A dict's key wins over a method of dict that templates cannot call anyway."""
        if isinstance(obj, dict) and attribute in obj and attribute not in _METHODS[dict]:
            return obj[attribute]  # pyright: ignore[reportUnknownVariableType]
        return super().getattr(obj, attribute)

    def wrap_str_format(self, value: Any) -> None:
        """No str.format: a width in a field makes any length, past every other bound."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Only the listed methods of plain data."""
        for kind, allowed in _METHODS.items():
            if isinstance(obj, kind):
                return attr in allowed
        return not isinstance(obj, (int, float, bytes)) and super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """An operator, refused where its result would be huge."""
        marks = current_marks()
        if operator == "%" and isinstance(left, str):
            raise SecurityError("the % of strings is not available; write the value with {{ }}")
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                    marks.grow(len(many) * max(times, 0))  # pyright: ignore[reportUnknownArgumentType]
        if operator == "+" and isinstance(left, (str, list, tuple)):
            marks.grow(len(left) + len(right) if isinstance(right, (str, list, tuple)) else 0)  # pyright: ignore[reportUnknownArgumentType]
        if operator in ("*", "**", "+") and isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * (abs(right) if operator == "**" else 1) + right.bit_length()
            if bits > _LARGEST_INTEGER_BITS:
                raise RenderLimitExceeded("a number grows too large")
        return super().call_binop(context, operator, left, right)

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        if len(numbers) > self.limits.range:
            raise RenderLimitExceeded(f"range gives more than {self.limits.range} numbers")
        return numbers


class _RootLoader(BaseLoader):
    """Templates named by `include`, `import` and `extends`: files inside the root only, links followed and checked."""

    def __init__(self, root: Path | None) -> None:
        self._root = root

    def load(self, environment: Any, name: str, globals: Any = None) -> Any:  # noqa: A002, ARG002 - jinja2's names
        path = inside_root(self._root, name)
        if path is None or path.stat().st_size > _LARGEST_FILE:
            raise TemplateNotFound(name, f"{name!r} is no template file inside the root folder")
        marks = current_marks()
        marks.count_load()
        return environment.prepare(path.read_text("utf-8"), name, marks)


def inside_root(root: Path | None, name: str) -> Path | None:
    """The file `name` of the root, or None where there is none or it would leave the root."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if root is None or not parts or ".." in parts or "\0" in name or PurePosixPath(name).is_absolute():
        return None
    base = root.resolve()
    path = base.joinpath(*parts).resolve()
    return path if path.is_relative_to(base) and path.is_file() else None


def _bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with bounded arguments and a bounded result."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for argument in (*args[1:], *kwargs.values()):
            too_wide = isinstance(argument, int) and abs(argument) > _LONGEST_ARGUMENT
            if too_wide and function.__name__ != "do_truncate":
                raise RenderLimitExceeded(f"an argument of a filter is larger than {_LONGEST_ARGUMENT}")
        if function.__name__ == "do_wordwrap" and any(
            len(a) > 8 for a in (*args[1:], *kwargs.values()) if isinstance(a, str)
        ):
            raise RenderLimitExceeded("the wrapping string of wordwrap is longer than 8 characters")
        result = function(*args, **kwargs)
        if isinstance(result, str):
            current_marks().grow(len(result))
        return result

    return call


def _join(items: Iterable[Any], separator: str = "", attribute: Any = None) -> str:
    texts = [str(item if attribute is None else _item(item, attribute)) for item in items]
    current_marks().grow(sum(map(len, texts)) + len(separator) * max(len(texts) - 1, 0))
    return separator.join(texts)


def _item(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping):
        return value.get(key, "")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return value[key] if isinstance(value, (list, tuple)) and isinstance(key, int) else ""  # pyright: ignore[reportUnknownVariableType]


def _replace(text: Any, old: str, new: str, count: int = -1) -> str:
    text = str(text)
    found = text.count(old) if count < 0 else min(text.count(old), count)
    current_marks().grow(len(text) + found * (len(new) - len(old)))
    return text.replace(old, new, count)


def _indent(text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    margin = " " * width if isinstance(width, int) and width <= _WIDEST_INDENT else width
    if isinstance(margin, int) or len(margin) > _WIDEST_INDENT:
        raise RenderLimitExceeded(f"indent is wider than {_WIDEST_INDENT}")
    lines = str(text).split("\n")
    current_marks().grow(len(str(text)) + len(lines) * len(margin))
    done = [margin + line if (index or first) and (line or blank) else line for index, line in enumerate(lines)]
    return "\n".join(done)


def _tojson(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=min(indent, 8) if indent else None)
    current_marks().grow(len(text))
    return text


def _sum(items: Iterable[Any], attribute: Any = None, start: float = 0) -> float:
    total = start
    for item in items:
        number = item if attribute is None else _item(item, attribute)
        if not isinstance(number, (int, float)):
            raise SecurityError("sum adds numbers only")
        total += number
    return total


# These take the context only so that Jinja2 does not evaluate them while compiling.
@pass_context
def _emit(context: Context, value: Any, site: int) -> str:  # noqa: ARG001
    return current_marks().interp(value, site)


@pass_context
def _tick(context: Context, value: Any) -> str:  # noqa: ARG001
    current_marks().tick()
    return ""


@pass_context
def _concat(context: Context, items: list[Any]) -> str:  # noqa: ARG001
    texts = [str(item) for item in items]
    current_marks().grow(sum(map(len, texts)))
    return "".join(texts)
