"""Bilingual documents with questions, made from a seed: the same seed gives the same documents.

A document is a list of sentences. Most state a fact of their domain (`Teru Bank's net income is 41 million euros.`);
others are loose: random words in random order, so that what makes a sentence the answer is only that it shares with the
question what no other sentence shares. A question is answered by one sentence, by none, or, for a summary, by the
salient ones. What a value looks like says nothing about which sentence holds it. Some facts hold for a year only, and
a question about another year is one that the document does not answer.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from .vocabulary import chinese_characters, word_lists

Language = Literal["zh", "en"]
DOMAINS = ("general", "finance", "law", "medicine", "science")
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DATED = 0.12  # share of facts that hold for one year
_COUNTS = {"zh": "一二三四", "en": ("one", "two", "three", "four")}


@dataclass(frozen=True, slots=True)
class Mix:
    """What documents and questions are made of, in shares.

    loose     of the sentences
    unstated  of the questions: no sentence answers them
    crossed   of the unstated ones: they ask for one known thing's property of another known thing
    led       of the questions: words that the answer need not share stand before them
    """

    loose: float = 0.4
    unstated: float = 0.18
    crossed: float = 0.0
    led: float = 0.0


PLAIN, FACTS_ONLY = Mix(), Mix(loose=0.0)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the indices of the sentences that answer it, in order; none when the document does not say.

    `value` is what a fact's sentence says and nothing more: `41 million euros`.
    """

    text: str
    answers: tuple[int, ...]
    language: Language
    kind: Literal["fact", "loose", "unstated", "summary"]
    value: str = ""


@dataclass(slots=True)
class Document:
    """A domain's tagged or untagged text with questions about it."""

    domain: str
    tag: str
    sentences: list[str] = field(default_factory=list[str])
    questions: list[Question] = field(default_factory=list[Question])


@dataclass(frozen=True, slots=True)
class _Fact:
    language: Language
    name: str
    attribute: str
    kind: str
    year: int = 0  # 0: always


@dataclass(frozen=True, slots=True)
class _Told:
    """What sentence `at` can be asked about: its fact and value, or a loose one's words and kind of value."""

    at: int
    language: Language
    fact: _Fact | None = None
    value: str = ""
    words: tuple[str, ...] = ()
    kind: str = "plain"


@cache
def lexicon() -> Mapping[str, Any]:
    """`lexicon.toml`."""
    return tomllib.loads((files(__package__ or "zlclient.engine.training") / "lexicon.toml").read_text("utf-8"))


def make_document(
    rng: random.Random, facts: int, questions: int, *, language: Language | None = None, mix: Mix = PLAIN
) -> Document:
    """A document of `facts` sentences with `questions` questions, in one language or both."""
    domain = rng.choice(DOMAINS)
    main: Language = language or rng.choice(("zh", "en"))
    document = Document(domain, lexicon()[domain][main]["tag"] if rng.random() < 0.5 else "")
    told: list[_Told] = []
    names: list[tuple[Language, str]] = []
    salient = [0]
    while len(document.sentences) < facts:
        spoken: Language = main if language or rng.random() < 0.85 else ("en" if main == "zh" else "zh")
        at = len(document.sentences)
        if rng.random() < mix.loose:
            sentence, kind, words = _loose(rng, spoken, [item.words for item in told if item.words])
            told.append(_Told(at, spoken, words=words, kind=kind))
        else:
            fact = _fact(rng, domain, spoken, names)
            if any(item.fact and _same(fact, item.fact) for item in told):
                continue
            names.append((spoken, fact.name))
            sentence, value = _state(rng, fact)
            told.append(_Told(at, spoken, fact, value))
        if at and rng.random() < 0.12:
            sentence = rng.choice(lexicon()["wording"][spoken]["salient"]) + sentence
            salient.append(at)
        document.sentences.append(_capitalised(sentence))
    document.questions += _questions(rng, questions, mix, domain, main, told, salient)
    return document


def _questions(
    rng: random.Random, count: int, mix: Mix, domain: str, language: Language, told: list[_Told], salient: list[int]
) -> list[Question]:
    """`count` questions; every sentence is asked about once before one is again."""
    found: list[Question] = []
    left: list[_Told] = []
    while len(found) < count:
        roll = rng.random()
        if roll < mix.unstated:
            crossed = mix.crossed > 0 and rng.random() < mix.crossed
            found.append((crossed and _crossed(rng, language, told)) or _unstated(rng, domain, language, told))
        elif roll < mix.unstated + 0.05:
            found.append(_summary(rng, language, salient))
        else:
            left = left or rng.sample(told, len(told))
            item = left.pop()
            text = _ask(rng, item.fact) if item.fact else _asked_of(rng, item, told)
            kind: Literal["fact", "loose"] = "fact" if item.fact else "loose"
            found.append(Question(text, (item.at,), item.language, kind, item.value))
        if mix.led and rng.random() < mix.led:
            found[-1] = replace(found[-1], text=_lead(rng, domain, found[-1].language) + found[-1].text)
    return found


def _fact(rng: random.Random, domain: str, language: Language, names: list[tuple[Language, str]]) -> _Fact:
    words = lexicon()[domain][language]
    known = [name for spoken, name in names if spoken == language]
    if known and rng.random() < 0.4:
        name = rng.choice(known)
    else:
        name = rng.choice(words["entity"]).format(x=_name(rng, language))
    attribute, kind = rng.choice(list(words["attributes"].items()))
    if rng.random() < 0.3:
        attribute = _phrase(rng, language)
    return _Fact(language, name, attribute, kind, rng.randrange(1990, 2030) if rng.random() < DATED else 0)


def _state(rng: random.Random, fact: _Fact) -> tuple[str, str]:
    """The fact's sentence and the value in it."""
    pattern = rng.choice(lexicon()["wording"][fact.language]["facts"])
    value = _value(rng, fact.kind, fact.language)
    sentence = pattern.format(n=fact.name, a=fact.attribute, v=value, f=_phrase(rng, fact.language))
    if fact.year:
        sentence = f"{fact.year}年，{sentence}" if fact.language == "zh" else f"In {fact.year}, {sentence}"
    return sentence, value


def _ask(rng: random.Random, fact: _Fact) -> str:
    wording = lexicon()["wording"][fact.language]
    word = rng.choice(wording["words"][fact.kind])
    text = rng.choice(wording["asks"]).format(n=fact.name, a=fact.attribute, w=word)
    if not fact.year:
        return text
    return f"{fact.year}年{text}" if fact.language == "zh" else f"{text[:-1]} in {fact.year}{text[-1]}"


def _loose(rng: random.Random, language: Language, others: list[tuple[str, ...]]) -> tuple[str, str, tuple[str, ...]]:
    """A sentence of random words, the kind of value in it, and the words that a question may share with it."""
    words = [_word(rng, language) for _ in range(rng.randrange(3, 10))]
    if others and rng.random() < 0.5:
        words[rng.randrange(len(words))] = rng.choice(rng.choice(others))
    if rng.random() < 0.4:
        words[rng.randrange(len(words))] = rng.choice(rng.choice(_synonyms(language)))
    kind, value = "plain", _word(rng, language)
    if rng.random() < 0.6:
        kind = rng.choice(("number", "number", "money", "date", "date", "person", "percent"))
        value = _value(rng, kind, language)
    glue = lexicon()["wording"][language]["glue"]
    parts: list[str] = []
    for word in rng.sample([*words, value], len(words) + 1):
        parts += [word] if rng.random() < 0.35 else [rng.choice(glue), word]
    sentence = "".join(parts).strip("，") + "。" if language == "zh" else " ".join(parts) + "."
    return sentence, kind, tuple(words)


def _asked_of(rng: random.Random, item: _Told, told: list[_Told]) -> str:
    """A question that shares words with a loose sentence: two or more, or one that no other sentence has."""
    others = {word for other in told if other.at != item.at for word in other.words}
    own = [word for word in item.words if word not in others]
    if own and rng.random() < 0.3:
        words = [rng.choice(own)]
    else:
        words = rng.sample(item.words, rng.randrange(2, min(5, len(item.words) + 1)))
    groups = _synonym_groups(item.language)
    words = [rng.choice(groups[word]) if word in groups and rng.random() < 0.6 else word for word in words]
    if rng.random() < 0.25:
        words.append(_word(rng, item.language))
    return _asked(rng, item.language, words, item.kind if rng.random() < 0.7 else "plain")


def _asked(rng: random.Random, language: Language, words: list[str], kind: str) -> str:
    """A question about `words`, in an order and with glue of its own, after a value of `kind`."""
    wording = lexicon()["wording"][language]
    words = rng.sample(words, len(words))
    body = [part for word in words for part in ((word,) if rng.random() < 0.5 else (rng.choice(wording["glue"]), word))]
    return rng.choice(wording["asked"][kind]).format(b=("" if language == "zh" else " ").join(body))


@cache
def _synonyms(language: Language) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(group.split()) for group in lexicon()["synonyms"][language])


@cache
def _synonym_groups(language: Language) -> Mapping[str, tuple[str, ...]]:
    """Each word's group, the first that has it."""
    found: dict[str, tuple[str, ...]] = {}
    for group in _synonyms(language):
        for word in group:
            found.setdefault(word, group)
    return found


def _unstated(rng: random.Random, domain: str, language: Language, told: list[_Told]) -> Question:
    """A question about a known thing's other property or year, another thing's known property, or unknown words."""
    loose = [item for item in told if item.words]
    facts = [item.fact for item in told if item.fact]
    if loose and (not facts or rng.random() < 0.35):
        item = loose[-1]
        words = [_word(rng, item.language) for _ in range(rng.randrange(2, 4))]
        if rng.random() < 0.3:
            words.append(rng.choice(item.words))
        kind = rng.choice(list(lexicon()["wording"][item.language]["asked"]))
        return Question(_asked(rng, item.language, words, kind), (), item.language, "unstated")
    names = [(fact.language, fact.name) for fact in facts]
    like = [fact for fact in facts if fact.language == language]
    while True:
        fact = _fact(rng, domain, language, names)
        if like and rng.random() < 0.4:
            fact = _other(rng, rng.choice(like), fact)
        if not any(_same(fact, other) for other in facts):
            return Question(_ask(rng, fact), (), language, "unstated")


def _crossed(rng: random.Random, language: Language, told: list[_Told]) -> Question | None:
    """A question for a known thing's property of another known thing; None where the document answers those it tried.

    Every word of such a question stands in the document, only never in one sentence: the hardest one to refuse.
    """
    facts = [item.fact for item in told if item.fact and item.fact.language == language]
    for _ in range(8 if len(facts) > 1 else 0):
        one, other = rng.sample(facts, 2)
        fact = replace(one, name=other.name)
        if not any(_same(fact, stated) for stated in facts):
            return Question(_ask(rng, fact), (), language, "unstated")
    return None


def _other(rng: random.Random, known: _Fact, fresh: _Fact) -> _Fact:
    """`known` of another thing, or, where it has a year, at times of another year."""
    if known.year and rng.random() < 0.5:
        return replace(known, year=rng.choice([year for year in range(1990, 2030) if year != known.year]))
    return replace(known, name=fresh.name)


def _same(asked: _Fact, stated: _Fact) -> bool:
    """Whether `stated` answers `asked`; a question without a year is answered by a fact of any year."""
    alike = (asked.name, asked.attribute) == (stated.name, stated.attribute)
    return alike and (asked.year == stated.year or not asked.year or not stated.year)


def _lead(rng: random.Random, domain: str, language: Language) -> str:
    """Words to stand before a question: an instruction, or what it is about."""
    words = lexicon()[domain][language]
    about = rng.choice(list(words["attributes"])) if rng.random() < 0.5 else _phrase(rng, language)
    return rng.choice(lexicon()["wording"][language]["leads"]).format(x=about)


def _summary(rng: random.Random, language: Language, salient: list[int]) -> Question:
    count = rng.randrange(1, min(4, len(salient)) + 1)
    text = rng.choice(lexicon()["wording"][language]["summary"]).format(k=_COUNTS[language][count - 1])
    if language == "en" and count == 1:
        text = text.replace("sentences", "sentence")
    return Question(text, tuple(salient[:count]), language, "summary")


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _name(rng: random.Random, language: Language) -> str:
    if language == "zh":
        return "".join(rng.choices(chinese_characters(), k=rng.choice((2, 2, 3))))
    if rng.random() < 0.3:
        return rng.choice(word_lists()["content"]).capitalize()
    return "".join(_syllable(rng) for _ in range(rng.choice((2, 2, 3)))).capitalize()


def _word(rng: random.Random, language: Language) -> str:
    if language == "zh":
        return "".join(rng.choices(chinese_characters(), k=rng.choice((1, 2, 2, 2, 3))))
    roll = rng.random()
    if roll < 0.65:
        word = rng.choice(word_lists()["content"])
        return word + rng.choice(("", "", "", "s", "ed", "ing", "er"))
    return _name(rng, "en") if roll < 0.8 else "".join(_syllable(rng) for _ in range(rng.choice((1, 2, 3))))


def _phrase(rng: random.Random, language: Language) -> str:
    return ("" if language == "zh" else " ").join(_word(rng, language) for _ in range(rng.choice((1, 2))))


def _syllable(rng: random.Random) -> str:
    return rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") + rng.choice(("", "", "", "n", "r", "s", "l"))


def _digits(rng: random.Random) -> str:
    number = rng.randrange(10, 10 ** rng.choice((2, 3, 4, 6)))
    roll = rng.random()
    return f"{number:,}" if roll < 0.4 else f"{number / 100:.1f}" if roll < 0.7 else str(number % 1000)


def _value(rng: random.Random, kind: str, language: Language) -> str:
    zh = language == "zh"
    if kind == "number":
        unit = _word(rng, language) if rng.random() < 0.3 else rng.choice("个件人米天次" if zh else ("units", "days"))
        return f"{_digits(rng)}{unit}" if zh else f"{_digits(rng)} {unit}"
    if kind == "money":
        scale = rng.choice(("", "万", "亿") if zh else ("", " million", " billion"))
        return f"{_digits(rng)}{scale}元" if zh else rng.choice(("{}{} euros", "${}{}")).format(_digits(rng), scale)
    if kind == "percent":
        return f"{rng.randrange(1, 999) / 10:.1f}%"
    if kind == "date":
        year, month, day = rng.randrange(1900, 2030), rng.randrange(12), rng.randrange(1, 29)
        return f"{year}年{month + 1}月{day}日" if zh else f"{day} {_MONTHS[month]} {year}"
    if kind == "code":
        return "".join(rng.choices("ABCDEFGHKLMNPRST0123456789", k=rng.choice((4, 5, 6))))
    if kind == "phrase":
        return _phrase(rng, language)
    return _name(rng, language) if zh or rng.random() < 0.5 else f"{_name(rng, 'en')} {_name(rng, 'en')}"
