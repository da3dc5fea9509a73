"""House rules: one project's taste, without public evidence. Off unless selected."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, ClassVar

from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..kinds import MASK
from ..lexicon import holds
from ..rule import Rule
from ._text import delete_sentence, phrase_hits
from .wording import PhraseRule

_CJK = re.compile(r"[\u4e00-\u9fff]")
_TAG = re.compile(r"【[^】\n]{2,20}】")


class DomainTagMissing(Rule):
    code, slug, severity, default = "ZL901", "domain-tag-missing", "info", False
    message = "A factual question without a domain tag such as 【财经数据】"

    def check(self, doc: Document) -> Iterable[Finding]:
        tags = doc.options.get("domain-tags")
        for prompt in doc.prompts:
            whole = "".join(block.text for block in prompt)
            known = any(f"【{tag.strip('【】')}】" in whole for tag in tags) if tags else _TAG.search(whole)
            if known:
                continue
            for block in prompt:
                for sentence in block.sentences if block.role != "system" else ():
                    if "zh" in block.languages and holds("factual", sentence.text, frozenset(("zh",))):
                        yield self.in_block(block, sentence.start, sentence.end)
                        return


class AnchorDensity(Rule):
    code, slug, severity, default = "ZL902", "anchor-density", "info", False
    message = "{share} % of the lines are headings, list items, tags or `key:` lines; the threshold is {limit} %"
    _anchor = re.compile(r"^\s*(?:#{1,6}\s|[-*+•]\s|\d{1,3}[.)、]|<[\w/]|【|\*\*|\||[\w\u4e00-\u9fff ]{1,24}[:：])")

    def check(self, doc: Document) -> Iterable[Finding]:
        limit = float(doc.options.get("anchor-density", 0.3))
        for block in doc.blocks:
            if block.role not in ("system", "developer", None) or len(block.text) < 600:
                continue
            lines = [line for line in block.text.split("\n") if line.strip()]
            share = sum(bool(self._anchor.match(line)) for line in lines) / len(lines)
            if share < limit:
                yield self.in_block(block, 0, block.line_at(0).end, share=round(share * 100), limit=round(limit * 100))


class TemperatureRange(Rule):
    code, slug, fix, default = "ZL903", "temperature-range", "unsafe", False
    message = "temperature {value} is outside this project's {low} to {high}"

    def check(self, doc: Document) -> Iterable[Finding]:
        low, high = doc.options.get("temperature-range", (0.3, 0.4))
        for use in doc.models:
            option = use.options.get("temperature")
            value: Any = option.value if option else None
            if option is None or isinstance(value, bool) or not isinstance(value, (int, float)) or low <= value <= high:
                continue
            # Where the model rejects any temperature, ZL401 says so; a range would be bad advice.
            if use.target is None or use.target.takes_sampling(None):
                near = low if value < low else high
                fix = Fix(f"Use {near}", (Edit(*option.place, str(near)),), "unsafe", ("front-matter",))
                yield self.found(option.place, fix, value=value, low=low, high=high)


class EmptyGuarantee(PhraseRule):
    code, slug, fix, default = "ZL904", "empty-guarantee", "unsafe", False
    message = "`{phrase}` cannot be checked; name the source or the test instead"
    lexicon = "guarantee"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, sentence, start, end, phrase in phrase_hits(doc, self.lexicon):
            fix = delete_sentence(doc, block, sentence, "Delete the sentence")
            short = len(sentence.text.replace(MASK, "")) <= len(phrase) + 16
            yield self.in_block(block, start, end, fix if short else None, phrase=phrase)


class BribeOrThreat(PhraseRule):
    code, slug, fix, default = "ZL905", "bribe-or-threat", "unsafe", False
    message = "`{phrase}` is folklore; say what a good answer holds"
    lexicon = "bribe"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, sentence, start, end, phrase in phrase_hits(doc, self.lexicon):
            yield self.in_block(
                block, start, end, delete_sentence(doc, block, sentence, "Delete the sentence"), phrase=phrase
            )


class Flattery(PhraseRule):
    code, slug, severity, default = "ZL906", "flattering-persona", "info", False
    message = "`{phrase}` tells the model nothing about the task"
    lexicon = "flattery"


class HalfWidthPunctuation(Rule):
    code, slug, severity, fix, default = "ZL907", "half-width-punctuation", "info", "safe", False
    message = "`{char}` between Chinese characters; write `{wide}`"
    _pattern = re.compile(r"(?<=[\u4e00-\u9fff])(?P<char>[,;!?])(?=[ ]?[\u4e00-\u9fff])")
    _wide: ClassVar[dict[str, str]] = {",": "，", ";": "；", "!": "！", "?": "？"}

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            for match in self._pattern.finditer(block.prose):
                span = block.span(*match.span())
                wide = self._wide[match["char"]]
                fix = Fix(f"Write {wide}", (Edit(*span, wide),)) if doc.text[span[0]] == match["char"] else None
                yield self.in_block(block, *match.span(), fix, char=match["char"], wide=wide)
