"""The offline responder: no model, only what the request itself holds.

A question about a given text gets the sentence of the text that answers it best, a summary request gets its most
telling sentences in the asked number, anything else gets a line that says what this is. The same request always gets
the same answer.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from .base import Ask, Event, Responder, Text, Thinking, text_of
from .everyday import NOT_STATED, fields_read, settled
from .forms import Form, form_of
from .reading import Language, Reading, language_of, questions_of, read, sentences
from .talk import without_text
from .terms import lexicon, terms_of

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
_LABELLED = re.compile(r"^[\W_]*([^:：=\n]{1,32}?)\s*[:：=]\s*\S")  # port = 8443
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
    r"(\d+|[一两二三四五六七八九十])\s*个?\s*(?:句|要点|点|条)"
    r"|\b(\d+|one|two|three|four|five|six|seven|eight|nine|ten|a single)[\s-]+"
    r"(?:(?:short|brief|concise|key|main|bullet|important|crisp) )*"
    r"(?:sentences?|points?|bullets?|lines?|takeaways|items)",
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
        return found or without_text(language_of(ask.question))
    reading = read(ask)
    form = form_of(reading.request)
    said = settled(reading, form)
    if said is not None:
        return said
    if form.fields:
        return fields_read(form, reading, lambda _: None)
    if reading.wants_summary or not reading.question:
        return summary(reading, form)
    found = [best_sentence(replace(reading, question=one)) for one in questions_of(reading.question)]
    told = list(dict.fromkeys(sentence for sentence in found if sentence))
    joint = "" if language_of(reading.passage) == "zh" else " "
    return joint.join(told) or NOT_STATED[reading.language]


def summary(reading: Reading, form: Form) -> str:
    """The most telling sentences in the order of the text, as many as asked (3 unless told), in the form asked for."""
    told = sentences(reading.passage)
    wanted = asked_count(reading.question)
    if len(told) > wanted:
        terms = [Counter(terms_of(sentence)) for sentence in told]
        frequency = Counter(term for counted in terms for term in counted)
        scores = [_salience(counted, frequency, at, len(told)) for at, counted in enumerate(terms)]
        chosen = sorted(sorted(range(len(told)), key=lambda at: -scores[at])[:wanted])
        told = [told[at] for at in chosen]
    return form.lay_out(told, "" if language_of(reading.passage) == "zh" else " ")


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
    for sentence in told:
        labelled = _LABELLED.match(sentence)
        if labelled and (named := set(terms_of(labelled[1]))) and named <= wanted:
            return sentence
    focus = _focus(reading.question)
    weight = {term: _rarity(term, bags) * (FOCUS if term in focus else 1.0) for term in wanted}
    total = sum(weight.values())
    shares = [sum(weight[term] for term in wanted & bag) / total for bag in bags]
    cues = [cue for cue in lexicon().cues if cue.question.search(reading.question)]
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


def _focus(question: str) -> set[str]:
    """The terms of what is asked for, "profit" in "what is the profit of X?"; empty where the form does not say."""
    found = (pattern.search(question) for pattern in lexicon().focus)
    return {term for match in found if match for term in terms_of(match[1])}


def _rarity(term: str, bags: list[set[str]]) -> float:
    """How much a term says: more when few sentences have it, less for a single Chinese character than for a pair."""
    size = SINGLE if len(term) == 1 and term >= "\u3400" else 1.0
    return size * math.log(1 + (len(bags) + 1) / (1 + sum(term in bag for bag in bags)))
