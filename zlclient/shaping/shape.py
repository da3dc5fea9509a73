"""The first stage: clean every text of a request once, drop what is empty, put the domain tag.

Texts are cleaned in place, copy on write: a clean request keeps its very objects. What is not text (images, base64,
thinking with its signature) is left as it is; tool schemas and tool inputs are data, so only what breaks transport is
removed from them. A tool's result is text from outside, where hidden instructions come from, and is cleaned as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from ..errors import InputError
from ..reply import Adjustment
from .anchors import tag_messages
from .domains import find_domain
from .sanitise import sanitize, sanitize_data

if TYPE_CHECKING:
    from ..request import Request
    from ..settings import Settings

Json = Mapping[str, Any]
Mode = Literal["standard", "strict", "minimal", "naive", "off"]


@dataclass(frozen=True, slots=True)
class Shaped:
    """A request's texts, clean and tagged; everything else is the request's own."""

    request: Request
    system: str | tuple[Json, ...] | None
    messages: tuple[Json, ...]
    tools: tuple[Json, ...]


def shape(request: Request, settings: Settings) -> tuple[Shaped, tuple[Adjustment, ...]]:
    """`request`'s texts cleaned and tagged, with a note of each change.

    Raises:
        InputError: nothing is left to answer, or the domain is unknown.
    """
    cleaner = _Cleaner(cast("Mode", request.sanitize or settings.sanitize))
    messages = cleaner.messages(request.messages)
    system = cleaner.system(request.system)
    tools = cast("tuple[Json, ...]", cleaner.data(request.tools, "tools")) if request.tools else ()
    name = request.domain or settings.domain
    if name is not None:
        messages, note = tag_messages(messages, find_domain(name, settings.domains))
        if note is not None:
            cleaner.notes.append(note)
    return Shaped(request, system, messages, tools), tuple(cleaner.notes)


class _Cleaner:
    """Walks one request; `notes` collects what was changed."""

    def __init__(self, mode: Mode) -> None:
        self.mode: Mode = mode
        self.notes: list[Adjustment] = []

    def messages(self, messages: tuple[Json, ...]) -> tuple[Json, ...]:
        cleaned: list[Json] = []
        for index, message in enumerate(messages):
            where = f"messages[{index}]"
            content = self.content(message["content"], where)
            if not content or (isinstance(content, str) and not content.strip()):
                self._drop_turn(messages, index, where)
                continue
            cleaned.append(message if content is message["content"] else {**message, "content": content})
        if len(cleaned) == len(messages) and all(map(_same, cleaned, messages)):
            return messages
        return tuple(cleaned)

    def _drop_turn(self, messages: tuple[Json, ...], index: int, where: str) -> None:
        # Providers return empty turns and then reject them in the history: drop those, but never what is being asked.
        if index == len(messages) - 1:
            raise InputError("is empty: there is nothing to answer", where=f"{where}.content")
        note = Adjustment("sanitise", "empty-turn", messages[index]["role"], None, f"{where} has no content")
        self.notes.append(note)

    def system(self, system: str | tuple[Json, ...] | None) -> str | tuple[Json, ...] | None:
        if system is None:
            return None
        if isinstance(system, str):
            return self.text(system, "system") or None
        return cast("tuple[Json, ...]", tuple(blocks)) if (blocks := self.blocks(system, "system")) else None

    def content(self, content: Any, where: str) -> Any:
        if isinstance(content, str):
            return self.text(content, where)
        blocks = self.blocks(content, where)
        return content if blocks is content else blocks

    def blocks(self, blocks: Any, where: str) -> Any:
        cleaned: list[Json] = []
        for index, block in enumerate(blocks):
            new = self.block(block, f"{where}[{index}]")
            if new["type"] == "text" and not str(new.get("text", "")).strip():
                self.notes.append(Adjustment("sanitise", "empty-block", "text", None, f"{where}[{index}] is blank"))
                continue
            cleaned.append(new)
        return blocks if len(cleaned) == len(blocks) and all(map(_same, cleaned, blocks)) else cleaned

    def block(self, block: Json, where: str) -> Json:
        kind = block["type"]
        if kind == "text":
            return self._replaced(block, "text", self.text(block.get("text", ""), where))
        if kind == "tool_result":
            content = block.get("content")
            if isinstance(content, str):
                return self._replaced(block, "content", self.text(content, where))
            if isinstance(content, list):
                return self._replaced(
                    block, "content", [self.block(part, where) for part in cast("list[Json]", content)]
                )
        elif kind == "tool_use":
            return self._replaced(block, "input", self.data(block.get("input"), where))
        elif kind == "document":
            source = block.get("source")
            if isinstance(source, Mapping) and cast("Json", source).get("type") == "text":
                data = self.text(cast("Json", source)["data"], where)
                return self._replaced(block, "source", self._replaced(cast("Json", source), "data", data))
        return block

    def text(self, text: Any, where: str) -> str:
        if not isinstance(text, str):
            raise InputError(f"must be a string, not {type(text).__name__}", where=where)
        cleaned = sanitize(text, self.mode)
        if cleaned.text is text:
            return text
        found = ", ".join(f"{count} × {rule}" for rule, count in cleaned.summary().items())
        self.notes.append(
            Adjustment("sanitise", self.mode, f"{where}: {len(text)} characters", len(cleaned.text), found)
        )
        return cleaned.text

    def data(self, value: Any, where: str) -> Any:
        if self.mode == "off":
            return value
        cleaned = sanitize_data(value)
        if cleaned is not value:
            reason = "characters that hide or that break transport, in data"
            self.notes.append(Adjustment("sanitise", "data", where, where, reason))
        return cleaned

    @staticmethod
    def _replaced(block: Json, key: str, value: Any) -> Json:
        old: Any = block.get(key)
        same = old is value or (isinstance(value, list) and all(map(_same, cast("list[Any]", value), old)))
        return block if same else {**block, key: value}


def _same(left: Any, right: Any) -> bool:
    return left is right
