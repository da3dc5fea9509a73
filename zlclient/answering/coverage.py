"""How much of a document stood before the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..shaping.segment import Segment


@dataclass(frozen=True, slots=True)
class SegmentRead:
    """One segment: characters `start` to `end` of the document. `error` is the error class's name where it failed.

    A segment with neither `read` nor `error` was not sent any more.
    """

    index: int
    path: tuple[str, ...]
    start: int
    end: int
    read: bool
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which segments the answer rests on, in the document's order; together they are the whole document."""

    segments: tuple[SegmentRead, ...]

    @classmethod
    def of(cls, segments: Sequence[Segment], errors: Mapping[int, str | None]) -> Coverage:
        """The coverage where the segments at the positions in `errors` were not read, each for the error named."""
        return cls(
            tuple(
                SegmentRead(s.index, s.path, s.start, s.end, at not in errors, errors.get(at))
                for at, s in enumerate(segments)
            )
        )

    @property
    def read(self) -> int:
        """How many segments were read."""
        return sum(segment.read for segment in self.segments)

    @property
    def characters(self) -> int:
        """Characters of the document."""
        return self.segments[-1].end if self.segments else 0

    @property
    def characters_read(self) -> int:
        """Characters of the segments that were read."""
        return sum(segment.end - segment.start for segment in self.segments if segment.read)

    @property
    def share(self) -> float:
        """The share of the document's characters that was read, from 0 to 1."""
        return self.characters_read / self.characters if self.segments else 0.0

    @property
    def complete(self) -> bool:
        """Whether every segment was read."""
        return all(segment.read for segment in self.segments)

    def spans(self) -> list[tuple[int, int]]:
        """The stretches of the document that were read, neighbours joined."""
        found: list[tuple[int, int]] = []
        for segment in self.segments:
            if not segment.read:
                continue
            if found and found[-1][1] == segment.start:
                found[-1] = (found[-1][0], segment.end)
            else:
                found.append((segment.start, segment.end))
        return found

    def as_dict(self) -> dict[str, Any]:
        """A dict that json can write, the figures included."""
        figures = {"read": self.read, "characters": self.characters, "characters_read": self.characters_read}
        return {**figures, "share": self.share, "segments": [asdict(segment) for segment in self.segments]}
