"""The words of texts: which matter, which mean the same, what a kind of question looks for (`data/offline.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d[\d,.]*\d|\d|[\u3400-\u9fff]+")


def terms_of(text: str) -> list[str]:
    """The terms of `text` that matter: English stems, numbers, Chinese character pairs; synonyms as one."""
    return _terms(text) if len(text) > 400 else list(_cached_terms(text))


@lru_cache(maxsize=512)
def _cached_terms(text: str) -> tuple[str, ...]:
    return tuple(_terms(text))


def stop_words() -> frozenset[str]:
    """English words too common to say what a text is about."""
    return lexicon().stop_en


def _terms(text: str) -> list[str]:
    words = lexicon()
    found: list[str] = []
    for run in _WORD.findall(text):
        if run[0] >= "\u3400":
            found += _chinese_terms(run, words)
            continue
        word = run.lower().removesuffix("'s")
        if word in words.stop_en:
            continue
        found.append(words.synonyms.get(word) or words.synonyms.get(word.removesuffix("s")) or _stem(word))
    return found


def _chinese_terms(run: str, words: Lexicon) -> list[str]:
    found: list[str] = []
    for word, name in words.chinese_synonyms:
        if word in run:
            found.append(name)
            run = run.replace(word, " ")
    for part in words.stop_zh.split(run):
        found += part  # single characters too: 修建 and 始建 share one
        found += [part[at : at + 2] for at in range(len(part) - 1)]
    return found


def _stem(word: str) -> str:
    """A word without its ending, cut to six letters: delivered and deliveries meet, and so do moved and move."""
    for ending in ("ies", "ing", "ers", "er", "ed", "es", "s", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending)
            break
    return word[:6].removesuffix("e")


@dataclass(frozen=True, slots=True)
class Cue:
    """Patterns of a kind of question and of the sentences that answer it; `sentence` is compiled when first needed."""

    question: re.Pattern[str]
    sentence: str


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Stop words, synonyms, and the patterns of questions."""

    stop_en: frozenset[str]
    stop_zh: re.Pattern[str]
    synonyms: Mapping[str, str]
    chinese_synonyms: tuple[tuple[str, str], ...]
    focus: tuple[re.Pattern[str], ...]
    cues: tuple[Cue, ...]


@cache
def lexicon() -> Lexicon:
    """`offline.toml`."""
    text = (files("zlclient.serving") / "data" / "offline.toml").read_text("utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    groups: list[list[str]] = data["synonyms"]
    stop_zh = sorted(data["stop_zh"].split(), key=len, reverse=True)
    return Lexicon(
        stop_en=frozenset(data["stop_en"].split()),
        stop_zh=re.compile("|".join([" ", *map(re.escape, stop_zh)])),
        synonyms={word: f"={group[0]}" for group in groups for word in group if word.isascii()},
        chinese_synonyms=tuple((word, f"={group[0]}") for group in groups for word in group if not word.isascii()),
        focus=tuple(re.compile(pattern) for pattern in data["focus"]),
        # The marks of names and places are in the letters' case, so only the question ignores it.
        cues=tuple(Cue(re.compile(cue["question"], re.IGNORECASE), cue["sentence"]) for cue in data["cue"]),
    )
