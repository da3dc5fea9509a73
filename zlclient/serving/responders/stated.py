"""What a text plainly says of a field: under a label, or as the value of its kind that stands nearest to its name.

stated_value("total", "The total of $348.50 is payable by June 17.")  # "$348.50"
stated_value("revenue", "The total of $348.50 is payable by June 17.")  # None
"""

from __future__ import annotations

import re
from functools import cache

from ..field_values import spoken
from ..value_kinds import Span, found, is_bare, kind_of
from .reading import language_of
from .terms import terms_of

_FAR = 40  # characters from a field's name within which a value of its kind counts as its own
_BEFORE = 3  # how many times as far a value before the name counts as one after it
_SURE = frozenset({"email", "url", "phone"})  # the only one there is will be meant
_LABEL_END = r"[ \t]*[*`\"”’]*[ \t]*(?:[:：=]|\|)[ \t]*[*`\"“]*[ \t]*"
_COPULA = r"(?:为|是|叫|名为|[:：=]|(?<=[A-Za-z])\s+(?:is|was|are|were|will be|named)(?=\s))\s*"
_APPOSED = re.compile(r"\s*[(（](?:the |a |an |以下简称|下称|简称)?[\"“”‘’']?")  # Ines Ferreira (the tenant)
_ENDS = re.compile(r"[。！？\n；;]|(?<!\b[Nn]o)[.!?]\s")
_STOP = re.compile(r"[，,。；;、\n！？!?（(|]|\.(?=\s|$)|\s[-–—]\s|$")


def stated_value(field: str, text: str) -> str | None:
    """The value of `field` in `text`, as it stands there; None where the text does not say it plainly."""
    labelled = _labelled(field, text)
    if labelled is not None:
        return labelled
    kind = kind_of(field)
    places = _places(field, text)
    if kind is not None:
        spans = found(kind, text)
        if not spans and kind in ("date", "time"):
            spans = found("time" if kind == "date" else "date", text)
        near = _nearest(spans, places, text)
        if near is not None:
            return near
        if spans and (len(spans) == 1 or kind == "person") and (kind in _SURE or is_bare(field)):
            return spans[0].text
    return _after_copula(field, text)


def _labelled(field: str, text: str) -> str | None:
    """What follows `field:` to the end of its line or clause."""
    names = "|".join(re.escape(name) for name in sorted({field, spoken(field)}, key=len, reverse=True))
    edge = r"(?<![A-Za-z])" if field[:1].isascii() else ""
    match = re.search(rf"{edge}(?:{names}){_LABEL_END}(?=\S)", text, re.IGNORECASE)
    if match is None:
        return None
    line_begins = not text[: match.start()].rpartition("\n")[2].strip(" \t-*•#|\"'")
    rest = text[match.end() :]
    line = rest.partition("\n")[0]
    # A label that begins its line has the line; one amid a sentence has its clause.
    alone = line_begins and len(re.findall(r"[:：]\s?(?!\d)", line)) == 0
    value = line if alone else rest[: _stop(rest)]
    value = value.strip(" \t*`\"'“”|").rstrip("。；;,，")
    return value or None


def _stop(text: str) -> int:
    match = _STOP.search(text)
    return match.start() if match else len(text)


def _after_copula(field: str, text: str) -> str | None:
    """What follows `field is`, in its clause."""
    name = re.escape(spoken(field))
    match = re.search(rf"{name}(?:{_COPULA}(?=\S)|(?=\d))", text, re.IGNORECASE)
    if match is None:
        return None
    rest = text[match.end() :]
    value = rest[: _stop(rest)].strip(" \t\"'“”")
    return value if 0 < len(value) <= 60 else None


def _nearest(spans: list[Span], places: list[Span], text: str) -> str | None:
    """The span that stands nearest to a place where the field is named, in the same sentence."""
    best: tuple[float, str] | None = None
    for place in places:
        for span in spans:
            if span.start >= place.start:
                between = text[place.end : span.start]
                distance = float(max(0, span.start - place.end))
            else:
                between = text[span.end : place.start]
                distance = float(_BEFORE * max(0, place.start - span.end) + 1)
            if _APPOSED.fullmatch(between):
                return span.text
            if _ENDS.search(between) or distance > _FAR * (1 + (span.start < place.start)):
                continue
            distance += 6 * len(re.findall(r"[，,]", between)) - 8 * (len(place.text) - 1)
            if best is None or distance < best[0]:
                best = (distance, span.text)
    return best[1] if best else None


def _places(field: str, text: str) -> list[Span]:
    """Where `text` names the field, or has a word of its name."""
    name = spoken(field)
    whole = [Span(match[0], match.start()) for match in re.finditer(re.escape(name), text, re.IGNORECASE)]
    if whole:
        return whole
    if language_of(name) == "zh":
        sizes = (3, 2) if len(name) > 3 else (2,)
        for part in (part for size in sizes for part in (name[:size], name[-size:])):
            places = [Span(match[0], match.start()) for match in re.finditer(re.escape(part), text)]
            if places:
                return places
        return []
    wanted = set(terms_of(name))
    return [
        Span(match[0], match.start())
        for match in re.finditer(r"[A-Za-z][A-Za-z'-]*", text)
        if wanted & set(_word_terms(match[0]))
    ]


@cache
def _word_terms(word: str) -> tuple[str, ...]:
    return tuple(terms_of(word))
