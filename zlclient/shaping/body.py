"""Shaping of a request body that an SDK wrote, on any of its three wires: Messages, Chat Completions, Responses.

Its texts go through `shape` like those of `Client.chat`, each in its place; the rest of the body is data, from which
only what breaks transport is removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError
from ..reply import Adjustment
from ..request import Request
from .anchors import add_snippets
from .domains import find_domain, language_of
from .sanitise import sanitize_data
from .shape import shape
from .tune import texts_of

if TYPE_CHECKING:
    from ..settings import Settings

Json = Mapping[str, Any]
_SAMPLING = ("temperature", "top_p", "top_k")
_SPEAKERS = ("user", "assistant", "system", "developer")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")  # tool results of the Responses wire
_PLAIN = {"role", "content", "name", "type", "id", "status"}  # any other field says something beside the content
_TEXTS = ("input_text", "output_text")  # its text blocks
_OPAQUE: Json = {"type": "opaque"}  # stands for what is no text, and keeps its message from being empty


class BodyShaper:
    """Shapes the JSON bodies of one provider's chat requests.

    Args:
        provider: "anthropic" or "openai": whose models the catalogue is asked about.
        settings: loaded settings.
        domain, anchors, sanitize: as in `Client.chat`.

    Raises:
        InputError: an option is wrong.
    """

    def __init__(self, provider: str, settings: Settings, *, domain: str | None, anchors: Any, sanitize: str | None):
        self._provider, self._settings = provider, settings
        self._options = Request.of("-", domain=domain, anchors=anchors, sanitize=sanitize)
        self._anchors = settings.anchors if self._options.anchors is None else self._options.anchors
        add_snippets(None, self._anchors, "en")
        name = domain or settings.domain
        if name is not None:
            find_domain(name, settings.domains)

    def shape(self, body: Json, version: str | None) -> tuple[dict[str, Any], tuple[Adjustment, ...]]:
        """`body` shaped, with a note of each change. `version` is the API version it will be sent with.

        Raises:
            InputError: nothing is left to answer, or a message has a shape that no wire has.
        """
        key = "messages" if "messages" in body else "input"
        field = "system" if self._provider == "anthropic" else "instructions"
        shaped = dict(body)
        try:
            turns = _Turns(body.get(key))
            request = replace(self._options, messages=turns.neutral, system=_system(body.get(field)))
            cleaned, found = shape(request, self._settings)
        except (LookupError, TypeError, AttributeError):  # the SDKs check little of what they are given
            raise InputError("holds a block of an unknown shape", where=key) from None
        notes = list(found)
        if found:
            system = cleaned.system
            shaped[key] = turns.put_back(cleaned.messages)
            shaped[field] = list(system) if isinstance(system, tuple) else system
            for name in (key, field):
                if name not in body or shaped[name] is None:
                    del shaped[name]
        notes.extend(self._clean_data(shaped))
        if self._anchors:
            notes.extend(self._add_snippets(shaped, key, language_of("".join(texts_of(cleaned.messages)))))
        notes.extend(self._drop_rejected(shaped, version))
        return shaped, tuple(notes)

    def shape_batch(self, body: Json, version: str | None) -> tuple[dict[str, Any], tuple[Adjustment, ...]]:
        """The same for a Message Batch: each of its `requests` has a body in `params`."""
        requests, notes = list[Json](), list[Adjustment]()
        for request in body["requests"]:
            params, found = self.shape(request["params"], version)
            requests.append({**request, "params": params} if found else request)
            notes.extend(found)
        return {**body, "requests": requests}, tuple(notes)

    def _clean_data(self, body: dict[str, Any]) -> list[Adjustment]:
        if (self._options.sanitize or self._settings.sanitize) == "off":
            return []
        clean = sanitize_data(body)
        if clean is body:
            return []
        body.update(clean)
        return [Adjustment("sanitise", "data", "body", "body", "characters that break transport, in data")]

    def _add_snippets(self, body: dict[str, Any], key: str, language: str) -> tuple[Adjustment, ...]:
        if self._provider == "anthropic" or key == "input":
            field = "system" if self._provider == "anthropic" else "instructions"
            body[field], notes = add_snippets(_system(body.get(field)), self._anchors, language)
            return notes
        messages = list(body[key])
        head = messages[0] if messages and messages[0].get("role") in ("system", "developer") else None
        system, notes = add_snippets(_system(head["content"]) if head else None, self._anchors, language)
        first = {**(head or {"role": "system"}), "content": system}
        body[key] = [first, *(messages[1:] if head else messages)]
        return notes

    def _drop_rejected(self, body: dict[str, Any], version: str | None) -> list[Adjustment]:
        models = self._settings.catalogue.provider(self._provider)
        model = models.find(str(body.get("model", "")))
        reasoning = body.get("reasoning")  # the Responses wire
        effort = cast("Json", reasoning).get("effort") if isinstance(reasoning, dict) else body.get("reasoning_effort")
        if model.takes_sampling(version or models.versions[0], effort):
            return []
        harmless = {"temperature": 1, "top_p": 1} if self._provider == "openai" else {}
        reason = f"{model.id} rejects sampling on {version or models.versions[0]}"
        sent = [name for name in _SAMPLING if name in body and body[name] != harmless.get(name)]
        return [Adjustment("tune", name, body.pop(name), None, reason) for name in sent]


class _Turns:
    """The messages or items of a body, and the same in the neutral form: one for one, each knowing its place."""

    def __init__(self, messages: Any) -> None:
        self._is_text = isinstance(messages, str)
        self._items: list[Any] = [{"role": "user", "content": messages}] if self._is_text else list(messages or ())
        self.neutral = tuple(_neutral(item, at) for at, item in enumerate(self._items))

    def put_back(self, cleaned: tuple[Json, ...]) -> Any:
        """The messages with their texts cleaned, in the wire's own shape. What became empty is left out."""
        new = [
            self._items[turn["at"]] if turn is self.neutral[turn["at"]] else _with_texts(self._items[turn["at"]], turn)
            for turn in cleaned
        ]
        return new[0]["content"] if self._is_text else new


def _text_field(item: Any) -> str | None:
    """The field that holds the text of a message or item; None where there is none."""
    if not isinstance(item, Mapping):
        return None
    item = cast("Json", item)
    field = "output" if item.get("type") in _OUTPUTS else "content" if "role" in item else None
    return field if field is not None and isinstance(item.get(field), str | list) and item[field] else None


def _neutral(item: Any, at: int) -> Json:
    field = _text_field(item)
    if field is None:
        return {"role": "none", "content": [_OPAQUE], "at": at}
    role, content = item.get("role"), item[field]
    if isinstance(content, list):
        content = [_neutral_block(block) for block in cast("list[Any]", content)]
    if role not in _SPEAKERS:
        content = [{"type": "tool_result", "content": content}]
    elif any(item[key] for key in item.keys() - _PLAIN):
        content = [*([{"type": "text", "text": content}] if isinstance(content, str) else content), _OPAQUE]
    return {"role": role, "content": content, "at": at}


def _neutral_block(block: Json) -> Json:
    return {**block, "type": "text", "was": block["type"]} if block.get("type") in _TEXTS else block


def _with_texts(item: Json, turn: Json) -> Json:
    """`item` with the texts of the neutral `turn` made of it."""
    field, content = _text_field(item) or "", turn["content"]
    if item.get("role") not in _SPEAKERS:
        content = content[0]["content"]
    if isinstance(content, list):
        blocks = [_own_block(block) for block in cast("list[Json]", content) if block is not _OPAQUE]
        content = "".join(block["text"] for block in blocks) if isinstance(item[field], str) else blocks
    return {**item, field: content}


def _own_block(block: Json) -> Json:
    if "was" not in block:
        return block
    return {key: block["was"] if key == "type" else value for key, value in block.items() if key != "was"}


def _system(system: Any) -> str | tuple[Json, ...] | None:
    return tuple(cast("list[Json]", system)) if isinstance(system, list) else system
