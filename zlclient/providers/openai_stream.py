"""How a Chat Completions answer is read: its events, and its blocks in the neutral form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ..errors import BadAnswer
from ..reply import BlockDelta, Finish, Start, StreamEvent, ThinkingDelta, Usage
from .decoder import StreamDecoder, event_failure
from .failure import Failure
from .surrogates import mended, mended_value

Json = Mapping[str, Any]

# finish_reason in the neutral words
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
# Error codes and types, OpenAI's own and those of compatible servers, with the statuses they come with as responses.
_ERRORS = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "permission_denied": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "requests": 429,
    "tokens": 429,
    "server_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "timeout": 504,
    "overloaded": 529,
    "overloaded_error": 529,
    "engine_overloaded": 529,
}


class OpenAIDecoder(StreamDecoder):
    """Reads one Chat Completions stream."""

    __slots__ = ("_calls", "_thoughts")

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[int, dict[str, str]] = {}
        self._thoughts: list[str] = []

    def _event(self, event: Json) -> list[StreamEvent]:
        if event.get("error"):
            raise event_failure(event["error"], _ERRORS)
        found: list[StreamEvent] = []
        if self.id is None:
            self.id, self.model = event.get("id"), event.get("model")
            found.append(Start(self.id, self.model))
        if event.get("usage"):
            self.usage = _usage(event["usage"])
        for choice in event.get("choices") or ():  # the chunk that carries usage has none
            found.extend(self._delta(choice.get("delta") or {}))
            reason = choice.get("finish_reason")
            if reason:
                self.stop_reason = _STOP_REASONS.get(reason, reason)
                found.extend(self._kept(self._rest()))
        return found

    def _whole(self, body: Json) -> list[StreamEvent]:
        if body.get("error"):
            raise event_failure(body["error"], _ERRORS)
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            raise Failure(BadAnswer, "the JSON body is no chat completion")
        choice = cast("Json", choices[0])
        message = cast("Json", choice.get("message") or {})
        calls: list[Json] = [{**call, "index": i} for i, call in enumerate(message.get("tool_calls") or ())]
        delta = {**message, "tool_calls": calls}
        choice = {"delta": delta, "finish_reason": choice.get("finish_reason") or "stop"}
        return [*self._event({**body, "choices": [choice]}), *self.end()]

    def end(self) -> list[StreamEvent]:
        """Some servers close without [DONE]: an answer that gave its finish reason is whole."""
        if self.complete or self.stop_reason is None:
            return []
        self.complete = True
        return [Finish(self.stop_reason, self.usage)]

    def _delta(self, delta: Json) -> list[StreamEvent]:
        found: list[StreamEvent] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thought, str) and thought:
            found.extend(self._kept(self._reasoned(thought)))
        for said in (delta.get("content"), delta.get("refusal")):
            if said:
                found.extend(self._said(said if isinstance(said, str) else _text_of_parts(said)))
        for call in delta.get("tool_calls") or ():
            index = call.get("index", 0)
            known = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
            function = cast("Json", call.get("function") or {})
            known["id"] = call.get("id") or known["id"]
            known["name"] = function.get("name") or known["name"]
            known["arguments"] += function.get("arguments") or ""
            found.append(BlockDelta(index, call))
        return found

    def _kept(self, events: list[StreamEvent]) -> list[StreamEvent]:
        """`events`, their pieces of reasoning noted."""
        self._thoughts.extend(event.text for event in events if isinstance(event, ThinkingDelta))
        return events

    def content(self) -> tuple[Json, ...]:
        """The blocks so far, in the neutral form; reasoning comes without a signature."""
        blocks: list[Json] = []
        if self._thoughts:
            blocks.append({"type": "thinking", "thinking": "".join(self._thoughts)})
        if self.text:
            blocks.append({"type": "text", "text": self.text})
        for call in self._calls.values():
            try:
                arguments = mended_value(json.loads(mended(call["arguments"]) or "{}", strict=False))
            except (ValueError, RecursionError):
                raise Failure(BadAnswer, "the arguments of a tool call are not JSON") from None
            blocks.append({"type": "tool_use", "id": call["id"], "name": call["name"], "input": arguments})
        return tuple(blocks)


def _text_of_parts(parts: Any) -> str:
    """Some servers give content as a list of parts. Raises Failure for what is neither that nor a text."""
    if not isinstance(parts, list):
        raise Failure(BadAnswer, "the content of the answer is neither a text nor a list of parts")
    return "".join(part["text"] for part in cast("list[Json]", parts) if part["type"] == "text")


def _usage(found: Json) -> Usage:
    prompt = cast("Json", found.get("prompt_tokens_details") or {})
    completion = cast("Json", found.get("completion_tokens_details") or {})
    cached, written = int(prompt.get("cached_tokens") or 0), int(prompt.get("cache_write_tokens") or 0)
    return Usage(
        input=max(0, int(found.get("prompt_tokens") or 0) - cached - written),
        output=int(found.get("completion_tokens") or 0),
        cache_read=cached,
        cache_write=written,
        reasoning=int(completion.get("reasoning_tokens") or 0),
    )
