"""Clean text before it reaches a model: what breaks transport, what hides, and nothing that carries meaning.

    >>> cleaned = sanitize("ig\\u200bnore \\u0645\\u06cc\\u200c\\u0631\\u0648\\u0645")
    >>> cleaned.text
    'ignore می\\u200cروم'
    >>> [(change.offset, change.code, change.action) for change in cleaned.changes]
    [(2, 'U+200B', 'drop')]

The rules are data (`sanitising/code_points.toml`). Modes: `standard`; `strict`, which also drops what could carry
hidden bits in honest text (a variation selector per ideograph, a non-joiner per Arabic letter, private use; emoji
keep their pictures); `minimal`, only what breaks transport (NUL, lone surrogates, noncharacters); `naive`, the recipe
found in articles, for comparison; `off`. Except with `off`, the result encodes to UTF-8 and cleaning it again gives
the same object.

Code keeps its bytes, controls aside: inside Markdown fences no white space is touched, but code points are judged as
anywhere, since source code is where hidden direction changes do most harm. For data that is not prose (tool schemas,
tool inputs, base64) there is `sanitize_data`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from zlclient.errors import InputError

from .sanitising import code_points, passes
from .sanitising.edits import Edit, apply_edits
from .sanitising.passes import MODES, Mode

__all__ = [
    "MODES",
    "Change",
    "Mode",
    "Sanitized",
    "apply_changes",
    "find_hidden",
    "sanitize",
    "sanitize_data",
]


class Change(NamedTuple):
    """One change: `length` characters of the input at `offset` became `replacement`.

    `code` is the first of them ("U+200B"), `action` "drop", "replace", "join" (a surrogate pair) or "trim" (white
    space), `rule` a name from the table that `reason` explains.
    """

    offset: int
    code: str
    action: str
    length: int
    replacement: str
    rule: str

    @property
    def reason(self) -> str:
        """Why, for people."""
        return code_points.rules()[self.rule].reason

    @property
    def hidden(self) -> bool:
        """Whether the change closed a channel that carries text a reader does not see."""
        return code_points.rules()[self.rule].hidden


@dataclass(frozen=True, slots=True)
class Sanitized:
    """A cleaned text. `str()` of it is the text; `source` is what came in, the same object where nothing changed.

    The changes are worked out when they are first asked for: whoever only wants the text does not pay for them.
    """

    text: str
    source: str = field(repr=False)
    mode: Mode = "standard"
    _edits: tuple[Edit, ...] | None = field(default=None, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def changed(self) -> bool:
        """Whether the text differs from the source."""
        return self.text is not self.source

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every change, in the order of the source. Applied to the source they give the text."""
        return tuple(_change(self.source, edit) for edit in self._recorded())

    def summary(self) -> dict[str, int]:
        """How many changes each rule made, without building them."""
        return dict(Counter(edit.rule for edit in self._recorded()))

    @property
    def page_marks(self) -> tuple[int, ...]:
        """Offsets into `text` at which a new page begins: one for each form feed of the source."""
        marks: list[int] = []
        shift = 0
        for edit in self._recorded():
            shift += len(edit.new) - (edit.end - edit.start)
            if self.source[edit.start] == "\f":
                marks.append(edit.end + shift)
        return tuple(marks)

    def _recorded(self) -> tuple[Edit, ...]:
        if self.text is self.source:
            return ()
        if self._edits is None:
            object.__setattr__(self, "_edits", tuple(passes.record(self.source, self.mode)))
        return cast("tuple[Edit, ...]", self._edits)


def sanitize(text: str, mode: Mode = "standard") -> Sanitized:
    """Clean `text`; a clean text comes back as the same object.

    Raises:
        InputError: `text` is no string, or `mode` is none of the five.
    """
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"expected a string, got {type(text).__name__}", where="text")
    if mode == "standard":
        return Sanitized(passes.clean(text, "standard"), text, "standard")
    if mode not in MODES:
        raise InputError(f"unknown mode {mode!r}; the modes are {', '.join(MODES)}", where="mode")
    if mode in ("strict", "minimal"):
        return Sanitized(passes.clean(text, mode), text, mode)
    return Sanitized(apply_edits(text, passes.record(text, mode)), text, mode)


def find_hidden(text: str, mode: Mode = "standard") -> tuple[Change, ...]:
    """The changes of `sanitize` that close a hidden channel, for a linter: invisible and reordering characters only.

    Raises:
        InputError: as `sanitize`.
    """
    return tuple(change for change in sanitize(text, mode).changes if change.hidden)


def apply_changes(text: str, changes: tuple[Change, ...]) -> str:
    """`text` with `changes` made to it, as a record of them can be checked or replayed."""
    return apply_edits(text, [Edit(c.offset, c.offset + c.length, c.replacement, c.rule) for c in changes])


def sanitize_data(
    value: Any, mode: Mode = "minimal", *, on_change: Callable[[str, Sanitized], None] | None = None
) -> Any:
    """Clean every string of a JSON-like value, keys included; what is clean comes back as the same object.

    `on_change` is called with the path ("$.rows[2].name") and the result of each string that changed.

    Raises:
        InputError: two keys of an object become the same, the nesting is too deep, or `mode` is unknown.
    """
    try:
        return _sanitize_value(value, mode, "$", on_change or _ignore)
    except RecursionError:
        raise InputError("nested too deeply to clean", where="value") from None


def _ignore(path: str, cleaned: Sanitized) -> None:
    del path, cleaned


def _sanitize_value(value: Any, mode: Mode, path: str, report: Callable[[str, Sanitized], None]) -> Any:
    if isinstance(value, str):
        cleaned = sanitize(value, mode)
        if cleaned.changed:
            report(path, cleaned)
        return cleaned.text
    if isinstance(value, dict):
        return _sanitize_object(cast("dict[Any, Any]", value), mode, path, report)
    if isinstance(value, (list, tuple)):
        items = cast("list[Any] | tuple[Any, ...]", value)
        clean = [_sanitize_value(item, mode, f"{path}[{place}]", report) for place, item in enumerate(items)]
        if all(new is old for new, old in zip(clean, items, strict=True)):
            return items
        return clean if isinstance(items, list) else tuple(clean)
    return value


def _sanitize_object(
    value: dict[Any, Any], mode: Mode, path: str, report: Callable[[str, Sanitized], None]
) -> dict[Any, Any]:
    clean: dict[Any, Any] = {}
    same = True
    for key, item in value.items():
        new_key = _sanitize_value(key, mode, f"{path} key", report) if isinstance(key, str) else key
        new_item = _sanitize_value(item, mode, f"{path}.{new_key}", report)
        if new_key in clean:
            raise InputError("two keys of an object become the same when cleaned", where=path)
        clean[new_key] = new_item
        same = same and new_key is key and new_item is item
    return value if same else clean


_ACTIONS = {"surrogate-pair": "join", "trailing-blanks": "trim", "blank-lines": "trim"}


def _change(source: str, edit: Edit) -> Change:
    action = _ACTIONS.get(edit.rule) or ("replace" if edit.new else "drop")
    return Change(edit.start, f"U+{ord(source[edit.start]):04X}", action, edit.end - edit.start, edit.new, edit.rule)
