"""The check stage: an answer against its source, its format and its schema, each by a policy.

`off`: not checked. `record`: the report goes to `reply.checks`. `raise`: a failed check is a CheckError with the reply
attached. `retry`: a failed check asks once more within the deadline; whatever comes then is recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import CheckError
from ..reply import Adjustment, Timings

if TYPE_CHECKING:
    from ..errors import SendError
    from ..reply import Reply
    from ..request import Request
    from ..settings import Settings


def check(reply: Reply, request: Request, settings: Settings) -> Reply:
    """`reply` with the reports of the checks that apply to it, and its parsed output."""
    checks: dict[str, Any] = {}
    parsed: Any = None
    if request.output is not None and not reply.tool_calls:
        from .output import OutputError, parse_output

        try:
            parsed = parse_output(reply.text, cast("Any", request.output))
        except OutputError as error:
            checks["schema"] = error
    source = _source(request)
    if source is not None and _fidelity_policy(request, settings) != "off":
        from .fidelity import check_fidelity

        checks["fidelity"] = check_fidelity(reply.text, source)
    if request.format is not None and _format_policy(request, settings) != "off":
        from .format import check_format

        checks["format"] = check_format(reply.text, request.format)
    if not checks and parsed is None:
        return reply
    return replace(reply, checks=checks, parsed=parsed)


def _source(request: Request) -> str | None:
    if request.source is not None or request.fidelity in (None, "off"):
        return request.source
    from ..shaping.anchors import system_text
    from ..shaping.tune import texts_of

    return "\n".join([system_text(request.system), *texts_of(request.messages)])


def _fidelity_policy(request: Request, settings: Settings) -> str:
    return request.fidelity or settings.fidelity


def _format_policy(request: Request, settings: Settings) -> str:
    return request.format_policy or settings.format_policy


def _failures(reply: Reply, request: Request, settings: Settings) -> list[tuple[str, str]]:
    """(check, policy) of every check that failed."""
    policies = {
        "schema": _format_policy(request, settings),
        "format": _format_policy(request, settings),
        "fidelity": _fidelity_policy(request, settings),
    }
    return [(name, policies[name]) for name, report in reply.checks.items() if not getattr(report, "ok", False)]


def wants_another(reply: Reply, request: Request, settings: Settings) -> bool:
    """Whether a failed check says to ask once more, and the deadline leaves time for it."""
    failed = any(policy == "retry" for _, policy in _failures(reply, request, settings))
    return failed and (_left(request, settings, reply) or 1.0) > 0


def _left(request: Request, settings: Settings, reply: Reply) -> float | None:
    deadline = settings.deadline if request.deadline is None else request.deadline
    return None if deadline is None else deadline - reply.timings.total


def left_of(request: Request, settings: Settings, reply: Reply) -> Request:
    """`request` with the part of its deadline that `reply` left."""
    return replace(request, deadline=_left(request, settings, reply))


def again(first: Reply, second: Reply) -> Reply:
    """`second`, with what the first asking cost and why it was repeated."""
    failed = ", ".join(name for name, report in first.checks.items() if not getattr(report, "ok", False))
    note = Adjustment("check", "asked-again", 1, 2, f"the first answer failed: {failed}")
    return replace(
        second,
        usage=first.usage + second.usage,
        timings=Timings(second.timings.ttft, second.timings.tpot, first.timings.total + second.timings.total),
        attempts=(*first.attempts, *second.attempts),
        adjustments=(*second.adjustments, note),
    )


def kept(first: Reply, error: SendError) -> Reply:
    """`first`, after asking again failed with `error`."""
    note = Adjustment(
        "check", "asked-again", 1, 1, f"the first answer failed a check, and asking again: {type(error).__name__}"
    )
    return replace(first, attempts=(*first.attempts, *error.attempts), adjustments=(*first.adjustments, note))


def settled(reply: Reply, request: Request, settings: Settings) -> Reply:
    """`reply`, unless a check with policy "raise" failed.

    Raises:
        CheckError: it did.
    """
    failed = [name for name, policy in _failures(reply, request, settings) if policy == "raise"]
    if failed:
        raise CheckError(f"the answer failed: {', '.join(failed)}", reply=reply)
    return reply
