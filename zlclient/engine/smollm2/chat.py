"""A conversation as the model was trained to read it: every turn between marks, the assistant's last one left open.

The marks are control tokens, put in by id: nothing that a turn's text says can open or close one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from .tokenizer import Tokenizer

Role = Literal["system", "user", "assistant"]
START, END = "<|im_start|>", "<|im_end|>"
# The model was tuned with this system text wherever a conversation has none (its own chat template).
DEFAULT_SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def prompt_tokens(tokenizer: Tokenizer, turns: Iterable[tuple[Role, str]], system: str = "") -> list[int]:
    """The tokens after which the assistant's answer follows; an assistant's turn at the end is gone on with."""
    start, end = tokenizer.controls[START], tokenizer.controls[END]
    tokens: list[int] = []
    closed = (end, *tokenizer.encode("\n"))
    spoken: list[tuple[Role, str]] = [("system", system or DEFAULT_SYSTEM), *turns]
    for role, text in spoken:
        tokens += (start, *tokenizer.encode(f"{role}\n{text}"), *closed)
    if spoken[-1][0] == "assistant":
        return tokens[: -len(closed)]
    return [*tokens, start, *tokenizer.encode("assistant\n")]
