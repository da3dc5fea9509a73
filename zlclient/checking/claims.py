"""Which numbers of an answer say something about the world, and which only hold the answer together."""

from __future__ import annotations

import re
from functools import cache

from . import lexicon
from .numbers import Quantity
from .numerals import DIGIT
from .text import alternatives

# "1." and （二） at a line's start, 2.1 in a heading, [3] as a reference, addresses.
_MARKS = re.compile(
    r"(?m:^)[ \t>*•-]*(?:#{1,6}[ ]*(?:[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}[ .、)])?"
    r"|\(?[0-9]{1,3}(?:\.[0-9]{1,2}){0,2}(?:[、)]|\.(?![0-9])))"
    rf"|(?m:^)[ \t>*•#-]*(?:第?[{DIGIT}十]{{1,3}}[、.:，,]|\([{DIGIT}十]{{1,3}}\))"
    r"|\[[0-9]{1,3}(?:[,-][ ]?[0-9]{1,3}){0,8}\]"
    r"|https?://[^\s<>\u4e00-\u9fff]+"
)
# Places in a law or a book are facts although they are ordinals.
_CITED = frozenset("条款项章节编页号届")
_SMALL = 20


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    words = lexicon.words()
    return (
        re.compile(alternatives(words.idioms)),
        re.compile(r"[ ]?个?(?:大|条)?[ ]?" + alternatives(words.structure), re.I),
        re.compile(alternatives(words.structure_before) + r"[ ]?\Z", re.I),
    )


def no_claims(folded: str) -> bytearray:
    """Set where a number is no fact: idioms, list and heading marks, references, addresses."""
    mask = bytearray(len(folded))
    for pattern in (_patterns()[0], _MARKS):
        for match in pattern.finditer(folded):
            mask[match.start() : match.end()] = b"\x01" * (match.end() - match.start())
    return mask


def is_claim(folded: str, quantity: Quantity, mask: bytearray) -> bool:
    """Whether a number of the answer is reported.

    Left out: what `mask` covers, ordinals (第一, 第二个; not 第十二条), counts of the answer's own parts (三个方面),
    and Chinese numerals of one character without a unit, or 一 with a mere counting word (一个, 一家).
    """
    written = _digits_at(folded, quantity)
    if mask[written]:
        return False
    if quantity.code or quantity.step == 0:
        return True
    end = quantity.end
    if folded[quantity.start - 1 : quantity.start] == "第":
        cited = folded[end - 1] in _CITED or folded[end : end + 1] in _CITED
        return cited and (folded[written].isascii() or quantity.value >= _SMALL / 2 or folded[end - 1] in "条章编")
    if quantity.value <= _SMALL and _is_structure(folded, quantity, written):
        return False
    if folded[written] not in "一二两三四五六七八九十零〇":
        return True
    counts_only = quantity.unit is None or quantity.unit.dimension in (None, "count")
    length = _numeral_end(folded, quantity, written) - written
    if length == 1:
        return quantity.unit is not None and not (counts_only and quantity.value in (0, 1))
    return True


def _is_structure(folded: str, quantity: Quantity, written: int) -> bool:
    _, after, before = _patterns()
    if after.match(folded, _numeral_end(folded, quantity, written)):
        return True
    return before.search(folded, max(0, quantity.start - 10), quantity.start) is not None


def _digits_at(folded: str, quantity: Quantity) -> int:
    """Where the digits begin, behind sign and currency."""
    match = _FIRST_DIGIT.search(folded, quantity.start, quantity.end)
    return match.start() if match else quantity.start


def _numeral_end(folded: str, quantity: Quantity, written: int) -> int:
    match = _RUN.match(folded, written, quantity.end)
    return match.end() if match else quantity.end


_FIRST_DIGIT = re.compile(f"[0-9{DIGIT}十百千万]")
_RUN = re.compile(f"[0-9.,]+|[{DIGIT}十拾百千万亿点]+")
