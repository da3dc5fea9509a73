"""What is raised where parts of a document could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import DeadlineExceeded, SendError

if TYPE_CHECKING:
    from ..reply import Attempt, Usage
    from .coverage import Coverage


@dataclass(frozen=True, slots=True)
class SegmentAnswer:
    """What came back for characters `start` to `end` of the document; `stated` is False where that is nothing."""

    path: tuple[str, ...]
    start: int
    end: int
    text: str
    stated: bool


@dataclass(frozen=True, slots=True)
class SegmentFailure:
    """Which segment failed, and why."""

    index: int
    path: tuple[str, ...]
    start: int
    end: int
    error: SendError


class SegmentsFailed(SendError):
    """Segments of a document failed after their retries, or the last request over their answers did.

    `failures` names each segment with its path and span, `finished` holds every answer that did come, `coverage` says
    which segments were read. `attempts` and `usage` are those of all requests; `status` and `request_id` the first
    failure's. The message names spans only: paths are text of the document.
    """

    def __init__(
        self,
        problem: str,
        *,
        cause: SendError,
        failures: Sequence[SegmentFailure],
        finished: Sequence[SegmentAnswer],
        coverage: Coverage,
        attempts: tuple[Attempt, ...],
        usage: Usage,
    ) -> None:
        super().__init__(
            problem,
            provider=cause.provider,
            model=cause.model,
            route=cause.route,
            attempts=attempts,
            status=cause.status,
            request_id=cause.request_id,
            partial_text=cause.partial_text,
            usage=usage,
        )
        self.failures, self.finished, self.coverage = tuple(failures), tuple(finished), coverage


class SegmentsLate(SegmentsFailed, DeadlineExceeded):
    """The same, where the whole call's deadline was the cause."""
