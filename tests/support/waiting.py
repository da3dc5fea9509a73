"""Waiting for another thread without a guess at how long it takes."""

import threading
from collections.abc import Callable


def until(true: Callable[[], bool]) -> None:
    """Wait, in small steps, for another thread to come so far."""
    pause = threading.Event()
    for _ in range(20_000):
        if true():
            return
        pause.wait(0.0005)
    raise AssertionError("it never came so far")
