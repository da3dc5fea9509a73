"""The passes of each mode, run for the text alone or for the record of what changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from . import contexts, controls, scan, whitespace
from .code_points import Policy, policy
from .edits import Edit, apply_edits, compose

Mode = Literal["standard", "strict", "minimal", "naive", "off"]
MODES: tuple[Mode, ...] = get_args(Mode)

_Pass = Callable[[str], list[Edit]]
_SEQUENCES: tuple[_Pass, ...] = (controls.drop_ansi, controls.drop_overstrikes)


def clean(text: str, mode: Literal["standard", "strict", "minimal"]) -> str:
    """The text that `record` describes, by the shortest way; the same object when clean."""
    text = _clean_code_points(text, policy(mode), () if mode == "minimal" else _SEQUENCES)
    if mode == "minimal":
        return text
    if "\xad" in text:
        text = apply_edits(text, controls.drop_soft_hyphens(text))
    return whitespace.tidy(text)


def record(text: str, mode: Mode) -> list[Edit]:
    """All edits of `mode`, as one list that counts in `text`."""
    edits: list[Edit] = []
    for make in _passes(mode):
        step = make(text)
        edits = compose(edits, step)
        text = apply_edits(text, step)
    return edits


def _clean_code_points(text: str, rules: Policy, sequences: tuple[_Pass, ...]) -> str:
    if scan.worth_vectorising(text):
        from . import vectorised

        return vectorised.clean(text, rules, sequences)
    if not scan.has_suspects(text, rules):
        return text
    text = apply_edits(text, controls.join_pairs(text))
    for make in sequences:
        text = apply_edits(text, make(text))
    return apply_edits(text, contexts.judge(text, scan.suspects(text, rules), rules))


def _passes(mode: Mode) -> tuple[_Pass, ...]:
    if mode == "off":
        return ()
    if mode == "naive":
        # The recipe would leave lone surrogates in; they are replaced so that its result can be sent at all.
        return (controls.join_pairs, _judge("minimal"), controls.naive_drop, controls.naive_collapse)
    if mode == "minimal":
        return (controls.join_pairs, _judge("minimal"))
    return (
        controls.join_pairs,
        *_SEQUENCES,
        _judge(mode),
        controls.drop_soft_hyphens,
        whitespace.trim_lines,
        whitespace.drop_blank_lines,
    )


def _judge(mode: str) -> _Pass:
    rules = policy(mode)
    return lambda text: contexts.judge(text, scan.suspects(text, rules), rules)
