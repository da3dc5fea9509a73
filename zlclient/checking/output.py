"""JSON answers: finding the one JSON value of an answer, and turning it into a pydantic model."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar

from ..errors import ZlclientError
from .markdown import fenced_blocks, lines

if TYPE_CHECKING:
    from pydantic import BaseModel

    M = TypeVar("M", bound=BaseModel)

Reason = Literal["empty", "not_json", "prose_around_json", "several_json", "invalid"]
_DEEPEST = 200
_PROBLEMS: dict[Reason, str] = {
    "empty": "the answer is empty",
    "not_json": "the answer is no JSON",
    "prose_around_json": "the answer has text around its JSON",
    "several_json": "the answer has several fenced blocks",
    "invalid": "the answer's JSON does not fit the model",
}


@dataclass(frozen=True, slots=True)
class OutputProblem:
    """One thing wrong with a JSON answer: where (`items[2].price`), the rule, and what the rule wants."""

    where: str
    rule: str
    expected: str

    def as_dict(self) -> dict[str, Any]:
        """A dict that json can write."""
        return asdict(self)


class OutputError(ZlclientError, ValueError):
    """An answer that is not the JSON asked for. `reason` says in which way, `problems` where it does not fit the model.

    Neither the message nor the problems repeat the answer's values.
    """

    def __init__(self, reason: Reason, *, problems: tuple[OutputProblem, ...] = ()) -> None:
        first = f": {problems[0].where}: {problems[0].expected}" if problems else ""
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{_PROBLEMS[reason]}{first}{more}")
        self.reason, self.problems = reason, problems


@dataclass(frozen=True, slots=True)
class JsonText:
    """The JSON text of an answer, and whether it stood in a fenced block."""

    text: str
    value: Any
    fenced: bool


def find_json(answer: str) -> JsonText:
    """The one JSON value that an answer consists of, alone or as its only fenced block.

    Raises OutputError where there is none, more than one, or prose beside it: a caller that wants to be lenient decides
    so, nothing is cut off silently.
    """
    text = answer.strip().removeprefix("\ufeff")
    if not text:
        raise OutputError("empty")
    value = _load(text)
    if value is not _NONE:
        return JsonText(text, value, fenced=False)
    parsed = lines(text)
    blocks = fenced_blocks(parsed)
    values = [(block, value) for block in blocks if (value := _load(block)) is not _NONE]
    if len(values) > 1:
        raise OutputError("several_json")
    if values:
        if len(blocks) > 1 or any(line.kind not in ("fence", "blank") for line in parsed):
            raise OutputError("prose_around_json")
        return JsonText(values[0][0].strip(), values[0][1], fenced=True)
    raise OutputError("prose_around_json" if _holds_json(text) else "not_json")


def parse_output(text: str, model: type[M]) -> M:
    """The answer as an instance of `model`. A fenced block is accepted; prose beside the JSON is not.

    Raises OutputError with the reason, and for a JSON that does not fit with every place and rule.
    """
    from pydantic import ValidationError

    found = find_json(text)
    try:
        return model.model_validate_json(found.text)
    except ValidationError as error:
        _raise_invalid(error)


def _raise_invalid(error: Any) -> NoReturn:
    problems = tuple(
        # A message of a user's own validator may quote the value it rejects.
        OutputProblem(
            path(detail["loc"]),
            detail["type"],
            "rejected by a validator of the model"
            if detail["type"] in ("value_error", "assertion_error")
            else detail["msg"],
        )
        for detail in error.errors(include_input=False, include_url=False, include_context=False)
    )
    raise OutputError("invalid", problems=problems) from None


def path(parts: tuple[int | str, ...] | list[int | str]) -> str:
    """`$`, `items[2].price`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".") or "$"


_NONE = object()


def _no_constant(_: str) -> NoReturn:
    raise ValueError  # NaN and Infinity are no JSON


def _load(text: str) -> Any:
    if text.count("[") + text.count("{") > _DEEPEST and _depth(text) > _DEEPEST:
        return _NONE
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _NONE


def _depth(text: str) -> int:
    """The deepest nesting of brackets, those inside strings included: a bound, not a count."""
    depth = deepest = 0
    for char in text:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest


def _holds_json(text: str) -> bool:
    """Whether an object or array begins somewhere in the text; a few places are tried."""
    decoder = json.JSONDecoder()
    at = -1
    for _ in range(20):
        places = [place for place in (text.find("{", at + 1), text.find("[", at + 1)) if place >= 0]
        if not places:
            return False
        at = min(places)
        try:
            value, _end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if value:
            return True
    return False
