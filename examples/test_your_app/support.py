"""A small support desk. OpenAI sorts tickets, Claude answers them and may look up an order.

It knows nothing of zlclient: it makes the official SDKs' clients where it needs them, as applications do.
"""

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import anthropic
import openai
from pydantic import BaseModel

SORTER, ANSWERER = "gpt-5.4", "claude-sonnet-4-6"
MOST_STEPS = 4
SORRY = "We are very busy right now. A person will answer you by mail."

ORDER_STATUS: Any = {
    "name": "order_status",
    "description": "Where an order is.",
    "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
}


class Ticket(BaseModel):
    topic: Literal["order", "invoice", "other"]
    urgent: bool


class TooManySteps(Exception):
    """Claude kept calling tools."""


def sort_ticket(text: str) -> Ticket:
    completion = openai.OpenAI().chat.completions.parse(
        model=SORTER,
        messages=[{"role": "system", "content": "Sort support tickets."}, {"role": "user", "content": text}],
        response_format=Ticket,
    )
    ticket = completion.choices[0].message.parsed
    return ticket or Ticket(topic="other", urgent=False)


def answer_order(text: str, look_up: Callable[[str], str]) -> str:
    """Ask Claude, let it look up orders, return its answer."""
    client = anthropic.Anthropic()
    messages: list[Any] = [{"role": "user", "content": text}]
    for _ in range(MOST_STEPS):
        reply = client.messages.create(
            model=ANSWERER, max_tokens=500, system="You are a support desk.", tools=[ORDER_STATUS], messages=messages
        )
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": look_up(str(call.input["order"]))}
            for call in calls
        ]
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
    raise TooManySteps(f"no answer after {MOST_STEPS} steps")


def handle(text: str, look_up: Callable[[str], str]) -> str:
    """Sort a ticket and answer it; in an outage, say so."""
    try:
        if sort_ticket(text).topic == "order":
            return answer_order(text, look_up)
    except (anthropic.APIStatusError, openai.APIStatusError) as error:
        if error.status_code < 500:
            raise
        return SORRY
    return "Thank you. We will come back to you."


async def summarise(tickets: list[str]) -> AsyncIterator[str]:
    """A summary of the day's tickets, piece by piece."""
    prompt = "Summarise these tickets:\n" + "\n".join(f"- {ticket}" for ticket in tickets)
    async with anthropic.AsyncAnthropic().messages.stream(
        model=ANSWERER, max_tokens=800, messages=[{"role": "user", "content": prompt}]
    ) as stream:
        async for text in stream.text_stream:
            yield text
