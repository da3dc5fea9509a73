"""What a text plainly says of a field: under a label, or as the value of its kind that stands nearest to its name.

stated_value("total", "The total of $348.50 is payable by June 17.")  # "$348.50"
stated_value("revenue", "The total of $348.50 is payable by June 17.")  # None
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache

from ..field_names import names_like
from ..field_values import spoken
from ..value_kinds import Span, found, is_bare, kind_of, places_of
from .reading import language_of
from .terms import terms_of

_FAR = 40  # characters from a field's name within which a value of its kind counts as its own
_BEFORE = 3  # how many times as far a value before the name counts as one after it
_SHORT = {"zh": 20, "en": 60}  # characters of what may follow `field is` and be a value as a whole
_COUNTS = frozenset({"quantity", "code"})  # what has units that nobody can list
_UNIT = 12  # characters of a unit, about
_SURE = frozenset({"email", "url", "phone"})  # the only one there is will be meant
# The only one there is may be meant where no other name governs it, as in `revenue of 3 million`, `利润为3元`.
_LONE = frozenset({"money", "date", "percent", "organisation", "address", "role", "title", "code", "person"})
_GOVERNED = re.compile(
    r"(?:\b(?:is|was|are|were|of|to|at|by|CEO|CFO|CTO|[Mm]anager|[Dd]irector|[Pp]resident|[Cc]hair\w*)|[:：为是达]"
    r"|[费额价金款润入率期日间]约?|经理|总裁|董事长?|主任|总监|院长|校长)\s*$"
)
_PART_OF = re.compile(r"^[\u4e00-\u9fff]{1,6}的(?=[\u4e00-\u9fff]{2})")  # 会议的日期
_SET_AT = frozenset({"address", "date", "time"})
_ELSE = {"date": "time", "time": "date", "title": "role"}  # the kind to look for where there is none of the first
_ADDRESSED = re.compile(r"(?:\b(?:[Dd]ear|[Hh]i|[Hh]ello|[Hh]ey)|尊敬的|亲爱的)\s*$")
_SIGNED = re.compile(
    r"(?:[Rr]egards|[Bb]est(?: wishes)?|[Cc]heers|[Tt]hanks|[Ss]incerely|此致|敬上|谢谢)[,，!！.。]?\s*$"
)
_LABEL_END = r"[ \t]*[*`\"”’]*[ \t]*(?:[:：=]|\|)[ \t]*[*`\"“]*[ \t]*"
_COPULA = (
    r"(?:为|是|叫|名为|[:：=]|(?<=[A-Za-z])\s+(?:named"
    r"|(?:is|was|are|were|will be)(?: (?:given|set|fixed|reported|stated|listed) (?:as|at))?)(?=\s))\s*"
)
_SET = r"(?:[设定位改选]?[在于]|[定改]到)(?=\S)"  # 地点在三楼, 时间定于周五
_APPOSED = re.compile(r"\s*[(（](?:the |a |an |以下简称|下称|简称)?[\"“”‘’']?")  # Ines Ferreira (the tenant)
_ENDS = re.compile(r"[。！？\n；;]|(?<!\b[Nn]o)[.!?]\s")
_STOP = re.compile(r",(?!\d{3}(?!\d))|[，。；;、\n！？!?（(|]|(?<!\b[DMS]r)\.(?=\s|$)|\s[-–—]\s|$")


def stated_value(field: str, text: str, others: Iterable[str] = ()) -> str | None:
    """The value of `field` in `text`, as it stands there; None where the text does not say it plainly.

    `others` are fields read from the same text: a place that names one of them does not name this one.
    """
    field = _PART_OF.sub("", field)
    kind = kind_of(field)
    if kind == "date" and field == "时间" and any(kind_of(other) == "date" for other in others if other != field):
        kind = "time"  # beside 日期 it is the time of the day
    spans = found(kind, text) if kind else []
    if kind in _ELSE and not spans:
        spans = found(_ELSE[kind], text)
    names = (field, *names_like(field))
    for name in names:
        told = _labelled(name, text) or _after_copula(name, spans, text)
        if told is not None:
            return _of_kind(kind, told)
    spelled = [name for name in names if len(name) > 1]  # T and F are labels and nothing else
    places = next((found_at for name in spelled if (found_at := _places(name, text, others))), list[Span]())
    if kind is not None and not places and is_bare(field) and len(spans) > 1:
        places = places_of(kind, text)
    value = _nearest(spans, places, text) or _lone(field, kind, spans, text) or _counted(field, text)
    if value is None and kind in ("date", "time") and is_bare(field) and spans:
        return spans[0].text  # what is announced comes first
    return value


def _of_kind(kind: str | None, told: str) -> str:
    """What a label says, or its one value where that is plain to see: of `+1 555 0142 (office)` the number."""
    spans = found(kind, told) if kind in _SURE else []
    return spans[0].text if len(spans) == 1 else told


def _labelled(field: str, text: str) -> str | None:
    """What follows `field:` to the end of its line or clause."""
    names = "|".join(re.escape(name) for name in sorted({field, spoken(field)}, key=len, reverse=True))
    edge = r"(?<![A-Za-z])" if field[:1].isascii() else ""
    match = re.search(
        rf"{edge}(?:{names}){_LABEL_END}(?=\S)|(?m:^)[ \t]*(?:{names})(?:\t| {{2,}})\s*(?=\S)", text, re.IGNORECASE
    )
    if match is None:
        return None
    line_begins = not text[: match.start()].rpartition("\n")[2].strip(" \t-*•#|\"'")
    rest = text[match.end() :]
    line = rest.partition("\n")[0]
    # A label that begins its line has the line; one amid a sentence has its clause.
    alone = line_begins and not re.search(r"[:：]\s?(?!\d)", line)
    value = line if alone else rest[: _stop(rest)]
    return value.strip(" \t*`\"'“”|").rstrip("。；;,，") or None


def _after_copula(field: str, spans: list[Span], text: str) -> str | None:
    """What follows `field is` in its clause: the value of its kind that begins there, or all of a short clause."""
    copula = f"(?:{_COPULA}|{_SET})" if kind_of(field) in _SET_AT else _COPULA
    match = re.search(re.escape(spoken(field)) + copula + r"(?=\S)", text, re.IGNORECASE)
    if match is None:
        return None
    at = match.end()
    value = text[at : at + _stop(text[at:])].strip(" \t\"'“”")
    span = next((span for span in spans if span.start == at), None)
    if span is not None and (kind_of(field) not in _COUNTS or len(value) > len(span.text) + _UNIT):
        return span.text
    if 0 < len(value) <= _SHORT[language_of(value)]:
        return value
    return next((span.text for span in spans if at <= span.start < at + len(value)), None)


def _stop(text: str) -> int:
    match = _STOP.search(text)
    return match.start() if match else len(text)


def _nearest(spans: list[Span], places: list[Span], text: str) -> str | None:
    """The span that stands nearest to a place where the field is named, in the same sentence."""
    best: tuple[float, str] | None = None
    starts = [span.start for span in spans]
    for place in places:
        near = slice(bisect_left(starts, place.start - 2 * _FAR), bisect_left(starts, place.end + _FAR + 1))
        for span in spans[near]:
            after = span.start >= place.start
            between = text[place.end : span.start] if after else text[span.end : place.start]
            if not after and _APPOSED.fullmatch(between):
                return span.text
            distance = float(len(between)) if after else _BEFORE * len(between) + 1.0
            if _ENDS.search(between) or distance > _FAR * (1 if after else 2):
                continue
            distance += 6 * len(re.findall(r"[，,]", between)) - 8 * (len(place.text) - 1)
            if best is None or distance < best[0]:
                best = (distance, span.text)
    return best[1] if best else None


def _lone(field: str, kind: str | None, spans: list[Span], text: str) -> str | None:
    """A value that will be meant although nothing near it names the field: the only one, or who signs a letter."""
    if kind == "person" and is_bare(field):
        signed = [span for span in spans if _SIGNED.search(_before(span, text))]
        others = [span for span in spans if not _ADDRESSED.search(_before(span, text))]
        return next((span.text for span in (*signed, *others)), None)
    if len(spans) != 1:
        return None
    if kind in _SURE or is_bare(field) or (kind in _LONE and not _GOVERNED.search(_before(spans[0], text))):
        return spans[0].text
    return None


def _before(span: Span, text: str) -> str:
    return text[max(0, span.start - _FAR) : span.start]


def _counted(field: str, text: str) -> str | None:
    """A number or code right after the field's name: `platform 4`, 员工总数3200人."""
    name = re.escape(spoken(field))
    match = re.search(name + r"\s?(?P<value>[#A-Za-z]{0,4}\d[\d,.:/-]*[\w%]{0,6})", text, re.IGNORECASE)
    return match["value"].rstrip(".,:/-") if match else None


def _places(field: str, text: str, others: Iterable[str]) -> list[Span]:
    """Where `text` names the field, or has a word of its name; not where it names another."""
    longer = [spoken(other).lower() for other in others if other != field]

    def names_another(place: Span) -> bool:
        rest = text[place.start : place.start + max(map(len, longer), default=0)].lower()
        return any(len(name) > len(place.text) and rest.startswith(name) for name in longer)

    return [place for place in _named(spoken(field), text) if not names_another(place)]


def _named(name: str, text: str) -> list[Span]:
    whole = _all(name, text)
    if whole:
        return whole
    if language_of(name) == "zh":
        sizes = (3, 2) if len(name) > 3 else (2,)
        parts = (part for size in sizes for part in (name[:size], name[-size:]))
        return next((places for part in parts if (places := _all(part, text))), list[Span]())
    words_of = name.split()
    for size in range(len(words_of) - 1, 1, -1):  # `check-in` for a check-in date
        for at in range(len(words_of) - size + 1):
            phrase = r"[ -]".join(map(re.escape, words_of[at : at + size]))
            if places := _matches(rf"\b{phrase}\b", text):
                return places
    wanted = set(terms_of(name))
    words = re.finditer(r"[A-Za-z][A-Za-z'-]*", text)
    return [Span(match[0], match.start()) for match in words if wanted & set(_word_terms(match[0]))]


def _all(part: str, text: str) -> list[Span]:
    edge = r"\b" if part.isascii() else ""
    return _matches(f"{edge}{re.escape(part)}{edge}", text)


def _matches(pattern: str, text: str) -> list[Span]:
    return [Span(match[0], match.start()) for match in re.finditer(pattern, text, re.IGNORECASE)]


@cache
def _word_terms(word: str) -> tuple[str, ...]:
    return tuple(terms_of(word))
