"""The offline responder: no model, only what the request itself holds.

A question about a given text gets the sentence of the text that answers it best, a summary request gets its most
telling sentences in the asked number, anything else gets a line that says what this is. The same request always gets
the same answer.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from .base import Ask, Event, Responder, Text, Thinking, text_of
from .reading import Language, Reading, language_of, read, sentences

NOT_STATED: Mapping[Language, str] = {
    "zh": "文中没有提到这一点。",
    "en": "The text does not state this.",
}
PLAIN: Mapping[Language, str] = {
    "zh": "这是 zlclient 的离线应答器，没有模型在运行：请附上一段文本和问题。",
    "en": "This is zlclient's offline responder; no model is running. Give it a text with a question.",
}
THOUGHT: Mapping[Language, str] = {
    "zh": "离线应答器只比对词语，没有推理。",
    "en": "The offline responder compares words; it does not reason.",
}
DEFAULT_SENTENCES = 3
# Of what the question is about, weighed by rarity, a sentence must share this much to count as its answer.
ENOUGH = 0.34
# The part of it that is enough for the only sentence of the kind that is asked for (with a date, a number, a name, …).
ALONE = 0.7
# What a sentence of another kind keeps of its score, and how much the sentences around one add to it.
UNFITTING, CONTEXT = 0.55, 0.3
# How much more what a question is after counts than what it is about.
FOCUS = 2.0
# How much a single Chinese character counts beside a pair.
SINGLE = 0.25
_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d[\d,.]*\d|\d|[\u3400-\u9fff]+")
_CHINESE = dict(zip("一两二三四五六七八九十", (1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10), strict=True))
_ENGLISH = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
_NUMERALS = {**_CHINESE, **_ENGLISH}
_ASKED_COUNT = re.compile(
    r"(\d+|[一两二三四五六七八九十])\s*(?:个|条)?\s*(?:句|要点|点)"
    r"|\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten|a single)[\s-]+"
    r"(?:short |brief |concise |key |main |bullet )?(?:sentences?|points?|bullets?|lines?)",
    re.IGNORECASE,
)


class OfflineResponder(Responder):
    """Answers every ask from its own text; the last of a chain."""

    name = "offline"

    def respond(self, ask: Ask) -> Iterable[Event]:
        """One Text event, with a Thinking event before it where thinking is on."""
        text = Text(answer(ask))
        return (Thinking(THOUGHT[language_of(ask.question)]), text) if ask.thinking else (text,)


def answer(ask: Ask) -> str:
    """The whole answer, in the language of the question."""
    results = ask.tool_results
    if results:
        found = "\n".join(text_of(block) for block in results).strip()
        return found or PLAIN[language_of(ask.question)]
    reading = read(ask)
    if not reading.passage:
        return PLAIN[reading.language]
    if reading.wants_summary or not reading.question:
        return summary(reading)
    return best_sentence(reading) or NOT_STATED[reading.language]


def summary(reading: Reading) -> str:
    """The most telling sentences in the order of the text, as many as asked (3 unless told)."""
    told = sentences(reading.passage)
    wanted = asked_count(reading.question)
    if len(told) > wanted:
        terms = [Counter(terms_of(sentence)) for sentence in told]
        frequency = Counter(term for counted in terms for term in counted)
        scores = [_salience(counted, frequency, at, len(told)) for at, counted in enumerate(terms)]
        chosen = sorted(sorted(range(len(told)), key=lambda at: -scores[at])[:wanted])
        told = [told[at] for at in chosen]
    joint = "" if language_of(reading.passage) == "zh" else " "
    return joint.join(told)


def asked_count(question: str) -> int:
    """How many sentences a summary should have."""
    match = _ASKED_COUNT.search(question)
    if not match:
        return DEFAULT_SENTENCES
    word = (match[1] or match[2]).lower()
    return max(1, int(word) if word.isdigit() else _NUMERALS.get(word, 1))


def _salience(terms: Counter[str], frequency: Counter[str], at: int, total: int) -> float:
    """The mean weight of a sentence's terms, favouring the first sentences, as news and reports put first what
    matters."""
    if not terms:
        return 0.0
    centrality = sum(math.log1p(frequency[term]) for term in terms) / (len(terms) + 4)
    return centrality * (1.6 if at == 0 else 1.0 + 0.3 * (1 - at / total))


def best_sentence(reading: Reading) -> str | None:
    """The sentence of the passage that answers the question, or None when none is about it."""
    told = sentences(reading.passage)
    wanted = set(terms_of(reading.question))
    if not told or not wanted:
        return told[0] if told else None
    bags = [set(terms_of(sentence)) for sentence in told]
    focus = _focus(reading.question)
    weight = {term: _rarity(term, bags) * (FOCUS if term in focus else 1.0) for term in wanted}
    total = sum(weight.values())
    shares = [sum(weight[term] for term in wanted & bag) / total for bag in bags]
    cues = [cue for cue in _lexicon().cues if cue.question.search(reading.question)]
    fitting = [any(re.search(cue.sentence, sentence) for cue in cues) for sentence in told]
    scores = [
        # A sentence goes on from the one before it, and from the first, which names what the text is about.
        (share + CONTEXT * max(shares[at - 1] if at else 0.0, 0.6 * shares[0]))
        * (1.0 if fitting[at] or not cues else UNFITTING)
        * (share > 0)
        for at, share in enumerate(shares)
    ]
    best = max(range(len(told)), key=lambda at: (scores[at], -at))
    enough = ENOUGH * (ALONE if sum(fitting) == 1 and fitting[best] else 1.0)
    return told[best] if scores[best] >= enough else None


def terms_of(text: str) -> list[str]:
    """The terms of `text` that matter: English stems, numbers, Chinese character pairs; synonyms as one."""
    return _terms(text) if len(text) > 400 else list(_cached_terms(text))


@lru_cache(maxsize=512)
def _cached_terms(text: str) -> tuple[str, ...]:
    return tuple(_terms(text))


def stop_words() -> frozenset[str]:
    """English words too common to say what a text is about."""
    return _lexicon().stop_en


def _terms(text: str) -> list[str]:
    lexicon = _lexicon()
    found: list[str] = []
    for run in _WORD.findall(text):
        if run[0] >= "\u3400":
            found += _chinese_terms(run, lexicon)
            continue
        word = run.lower().removesuffix("'s")
        if word in lexicon.stop_en:
            continue
        found.append(lexicon.synonyms.get(word) or _stem(word))
    return found


def _chinese_terms(run: str, lexicon: _Lexicon) -> list[str]:
    found: list[str] = []
    for word, name in lexicon.chinese_synonyms:
        if word in run:
            found.append(name)
            run = run.replace(word, " ")
    for part in lexicon.stop_zh.split(run):
        found += part  # single characters too: 修建 and 始建 share one
        found += [part[at : at + 2] for at in range(len(part) - 1)]
    return found


def _stem(word: str) -> str:
    """A word without its ending, cut to six letters, so that delivered, delivery and deliveries meet."""
    for ending in ("ies", "ing", "ers", "er", "ed", "es", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:6]


def _focus(question: str) -> set[str]:
    """The terms of what is asked for, "profit" in "what is the profit of X?"; empty where the form does not say."""
    found = (pattern.search(question) for pattern in _lexicon().focus)
    return {term for match in found if match for term in terms_of(match[1])}


def _rarity(term: str, bags: list[set[str]]) -> float:
    """How much a term says: more when few sentences have it, less for a single Chinese character than for a pair."""
    size = SINGLE if len(term) == 1 and term >= "\u3400" else 1.0
    return size * math.log(1 + (len(bags) + 1) / (1 + sum(term in bag for bag in bags)))


@dataclass(frozen=True, slots=True)
class _Cue:
    """Patterns of a kind of question and of the sentences that answer it; `sentence` is compiled when first needed."""

    question: re.Pattern[str]
    sentence: str


@dataclass(frozen=True, slots=True)
class _Lexicon:
    stop_en: frozenset[str]
    stop_zh: re.Pattern[str]
    synonyms: Mapping[str, str]
    chinese_synonyms: tuple[tuple[str, str], ...]
    focus: tuple[re.Pattern[str], ...]
    cues: tuple[_Cue, ...]


@cache
def _lexicon() -> _Lexicon:
    text = (files("zlclient.serving") / "data" / "offline.toml").read_text("utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    groups: list[list[str]] = data["synonyms"]
    stop_zh = sorted(data["stop_zh"].split(), key=len, reverse=True)
    return _Lexicon(
        stop_en=frozenset(data["stop_en"].split()),
        stop_zh=re.compile("|".join([" ", *map(re.escape, stop_zh)])),
        synonyms={word: f"={group[0]}" for group in groups for word in group if word.isascii()},
        chinese_synonyms=tuple((word, f"={group[0]}") for group in groups for word in group if not word.isascii()),
        focus=tuple(re.compile(pattern) for pattern in data["focus"]),
        # The marks of names and places are in the letters' case, so only the question ignores it.
        cues=tuple(_Cue(re.compile(cue["question"], re.IGNORECASE), cue["sentence"]) for cue in data["cue"]),
    )
