"""Between the client and the router: one request's trial, from its assignment to what is written down about it.

trial = traffic.begin(request)            # which arm
... answer `request` by the route trial.arm; if that fails, answer trial.control_request(error) by trial.control ...
reply = trial.answered(reply)             # recorded, with its arm
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..errors import CheckError, InputError, SendError
from ..reply import Adjustment, Reply
from .configured import configure, rollouts_of
from .experiments import PER_REQUEST
from .records import Shadow
from .router import Router
from .shadow import compare_answers

if TYPE_CHECKING:
    from ..request import Request
    from ..settings import Settings
    from .experiments import Decision
    from .targeting import Attributes


class Traffic:
    """A client's experiments. The router, its store and its thread are made at the first use.

    Raises:
        ConfigError: a configured rollout is wrong; names key, value, file and line.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        if settings.rollouts:
            rollouts_of(settings.rollouts, settings.origins)  # a wrong one fails here, not at the first request
        self._lock = threading.Lock()
        self._router: Router | None = None

    @property
    def router(self) -> Router:
        """The router over the configured rollouts and store."""
        if self._router is None:
            with self._lock:
                if self._router is None:
                    settings = self._settings
                    self._router = Router(*configure(settings.rollouts, settings.store, settings.origins))
        return self._router

    def begin(self, request: Request) -> Trial:
        """Assign `request` to an arm.

        Raises:
            InputError: no such experiment, no unit, or a model was named beside the experiment.
        """
        if request.model is not None:
            raise InputError("an experiment chooses the model; leave one of the two out", where="model")
        request_id = uuid.uuid4().hex
        per_request = request.unit == PER_REQUEST
        decision = self.router.assign(
            cast("str", request.experiment),
            unit=request_id if per_request else request.unit,
            attributes=cast("Attributes", dict(request.attributes)),
            force=request.arm,
            request_id=request_id,
        )
        return Trial(self.router, decision, request, request_id, log_content=self._settings.log_content)

    def outcome(self, reply: Reply | str, metric: str, value: bool | float) -> None:
        """Report what became of a reply."""
        self.router.outcome(reply.id if isinstance(reply, Reply) else reply, metric, value)

    def close(self) -> None:
        """Write what is buffered and stop."""
        if self._router is not None:
            self._router.close()
            self._router = None


class Trial:
    """One request in an experiment."""

    def __init__(
        self, router: Router, decision: Decision, request: Request, request_id: str, *, log_content: bool
    ) -> None:
        self._router, self.decision, self.request = router, decision, request
        self._request_id, self._log_content = request_id, log_content
        self._error: SendError | CheckError | None = None

    @property
    def arm(self) -> str:
        """The route that answers."""
        return self.decision.arm

    @property
    def control(self) -> str:
        """The route that answers where the arm fails."""
        return self._router.control(self.decision.experiment)

    def control_request(self, error: SendError) -> Request | None:
        """What is left to ask the control after the arm failed with `error`; None where the control itself failed.

        Raises nothing; where None comes back the failure is written down and the caller raises `error`.
        """
        self._error = error
        spent = error.attempts[-1].ended if error.attempts else 0.0
        left = None if self.request.deadline is None else self.request.deadline - spent
        if self.decision.variation == 0 or (left is not None and left <= 0):
            self._record(self._request_id, None)
            return None
        return replace(self.request, deadline=left)

    @contextmanager
    def falling_back(self) -> Generator[None]:
        """While the control answers instead of the arm; where it fails too, its error lists the attempts of both."""
        try:
            yield
        except (SendError, CheckError) as late:
            self._record(self._request_id, None)
            if isinstance(late, SendError) and isinstance(self._error, SendError):
                late.attempts = (*self._error.attempts, *late.attempts)
            raise

    def answered(self, reply: Reply) -> Reply:
        """`reply` with its arm, written down."""
        decision, error = self.decision, self._error
        arm = decision.arm
        notes = [Adjustment("route", "arm", decision.experiment, decision.arm, decision.reason)]
        if error is not None:
            arm = self.control
            reason = f"{decision.arm} failed: {type(error).__name__}"
            notes.append(Adjustment("route", "control", decision.arm, arm, reason))
            if isinstance(error, SendError):
                reply = replace(reply, attempts=(*error.attempts, *reply.attempts))
        reply = replace(reply, arm=arm, experiment=decision.experiment, adjustments=(*reply.adjustments, *notes))
        self._record(reply.id, reply, answered_by=arm if error is not None else None)
        return reply

    def failed(self, error: SendError | CheckError) -> None:
        """An answer broke off or failed its check; there is nothing left to fall back to."""
        self._error = error
        self._record(self._request_id, None)

    def shadow_arm(self) -> str | None:
        """The treatment to send a copy to beside this answer, if one is due."""
        return self._router.shadow_arm(self.decision, self._request_id) if self._error is None else None

    def shadowed(self, reply: Reply, outcome: Reply | SendError) -> None:
        """What became of the copy."""
        arm = self._router.rollouts[self.decision.experiment].treatments[0]
        fields: dict[str, Any] = {}
        if isinstance(outcome, Reply):
            found = compare_answers(reply.text, outcome.text, _passed(reply), _passed(outcome))
            fields = {
                "cost_usd": outcome.cost or 0.0,
                "checks": found.checks,
                "length_ratio": found.length_ratio,
                "similarity": found.similarity,
            }
            if self._log_content:
                fields |= {"control_text": reply.text, "treatment_text": outcome.text}
        else:
            fields["error_type"] = type(outcome).__name__
        self._router.record_shadow(
            Shadow(
                reply_id=reply.id,
                experiment=self.decision.experiment,
                arm=arm,
                epoch=self.decision.epoch,
                at=time.time(),
                **fields,
            )
        )

    def _record(self, reply_id: str, reply: Reply | None, answered_by: str | None = None) -> None:
        measured: dict[str, Any] = {}
        if reply is not None and self._error is None:
            measured = {
                "ttft_s": reply.timings.ttft,
                "tpot_s": reply.timings.tpot,
                "latency_s": reply.timings.total,
                "cost_usd": reply.cost,
                "checks": _passed(reply),
            }
        error_type = type(self._error).__name__ if self._error is not None else None
        self._router.record(self.decision, reply_id, error_type=error_type, answered_by=answered_by, **measured)


def _passed(reply: Reply) -> dict[str, bool]:
    return {name: bool(getattr(report, "ok", False)) for name, report in reply.checks.items()}
