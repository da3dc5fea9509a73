"""Share work out among forked processes, which know all that this one has loaded and compiled."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")

_TICKETS = 512
_BYTES = 2


def can_fork() -> bool:
    """Whether this process may be forked: not where threads run, which a fork would leave behind."""
    return hasattr(os, "fork") and threading.active_count() == 1


def map_forked(work: Callable[[T], R], items: Sequence[T], jobs: int) -> list[R]:
    """`work` of each item, in order, by this process and `jobs` - 1 others; the results must pickle.

    What a process that dies has not told is worked out here.
    """
    size = max(1, -(-len(items) // _TICKETS))
    tickets, writer = os.pipe()
    os.write(writer, b"".join(number.to_bytes(_BYTES, "big") for number in range(-(-len(items) // size))))
    os.close(writer)

    def take() -> dict[int, R]:
        """Take tickets until none is left: (index of item, result)."""
        done: dict[int, R] = {}
        while ticket := os.read(tickets, _BYTES):
            first = int.from_bytes(ticket, "big") * size
            done.update((index, work(items[index])) for index in range(first, min(first + size, len(items))))
        return done

    children = [_start(take) for _ in range(jobs - 1)]
    try:
        done = take()
        for _, answer in children:
            done.update(cast("dict[int, R]", _read(answer)))
    finally:
        os.read(tickets, _TICKETS * _BYTES)  # nobody need go on where this process gives up
        os.close(tickets)
        for child, answer in children:
            os.close(answer)
            os.waitpid(child, 0)
    return [done[index] if index in done else work(item) for index, item in enumerate(items)]


def _start(take: Callable[[], object]) -> tuple[int, int]:
    """Fork a process that writes what `take` gives; (its id, where to read that)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        with open(writer, "wb") as answer:
            answer.write(pickle.dumps(take(), pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)


def _read(answer: int) -> object:
    with open(answer, "rb", closefd=False) as file:
        data = file.read()
    try:
        return pickle.loads(data)  # noqa: S301 - our own child wrote it
    except (pickle.UnpicklingError, EOFError):
        return {}
