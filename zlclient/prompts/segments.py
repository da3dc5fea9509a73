"""Rendered text as segments: what the template says, and what each value put in. The base of roles and fences."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .errors import RenderLimitExceeded
from .roles import RoleLine

if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(frozen=True)
class Limits:
    """Bounds of one rendering: characters of output, loop and macro steps, the longest `range`."""

    output: int = 2_000_000
    steps: int = 100_000
    range: int = 10_000


@dataclass(frozen=True)
class Fence:
    """What the template itself put around a value.

    `tag`: an element, `name` its tag; `code`: a fence of backticks or tildes; `quote`: three quotes;
    `attribute`: an attribute of a tag; `json`: the tojson filter; `none`: nothing.
    """

    kind: Literal["tag", "code", "quote", "attribute", "json", "none"]
    name: str = ""
    is_block: bool = False
    """Whether the value stands alone on its line."""


@dataclass(frozen=True)
class Site:
    """A place where a template writes a value: the inputs it comes from, first one first, and its fence."""

    sources: tuple[str, ...]
    fence: Fence


@dataclass(frozen=True)
class Segment:
    """`literal`: the template's own text, role lines as `role`; `interp`: a value from `source`."""

    kind: Literal["literal", "interp", "role"]
    text: str
    source: str | None = None
    site: Site | None = None
    is_plain: bool = False
    """A number or truth value, which cannot carry an instruction."""
    role: RoleLine | None = None


# Private-use characters and digits: no filter that changes case, trims or escapes alters them.
_ROLE, _OPEN, _NEXT, _TEXT, _CLOSE, _END = "\ue010", "\ue011", "\ue012", "\ue013", "\ue014", "\ue015"


_MOST_LOADS = 100


@dataclass
class Marks:
    """Marks of one rendering, guarded by a random nonce that no value can foresee."""

    limits: Limits
    sites: list[Site] = field(default_factory=list[Site])
    roles: list[tuple[RoleLine, str]] = field(default_factory=list[tuple[RoleLine, str]])
    nonce: str = field(default_factory=lambda: str(secrets.randbelow(10**24)).zfill(24))
    steps: int = 0
    size: int = 0
    loads: int = 0

    def fresh(self) -> Marks:
        """The same marks for another rendering, nothing counted yet."""
        return Marks(self.limits, list(self.sites), list(self.roles), self.nonce)

    def count_load(self) -> None:
        """Count one included template.

        Raises:
            RenderLimitExceeded: there were too many, as when a template includes itself.
        """
        self.loads += 1
        if self.loads > _MOST_LOADS:
            raise RenderLimitExceeded(f"rendering includes more than {_MOST_LOADS} templates")

    def tick(self) -> None:
        """Count one step of a loop or macro.

        Raises:
            RenderLimitExceeded: there were too many.
        """
        self.steps += 1
        if self.steps > self.limits.steps:
            raise RenderLimitExceeded(f"rendering takes more than {self.limits.steps} steps")

    def grow(self, size: int) -> None:
        """Refuse a text of `size` characters over the limit, before it is made."""
        if size > self.limits.output:
            raise RenderLimitExceeded(f"rendering gives more than {self.limits.output} characters")

    def add(self, size: int) -> None:
        """Count `size` characters of output.

        Raises:
            RenderLimitExceeded: there were too many.
        """
        self.size += size
        self.grow(self.size)

    def add_site(self, site: Site) -> int:
        """The number of a new site."""
        self.sites.append(site)
        return len(self.sites) - 1

    def interp(self, value: object, site: int) -> str:
        """`value` between marks that say where it was written."""
        text = self.unmark(str(value))
        self.add(len(text))
        plain = int(isinstance(value, (bool, int, float)) or value is None)
        return f"{_OPEN}{self.nonce}{_NEXT}{site}{_NEXT}{plain}{_TEXT}{text}{_CLOSE}{self.nonce}{_END}"

    def mark_roles(self, text: str, lines: Iterable[RoleLine]) -> str:
        """`text` with its role lines replaced by marks, line breaks kept so that line numbers stay."""
        done: list[str] = []
        at = 0
        for line in lines:
            whole = text[line.start : line.body]
            kept = whole[len(whole.rstrip("\r\n")) :]
            done += [text[at : line.start], self.role_mark(line, whole), kept]
            at = line.body
        return "".join(done) + text[at:]

    def role_mark(self, line: RoleLine, whole: str = "") -> str:
        """The mark that begins a message."""
        self.roles.append((line, whole))
        return f"{_ROLE}{self.nonce}{_NEXT}{len(self.roles) - 1}{_END}"

    def unmark(self, text: str) -> str:
        """`text` without this rendering's value marks.

        Raises:
            RenderLimitExceeded: it holds a role line, which a macro or set block cannot carry.
        """
        if self.nonce not in text:
            return text
        text = re.sub(f"{_OPEN}{self.nonce}{_NEXT}\\d+{_NEXT}\\d{_TEXT}|{_CLOSE}{self.nonce}{_END}", "", text)
        if f"{_ROLE}{self.nonce}" in text:
            raise RenderLimitExceeded("a role line inside a macro or a set block cannot open a message")
        return text

    def segments(self, text: str) -> list[Segment]:
        """The marked `text` as segments; neighbouring literals are one."""
        pattern = re.compile(
            f"{_ROLE}{self.nonce}{_NEXT}(?P<role>\\d+){_END}"
            f"|{_OPEN}{self.nonce}{_NEXT}(?P<site>\\d+){_NEXT}(?P<plain>\\d){_TEXT}"
            f"(?P<text>.*?){_CLOSE}{self.nonce}{_END}",
            re.DOTALL,
        )
        found: list[Segment] = []
        at = 0
        for match in pattern.finditer(text):
            if match.start() > at:
                found.append(Segment("literal", text[at : match.start()].replace("\r\n", "\n")))
            at = match.end()
            if match["role"] is not None:
                line, whole = self.roles[int(match["role"])]
                found.append(Segment("role", whole.rstrip("\r\n"), role=line))
            else:
                site = self.sites[int(match["site"])]
                found.append(Segment("interp", match["text"], site.sources[0], site, match["plain"] == "1"))
        if at < len(text):
            found.append(Segment("literal", text[at:].replace("\r\n", "\n")))
        return found


_current: ContextVar[Marks] = ContextVar("zlclient_marks")


def current_marks() -> Marks:
    """The marks of the rendering that runs in this context."""
    return _current.get()


@contextmanager
def rendering(marks: Marks) -> Generator[Marks]:
    """Make `marks` current, for the sandbox's filters and loops."""
    token = _current.set(marks)
    try:
        yield marks
    finally:
        _current.reset(token)


def thread_mark(name: str, values: Mapping[str, object], kind: str = "THREAD") -> str:
    """A placeholder for a conversation, as the specification shapes it; not found in any of `values`."""
    haystack = repr(values)
    while (mark := f"__PROMPTY_{kind}_{secrets.token_hex(4)}_{name}__") in haystack:
        pass
    return mark
