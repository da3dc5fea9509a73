"""A rendered prompt: what `Client.chat` takes in place of a string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .messages import Message, UntrustedValue


@dataclass(frozen=True)
class Rendered:
    """Messages and options of one call, with where each untrusted value went.

    `system` and `messages` are what a provider takes: the system and developer messages joined, and the rest as
    `{"role", "content"}` in order. `conversation` is all of them with their attributes. `options` are keyword
    arguments of `Client.chat`; what is given there as well wins. `unused` names what the template asks for and a
    call cannot carry.
    """

    conversation: tuple[Message, ...]
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    untrusted: tuple[UntrustedValue, ...] = ()
    name: str | None = None
    version: str | None = None
    path: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unused: tuple[str, ...] = ()

    @property
    def system(self) -> str | None:
        """The system text, or None."""
        texts = [_text(message) for message in self.conversation if message.role in ("system", "developer")]
        return "\n\n".join(text for text in texts if text) or None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages that are no system messages."""
        return [
            {"role": message.role, "content": message.content, **_tool_call(message)}
            for message in self.conversation
            if message.role not in ("system", "developer")
        ]

    @property
    def text(self) -> str:
        """All messages as one text, each after its role line; for people to read."""
        return "\n\n".join(f"{message.role}:\n{_text(message)}" for message in self.conversation)


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(
        block["text"] if block.get("type") == "text" else f"[{block.get('type')}]" for block in message.content
    )


def _tool_call(message: Message) -> dict[str, Any]:
    call = message.attributes.get("tool_call_id")
    return {"tool_call_id": call} if message.role == "tool" and call else {}
