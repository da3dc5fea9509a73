"""The same assignment for teams that use OpenFeature (extra `openfeature`).

    from openfeature import api
    from openfeature.evaluation_context import EvaluationContext
    api.set_provider(RolloutProvider(router))
    api.get_client().get_string_value("support-bot", "legacy", EvaluationContext(user_id))      # the arm

A flag is a rollout. As a string it is the arm, as a boolean whether the unit is treated, as an integer the arm's
number with 0 for the control, as an object all of these. `track` reports an outcome: the event's name is the metric,
and the details carry the value and the attribute `reply_id`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from openfeature.evaluation_context import EvaluationContext  # pyright: ignore[reportMissingTypeStubs]
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagResolutionDetails, FlagValueType, Reason
from openfeature.provider import AbstractProvider, Metadata  # pyright: ignore[reportMissingTypeStubs]
from openfeature.track import TrackingEventDetails  # pyright: ignore[reportMissingTypeStubs]

from ..errors import InputError
from .experiments import PER_REQUEST, Decision
from .router import Router

_T = TypeVar("_T")
_SPLIT = frozenset({"assigned", "outside", "sticky"})
_DISABLED = frozenset({"inactive", "killed", "rolled_back", "no_state"})


class RolloutProvider(AbstractProvider):
    """Answers from `router`, which its owner closes."""

    def __init__(self, router: Router) -> None:
        super().__init__()
        self._router = router

    def get_metadata(self) -> Metadata:
        """See `FeatureProvider`."""
        return Metadata(name="zlclient")

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """The arm."""
        decision = self._decide(flag_key, default_value, evaluation_context)
        return _details(decision, decision.arm) if isinstance(decision, Decision) else decision

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """Whether the unit is treated."""
        decision = self._decide(flag_key, default_value, evaluation_context)
        return _details(decision, decision.variation > 0) if isinstance(decision, Decision) else decision

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """The arm's number; 0 is the control."""
        decision = self._decide(flag_key, default_value, evaluation_context)
        return _details(decision, decision.variation) if isinstance(decision, Decision) else decision

    def resolve_float_details(
        self,
        flag_key: str,
        default_value: float,
        evaluation_context: EvaluationContext | None = None,  # noqa: ARG002 - the interface's
    ) -> FlagResolutionDetails[float]:
        """Never: a rollout has no number to give."""
        message = f"{flag_key} is a rollout: ask for a string, boolean, integer or object"
        return FlagResolutionDetails(default_value, ErrorCode.TYPE_MISMATCH, message, Reason.ERROR)

    def resolve_object_details(
        self,
        flag_key: str,
        default_value: Sequence[FlagValueType] | Mapping[str, FlagValueType],
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[Sequence[FlagValueType] | Mapping[str, FlagValueType]]:
        """The arm, its number, and whether the unit is compared."""
        decision = self._decide(flag_key, default_value, evaluation_context)
        if not isinstance(decision, Decision):
            return decision
        value: Mapping[str, FlagValueType] = {
            "arm": decision.arm,
            "variation": decision.variation,
            "in_experiment": decision.in_experiment,
        }
        return _details(decision, value)

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,  # noqa: ARG002 - the interface's
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Report an outcome; an event without the attribute `reply_id` concerns no reply and is ignored."""
        details = tracking_event_details or TrackingEventDetails()
        reply_id = details.attributes.get("reply_id")
        if isinstance(reply_id, str):
            self._router.outcome(reply_id, tracking_event_name, 1.0 if details.value is None else details.value)

    def _decide(
        self, name: str, default: _T, context: EvaluationContext | None
    ) -> Decision | FlagResolutionDetails[_T]:
        context = context or EvaluationContext()
        if name not in self._router.rollouts:
            return FlagResolutionDetails(default, ErrorCode.FLAG_NOT_FOUND, "no such rollout", Reason.ERROR)
        try:
            attributes: Mapping[str, Any] = context.attributes
            return self._router.decide(name, unit=context.targeting_key or None, attributes=attributes)
        except InputError as error:
            named = self._router.rollouts[name].experiment.unit
            code = ErrorCode.GENERAL if named == PER_REQUEST else ErrorCode.TARGETING_KEY_MISSING
            return FlagResolutionDetails(default, code, str(error), Reason.ERROR)


def _details(decision: Decision, value: _T) -> FlagResolutionDetails[_T]:
    reason = Reason.DEFAULT
    if decision.reason in _SPLIT:
        reason = Reason.SPLIT
    elif decision.reason in _DISABLED:
        reason = Reason.DISABLED
    elif decision.reason == "forced":
        reason = Reason.STATIC
    metadata: dict[str, bool | int | float | str] = {
        "reason": decision.reason,
        "stage": decision.stage,
        "epoch": decision.epoch,
        "in_experiment": decision.in_experiment,
    }
    return FlagResolutionDetails(value, reason=reason, variant=decision.arm, flag_metadata=metadata)
