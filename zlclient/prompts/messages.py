"""Segments turned into messages: role lines open them, values are fenced, threads and media take their places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from .errors import PromptInputError
from .fences import keep_inside, wrap
from .parts import Role
from .roles import find_role_lines
from .segments import Segment, Site

Scalar = str | int | float | bool


@dataclass(frozen=True)
class Message:
    """One message. `content` is text, or blocks where it holds media."""

    role: Role
    content: str | list[dict[str, Any]]
    attributes: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])


@dataclass(frozen=True)
class UntrustedValue:
    """Where an untrusted value went. It holds no text of the value.

    `message` is an index into the messages with the system ones. `fence` is what keeps it apart: an element's tag, a
    code fence, quotes, "json", or "message" where it is the whole message. `is_changed` says whether sanitising or the
    fence changed it.
    """

    input: str
    message: int
    role: Role
    fence: str
    is_changed: bool


@dataclass
class _Draft:
    role: Role
    attributes: Mapping[str, Scalar]
    is_marked: bool
    items: list[Segment | dict[str, Any]] = field(default_factory=list[Any])


class Assembler:
    """Builds messages from segments.

    Args:
        trusted: inputs whose values are written as they are; None trusts all.
        changed: inputs that sanitising changed.
        threads: placeholder text → the messages it stands for.
        media: placeholder text → the content block it stands for.
        first_role: whose the text before the first role line is.
    """

    def __init__(
        self,
        *,
        trusted: set[str] | None = None,
        changed: set[str] | None = None,
        threads: Mapping[str, Sequence[Message]] | None = None,
        media: Mapping[str, dict[str, Any]] | None = None,
        first_role: Role = "system",
    ) -> None:
        self._trusted, self._changed = trusted, changed or set()
        self._threads, self._media = threads or {}, media or {}
        self._first_role: Role = first_role
        self.messages: list[Message] = []
        self.untrusted: list[UntrustedValue] = []

    def build(self, segments: Sequence[Segment]) -> list[Message]:
        """The messages, in order."""
        draft = _Draft(self._first_role, {}, is_marked=False)
        for segment in segments:
            if segment.role:
                self._close(draft)
                draft = _Draft(segment.role.role, segment.role.attributes, is_marked=True)
            elif segment.text in self._media:
                draft.items.append(self._media[segment.text])
            elif segment.text in self._threads:
                # "user:" with nothing before {{history}} only names the thread: it is no empty message.
                if _visible(draft):
                    self._close(draft)
                self._insert(segment.source or "", self._threads[segment.text])
                draft = _Draft(draft.role, draft.attributes, is_marked=False)
            else:
                draft.items.append(segment)
        self._close(draft)
        return self.messages

    def _insert(self, name: str, messages: Sequence[Message]) -> None:
        for message in messages:
            if self._trusted is None or name not in self._trusted:
                value = UntrustedValue(name, len(self.messages), message.role, "message", name in self._changed)
                self.untrusted.append(value)
            self.messages.append(message)

    def _close(self, draft: _Draft) -> None:
        visible = _visible(draft)
        if not visible and not draft.is_marked:
            return
        blocks: list[dict[str, Any]] = []
        text = ""
        for item in draft.items:
            if isinstance(item, dict):
                blocks += [{"type": "text", "text": text.strip("\n")}] if text.strip() else []
                blocks.append(item)
                text = ""
            else:
                text += self._written(item, draft.role, is_alone=len(visible) == 1)
        text = text.strip("\n")
        if blocks and text.strip():
            blocks.append({"type": "text", "text": text})
        self.messages.append(Message(draft.role, blocks or text, draft.attributes))

    def _written(self, segment: Segment, role: Role, *, is_alone: bool) -> str:
        site = segment.site
        if site is None or segment.is_plain or self._is_trusted(site) or not segment.text:
            return segment.text
        text, fence = segment.text, site.fence
        if fence.kind == "none" and is_alone and role not in ("system", "developer"):
            kind = "message"
        elif fence.kind == "none":
            text, kind = wrap(text, site.sources[0], fence), site.sources[0]
        else:
            text, kind = keep_inside(text, fence), fence.name or fence.kind
        inside = segment.text if fence.kind != "none" else segment.text.strip("\n")
        is_changed = bool(self._changed.intersection(site.sources)) or inside not in text
        self.untrusted.append(UntrustedValue(site.sources[0], len(self.messages), role, kind, is_changed))
        return text

    def _is_trusted(self, site: Site) -> bool:
        return self._trusted is None or self._trusted.issuperset(site.sources)


def _visible(draft: _Draft) -> list[Segment | dict[str, Any]]:
    return [item for item in draft.items if isinstance(item, dict) or item.text.strip()]


def parse_messages(text: str, threads: Mapping[str, Sequence[Message]] | None = None) -> list[Message]:
    """Rendered text as messages by its role lines: the specification's Parser.

    `threads` maps an input's name to the conversation that its placeholder stands for. For text that nobody else
    had a hand in; `Prompt.render` never parses rendered text.
    """
    marks: dict[str, Sequence[Message]] = {}
    segments: list[Segment] = []
    at = 0
    lines = [(line.start, line.body, Segment("role", "", role=line)) for line in find_role_lines(text)]
    for name, messages in (threads or {}).items():
        for match in re.finditer(rf"__PROMPTY_THREAD_[0-9a-f]{{8}}_{re.escape(name)}__", text):
            marks[match[0]] = messages
            lines.append((*match.span(), Segment("interp", match[0])))
    for start, end, segment in sorted(lines, key=lambda line: line[0]):
        segments += [Segment("literal", text[at:start]), segment]
        at = end
    segments.append(Segment("literal", text[at:]))
    return Assembler(threads=marks).build(segments)


def read_thread(value: Sequence[Any], name: str) -> list[Message]:
    """A conversation given as a value: user and assistant messages only.

    Raises:
        PromptInputError: a message has another role, or no text.
    """
    messages: list[Message] = []
    for index, item in enumerate(value):
        where = f"message {index}"
        if not isinstance(item, Mapping) or "role" not in item:
            raise PromptInputError(f"{where} is no mapping with a role and content", input=name)
        role: Any = item["role"]  # pyright: ignore[reportUnknownVariableType]
        content: Any = item.get("content")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if role not in ("user", "assistant"):
            raise PromptInputError(
                f"{where} has the role {role!r}; a conversation holds user and assistant", input=name
            )
        if not isinstance(content, (str, list)):
            raise PromptInputError(f"{where} has no content", input=name)
        messages.append(Message(role, cast("str | list[dict[str, Any]]", content)))
    return messages


def media_block(value: Any, kind: str, name: str) -> dict[str, Any]:
    """A content block from an https address, a data: address, or a block of either wire.

    Raises:
        PromptInputError: it is none of these; paths are not read.
    """
    if isinstance(value, Mapping):
        if "type" not in value:
            raise PromptInputError('a content block must have a "type"', input=name)
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    block = "image" if kind == "image" else "document"
    data = re.fullmatch(r"data:([\w.+/-]+);base64,([A-Za-z0-9+/=\s]+)", str(value))
    if data and kind != "audio":
        return {"type": block, "source": {"type": "base64", "media_type": data[1], "data": data[2]}}
    if re.match(r"https://\S+\Z", str(value)) and kind != "audio":
        return {"type": block, "source": {"type": "url", "url": str(value)}}
    raise PromptInputError("must be an https: or data: address, or a content block", input=name)
