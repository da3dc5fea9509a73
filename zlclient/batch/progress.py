"""The progress bar: one line on a terminal, redrawn; a line every half minute where it is read from a file."""

from __future__ import annotations

import shutil
import sys
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from .report import BatchReport

_REDRAW, _REPEAT = 0.2, 30.0  # seconds
_BAR = 20


class Progress:
    """Draws on `stream`; `quiet` draws nothing. `fraction` tells how much of the source was read."""

    def __init__(
        self,
        report: BatchReport,
        fraction: Callable[[], float | None],
        clock: Callable[[], float],
        *,
        stream: IO[str] | None = None,
        quiet: bool = False,
    ) -> None:
        self._report, self._fraction, self._clock = report, fraction, clock
        self._stream = sys.stderr if stream is None else stream
        self._redraws = self._stream.isatty()
        self._quiet = quiet
        self._began = clock()
        self._drawn = self._began if not self._redraws else float("-inf")
        self._first_sent: tuple[float, int] | None = None

    def tick(self, note: str = "") -> None:
        """Draw if it is time to; `note` says what is waited for."""
        now = self._clock()
        if self._report.requests and self._first_sent is None:
            self._first_sent = now, self._done()
        if self._quiet or now - self._drawn < (_REDRAW if self._redraws else _REPEAT):
            return
        self._drawn = now
        line = self.line(now, note)
        if self._redraws:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r\x1b[2K{line[:width]}")
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the line clean for what comes after."""
        if self._redraws and not self._quiet:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()

    def line(self, now: float, note: str = "") -> str:
        """The bar with rows, rate, spend and the time that is left."""
        report, done = self._report, self._done()
        rate = self._rate(now)
        share = self._share(done)
        parts = [f"{done} rows"]
        if share is not None:
            filled = round(_BAR * share)
            parts.insert(0, f"[{'#' * filled}{'-' * (_BAR - filled)}] {share:4.0%}")
        parts.append(f"{rate:.1f} rows/s")
        parts.append("$?" if report.cost is None else f"${report.cost:.4f}")
        if share and rate and done:
            parts.append(f"ETA {_time(done * (1 - share) / share / rate)}")
        if report.failed:
            parts.append(f"{report.failed} failed")
        return "  ".join([*parts, note] if note else parts)

    def _done(self) -> int:
        return self._report.answered + self._report.failed

    def _rate(self, now: float) -> float:
        """Rows a second since the first request: what the ledger answered came before, in no time."""
        since, before = self._first_sent or (self._began, 0)
        return (self._done() - before) / (now - since) if now > since else 0.0

    def _share(self, done: int) -> float | None:
        """The share of the source that is done: what is read, less the rows read that still wait."""
        read, rows = self._fraction(), self._report.rows
        return None if read is None or not rows else read * done / rows


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
