"""The output file and its side file for failures, written from the start in every run.

What a row becomes depends on the row and the ledger alone, so a run that goes on after a break writes again what it
wrote before, and no half-written line of a killed one survives.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from ..errors import InputError
from .jobs import Made, shown
from .outcomes import Outcome, json_text

if TYPE_CHECKING:
    from .report import BatchReport


@dataclass(slots=True)
class Pending:
    """A row that was read and not written yet."""

    made: Made
    outcome: Outcome | None = None


class Output:
    """Writes rows in their order, or with `ordered` False as they are settled. Holds the ones that must wait.

    Raises:
        InputError: a file cannot be written, or another run is writing it.
    """

    def __init__(self, report: BatchReport, *, ordered: bool = True) -> None:
        self._report, self._ordered = report, ordered
        self._waiting: deque[Pending] = deque()
        self._held = self._held_bytes = 0
        self._answers = _opened(report.output)
        self._failures: IO[bytes] | None = None
        report.errors.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is settled, gaps left out, and close."""
        for pending in self._waiting:
            self._write(pending)
        self._answers.close()
        if self._failures is not None:
            self._failures.close()

    @property
    def held(self) -> int:
        """How many rows wait for their outcome, or for that of one before them."""
        return self._held

    @property
    def held_bytes(self) -> int:
        """About how many bytes these rows take."""
        return self._held_bytes

    def expect(self, made: Made) -> Pending:
        """Take up the next row."""
        pending = Pending(made)
        self._report.rows += 1
        self._held += 1
        self._held_bytes += made.size
        if self._ordered:
            self._waiting.append(pending)
        return pending

    def put(self, made: Made, outcome: Outcome | None) -> None:
        """Write a row whose outcome is known beforehand; without one it is counted and left out."""
        self._report.rows += 1
        if outcome is not None:
            self._line(made, outcome)

    def settle(self, pending: Pending, outcome: Outcome) -> None:
        """The row has its outcome: write it, and what waited for it."""
        pending.outcome = outcome
        if not self._ordered:
            self._write(pending)
        while self._waiting and self._waiting[0].outcome is not None:
            self._write(self._waiting.popleft())

    def flush(self) -> None:
        """Let readers of the files see what was written."""
        self._answers.flush()
        if self._failures is not None:
            self._failures.flush()

    def _write(self, pending: Pending) -> None:
        outcome = pending.outcome
        if outcome is None:
            return
        self._held -= 1
        self._held_bytes -= pending.made.size
        self._line(pending.made, outcome)

    def _line(self, made: Made, outcome: Outcome) -> None:
        line = json_text(shown(made, outcome)).encode() + b"\n"
        if outcome.ok:
            self._report.answered += 1
            self._answers.write(line)
            return
        self._report.failed += 1
        if self._failures is None:
            self._failures = _opened(self._report.errors)
        self._failures.write(line)


def _opened(path: Path) -> IO[bytes]:
    """The file, empty, and locked for as long as it is open, where the system can lock."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        _lock(file, path)
        file.truncate(0)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(path)) from None
    return file


def _lock(file: IO[bytes], path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: two runs into one file are the user's to avoid
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError("another run is writing it", where=str(path)) from None
