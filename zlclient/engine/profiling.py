"""A sampling profiler of the engine's work: which functions its threads are in, many times a second.

    with Profiler() as profiler:
        ...
    Path("profile.svg").write_text(flame_graph(profiler.stacks))

It looks at all threads from one of its own and keeps the stacks that are inside the engine and not waiting. A sample
can be taken only when the thread that works lets go of the interpreter's lock, which numpy's larger operations do; so
shares are a good guide, not a stopwatch. What an operation does in C counts for the function that called it.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Mapping
from types import CodeType, FrameType

PACKAGE = __name__.rpartition(".")[0] + "."
# Where a thread stands while it waits for work, or for a piece of its answer.
WAITING = frozenset(("Condition.wait", "Event.wait", "Engine._stream"))

Stack = tuple[str, ...]


class Profiler:
    """Samples while it is entered. `stacks` counts stacks, the outermost function first, under the thread's name."""

    def __init__(self, interval: float = 0.005) -> None:
        self.stacks: Counter[Stack] = Counter()
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="zlclient-profiler", daemon=True)

    def __enter__(self) -> Profiler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def sample(self) -> None:
        """Count the stacks of this moment."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # pyright: ignore[reportPrivateUsage] - CPython documents it
            stack = engine_stack(frame)
            if stack and ident != threading.get_ident():
                self.stacks[(names.get(ident, "thread").split("_")[0], *stack)] += 1

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self.sample()


def engine_stack(innermost: FrameType) -> Stack:
    """The functions of a stack from the first one of the engine on; empty when there is none, or it waits."""
    frame: FrameType | None = innermost
    found: list[tuple[bool, str]] = []
    if innermost.f_code.co_qualname in WAITING:
        return ()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        found.append((module.startswith(PACKAGE), _name(module, frame.f_code)))
        frame = frame.f_back
    found.reverse()
    first = next((at for at, (inside, _) in enumerate(found) if inside), len(found))
    return tuple(name for _, name in found[first:])


def _name(module: str, code: CodeType) -> str:
    return f"{module.removeprefix(PACKAGE)}:{code.co_qualname.replace('.<locals>', '')}"


def collapsed(stacks: Mapping[Stack, int]) -> str:
    """One line a stack, `a;b;c count`, as flame graph tools read it."""
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in sorted(stacks.items()))
