"""Server-sent events, from chunks of bytes cut anywhere to the data of each event (WHATWG HTML §9.2.6)."""

from __future__ import annotations

from codecs import BOM_UTF8


class SseParser:
    """Feed chunks, get the `data` of each event completed by them. Names are left aside: both wires type their data."""

    __slots__ = ("_begun", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that `chunk` completes."""
        text = self._rest + chunk
        if not self._begun:
            if len(text) < len(BOM_UTF8) and BOM_UTF8.startswith(text):
                self._rest = text
                return []
            self._begun = True
            text = text.removeprefix(BOM_UTF8)
        if b"\r" in text:
            # a CR at the very end may be half of a CRLF: keep it for the next chunk
            held = b"\r" if text.endswith(b"\r") else b""
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            held = b""
        *events, rest = text.split(b"\n\n")
        self._rest = rest + held
        return [data for event in events if (data := _data(event)) is not None]

    @property
    def pending(self) -> bytes:
        """What came after the last complete event."""
        return self._rest.strip()


def _data(event: bytes) -> bytes | None:
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    if len(lines) == 1:
        return lines[0]
    return b"\n".join(lines) if lines else None
