"""Edits of a text: how a pass says what it changes, how edits are applied, and how two lists become one."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """Replace `text[start:end]` by `new`. A pass only deletes ranges and replaces single characters."""

    start: int
    end: int
    new: str
    rule: str


def apply_edits(text: str, edits: list[Edit]) -> str:
    """The text after `edits`, which are in order and do not overlap; the same object when there are none."""
    if not edits:
        return text
    parts: list[str] = []
    done = 0
    for start, end, new, _ in edits:
        parts.append(text[done:start])
        if new:
            parts.append(new)
        done = end
    parts.append(text[done:])
    return "".join(parts)


def compose(first: list[Edit], second: list[Edit]) -> list[Edit]:
    """One list of edits that does to the original what `first` and then `second` do.

    `second` counts in the text that `first` leaves. A deletion that spans edits of `first` is split around them, so
    each of those stays in the list as itself and nothing that was removed earlier disappears from the record.
    """
    if not first or not second:
        return first or second
    composed: list[Edit] = []
    queue = iter(first)
    pending = _Output.of(next(queue), 0)
    shift = 0  # offset in the middle text = offset in the original + shift, before `pending`

    def advance() -> None:
        nonlocal pending, shift
        if pending is None:
            return
        composed.append(pending.edit())
        shift = pending.stop - pending.source.end
        following = next(queue, None)
        pending = None if following is None else _Output.of(following, shift)

    for start, end, new, rule in second:
        while pending is not None and pending.stop <= start:
            advance()
        at = start
        while at < end:
            if pending is not None and pending.start <= at < pending.stop:
                at = pending.overwrite(at, end, new, rule)
            else:
                stop = end if pending is None else min(end, pending.start)
                composed.append(Edit(at - shift, stop - shift, new, rule))
                at = stop
            while pending is not None and pending.stop <= at < end:
                advance()
    while pending is not None:
        advance()
    return composed


class _Output:
    """What one edit of the first pass wrote, while the second pass overwrites parts of it."""

    def __init__(self, source: Edit, start: int) -> None:
        self.source, self.start, self.stop = source, start, start + len(source.new)
        self.characters = list(source.new)
        self.rule = source.rule

    @classmethod
    def of(cls, source: Edit, shift: int) -> _Output | None:
        return cls(source, source.start + shift)

    def overwrite(self, start: int, end: int, new: str, rule: str) -> int:
        stop = min(end, self.stop)
        for at in range(start, stop):
            self.characters[at - self.start] = new
        self.rule = rule
        return stop

    def edit(self) -> Edit:
        return Edit(self.source.start, self.source.end, "".join(self.characters), self.rule)
