"""Wording: instructions that can be read two ways, or cannot be followed."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import compress, islice
from operator import eq
from string import ascii_uppercase
from typing import ClassVar

from ..block import Block
from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..kinds import MASK
from ..lexicon import holds, latin_words, lowered, matches, words
from ..rule import Rule
from ..wordset import words_of
from ._text import delete_sentence, fix_in, forbids, phrase_hits

_SHOUTED = "CRITICAL MUST NEVER ALWAYS IMPORTANT ABSOLUTELY STRICTLY MANDATORY NOT DON ONLY ALL ANY WARNING REQUIRED"
_SMALL = "the and of to is are in for with on at by a an this or it you your be not will should must"


class PhraseRule(Rule):
    """A rule that is one word list."""

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, _, start, end, phrase in phrase_hits(doc, self.lexicon, self.counts):
            yield self.in_block(block, start, end, phrase=phrase)

    def counts(self, block: Block) -> bool:
        """Whether the list is meant in this block; rules with context override it."""
        del block
        return True


class VagueVerb(PhraseRule):
    code, slug = "ZL301", "vague-verb"
    message = "`{phrase}` names no count, criterion or form; say what to look for and how to give it"
    lexicon = "vague_verb"

    def counts(self, block: Block) -> bool:
        # One sharp detail anywhere near makes the verb a summary of what is spelled out.
        if len(block.prose.replace(MASK, "").strip()) > 600:
            return False
        return not holds("specific", block.text, block.languages) and not re.search(
            r"\d|[:：]\s*\n|^\s*[-*]", block.text, re.M
        )


class Hedge(PhraseRule):
    code, slug = "ZL302", "hedged-instruction"
    message = "`{phrase}` leaves open whether to do it; say when it applies, or drop it"
    lexicon = "hedge"


class NegativeOnly(Rule):
    code, slug, severity = "ZL303", "negative-only", "info"
    lexicon = "form_ban"
    message = "This only says what not to do; say what to do instead"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            languages = block.languages & doc.languages
            bans = [match.span() for match in matches("form_ban", block.prose, languages)]
            sentences = block.sentences if bans else ()
            for index, sentence in enumerate(sentences):
                is_near = any(start < sentence.end and sentence.start < end for start, end in bans)
                if not is_near or not holds("form_ban", sentence.text, languages):
                    continue
                near = lowered(" ".join(s.text for s in sentences[max(0, index - 2) : index + 3]))
                for ban in list(matches("form_ban", near, languages)):
                    near = near.replace(ban[0], "")
                if not holds("alternative", near, languages):
                    yield self.in_block(block, sentence.start, sentence.end)


class Shouting(Rule):
    code, slug, fix = "ZL304", "shouting", "unsafe"
    message = "{count} shouted words in {size} characters; current models over-react to them, so say it once, calmly"
    _words = frozenset(word.encode() for word in words_of(_SHOUTED))
    _only_capitals = bytes(code if chr(code) in ascii_uppercase else 32 for code in range(256))
    _english = re.compile(
        r"(?:CRITICAL|MUST|NEVER|ALWAYS|IMPORTANT|ABSOLUTELY|STRICTLY|MANDATORY|DO NOT|DON'T|ONLY|ALL"
        r"|ANY|WARNING|REQUIRED|!!!+)(?:(?<=!)|\b(?!\s*[A-Z]{3,}))"
    )
    # Words louder than the plain must and must not, which Chinese writes as it writes all else.
    _chinese = re.compile(r"务必|严禁|绝对不|千万(?=别|不|要|记)|！！+")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            prose = block.prose
            capitals = prose.encode("latin-1", "replace").translate(self._only_capitals).split()
            hits: list[re.Match[str]] = []
            if "!!!" in prose or sum(map(self._words.__contains__, capitals)) >= 3 - 2 * ("zh" in block.languages):
                found = (match for match in self._english.finditer(prose) if not _continues_word(prose, match.start()))
                hits = [match for match in found if not _in_heading(block, match.start())]
            if "zh" in block.languages:
                hits += list(self._chinese.finditer(prose))
            if len(hits) < 3:
                continue
            size = len(prose.replace(MASK, "").strip())
            # Three in a short prompt, or more than four a thousand characters in a long one.
            if len(hits) * 1000 > size * (6 if len(hits) == 3 else 4):
                hits.sort(key=lambda match: match.start())
                yield self.in_block(block, *hits[0].span(), self._calm(doc, block, hits), count=len(hits), size=size)

    def _calm(self, doc: Document, block: Block, hits: list[re.Match[str]]) -> Fix | None:
        edits: list[Edit] = []
        for match in hits:
            if not match[0].isascii() or match[0].startswith("!"):
                continue
            one = fix_in(doc, block, *match.span(), _lower(block.text, match), "")
            if one and one.edits[0].text != match[0]:
                edits += one.edits
        return Fix("Write them in lower case", tuple(edits), "unsafe") if edits else None


def _continues_word(text: str, start: int) -> bool:
    return start > 0 and text[start - 1].isalnum()


def _in_heading(block: Block, offset: int) -> bool:
    line = block.text[slice(*block.line_at(offset))].strip()
    return line.startswith(("#", "**")) or line.isupper()


def _lower(text: str, match: re.Match[str]) -> str:
    before = text[: match.start()].rstrip(" \t*_-")
    starts = not before or before[-1] in ".!?:\n。！？："
    return match[0].capitalize() if starts else match[0].lower()


class LengthConflict(Rule):
    code, slug = "ZL305", "length-conflict"
    lexicon = "brief"
    message = "`{brief}` and `{full}` ask for opposite lengths of the same answer"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks if doc.may_hold("full") else ():
            languages = block.languages & doc.languages
            lines = {block.line_at(match.start()) for match in matches("brief", block.prose, languages)}
            # A line is how far two adverbs surely speak of one thing.
            for line in sorted(lines):
                text = block.prose[line.start : line.end]
                brief = next(matches("brief", text, languages), None)
                full = next(matches("full", text, languages), None)
                if brief and full and not holds("scoped", text, languages):
                    start, end = sorted((brief.span(), full.span()))[0][0], max(brief.end(), full.end())
                    yield self.in_block(block, line[0] + start, line[0] + end, brief=brief[0], full=full[0])


class AbsoluteThenException(Rule):
    code, slug = "ZL306", "absolute-then-exception"
    message = "Line {line} forbids this without exception; say there when it is allowed"
    _ban = re.compile(
        r"(?:n(?<!\wn)ever|u(?<!\wu)nder no circumstances|d(?<!\wd)o not ever)\s+"
        r"(?P<verb>use|set|call|include|output|return|mention|ask|add|send|write)\s+"
        r"(?:the |a |an |any )?(?P<object>[a-z_][\w-]{2,30})"
    )
    _chinese = re.compile(
        r"(?:严禁|绝不能?|禁止|绝对不(?:能|要|可以)?)(?P<verb>使用|调用|输出|返回|设置|提及|添加)(?P<object>[\w\u4e00-\u9fff]{2,8})"
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        bans = not words(doc.low).isdisjoint(("neve", "circ", "ever"))
        for block in doc.blocks if bans or "zh" in doc.spoken else ():
            patterns = [self._ban] * ("en" in block.languages) + [self._chinese] * ("zh" in block.languages)
            for pattern in patterns:
                for ban in pattern.finditer(lowered(block.prose)):
                    yield from self._exceptions(doc, block, ban)

    def _exceptions(self, doc: Document, block: Block, ban: re.Match[str]) -> Iterator[Finding]:
        sentence = block.sentence_at(ban.start())
        if sentence is None or holds("exception", sentence.text):
            return
        verb, thing = re.escape(ban["verb"]), re.escape(ban["object"])
        english = rf"(?:^|[.!?\n]\s*|[-*]\s+)(?:(?:if|when)\b[^.\n]*,\s*)?{verb}\s+(?:the |a |an )?{thing}\b[^.\n]*"
        chinese = rf"(?:如果|当|若)[^。\n]{{0,40}}{verb}{thing}|(?<![不禁止勿能])(?:请|可以?){verb}{thing}"
        allowed = re.compile(english if ban["verb"].isascii() else chinese, re.IGNORECASE).search(
            block.prose, sentence.end
        )
        is_conditional = allowed and (not ban["verb"].isascii() or re.search(r"\b(?:if|when|for)\b", allowed[0], re.I))
        if allowed and is_conditional:
            line = doc.source.line_col(block.part.to_file(ban.start()))[0]
            start = allowed.start() + len(allowed[0]) - len(allowed[0].lstrip(".!?\n -*"))
            yield self.in_block(block, start, allowed.end(), line=line)


class VagueQuantity(PhraseRule):
    code, slug = "ZL307", "vague-quantity"
    message = "`{phrase}` can be two or ten; give a number or a limit"
    lexicon = "vague_quantity"


class VagueLength(PhraseRule):
    code, slug = "ZL308", "vague-length"
    message = "`{phrase}` sets no length; give words, sentences or items"
    lexicon = "vague_length"


class OpenList(PhraseRule):
    code, slug, severity = "ZL309", "open-list", "info"
    message = "`{phrase}` lets the model extend the list as it likes; finish it, or say what belongs on it"
    lexicon = "open_list"
    _sequence = re.compile(r"\b(?:then|next|after that)\b|然后|接着|依次", re.IGNORECASE)

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, sentence, start, end, phrase in phrase_hits(doc, self.lexicon):
            # First this, then that, and so on: what comes next is told.
            if not self._sequence.search(sentence.text, 0, start - sentence.start):
                yield self.in_block(block, start, end, phrase=phrase)


class DoubledWord(Rule):
    code, slug, fix = "ZL310", "doubled-word", "unsafe"
    _words = words_of(_SMALL)
    message = "`{word}` stands here twice"
    _marks = re.compile(r"，，|、、|；；|：：|(?<!。)。。(?!。)")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            for start, end, word in self._doubled(block):
                fix = fix_in(doc, block, start, end, word, "Keep one", "unsafe")
                yield self.in_block(block, start, end, fix, word=word)

    def _doubled(self, block: Block) -> Iterator[tuple[int, int, str]]:
        if "en" in block.languages:
            low = lowered(block.prose)
            found = latin_words(low)
            for small in self._words.intersection(compress(found, map(eq, found, islice(found, 1, None)))):
                for match in _twice(small).finditer(low):
                    word = block.prose[match.start() : match.start() + len(small)]
                    if not word.isupper():
                        yield *match.span(), word
        if any(mark + mark in block.prose for mark in "，、；：。"):
            for match in self._marks.finditer(block.prose):
                yield *match.span(), match[0][0]


@cache
def _twice(word: str) -> re.Pattern[str]:
    # The look behind comes second, so that the word's letters are searched for.
    return re.compile(rf"{word[0]}(?<!\w{word[0]}){word[1:]}[ \t]+{word}\b")


class DoubleNegative(PhraseRule):
    code, slug, severity = "ZL311", "double-negative", "warning"
    message = "`{phrase}` negates twice; say it positively"
    lexicon = "double_negative"


class NoStopRule(Rule):
    code, slug = "ZL312", "no-stop-rule"
    lexicon = "endless"
    message = "`{phrase}` has no end: give a number of tries or a sign that it is done"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, sentence, start, end, phrase in phrase_hits(doc, "endless"):
            index = block.sentences.index(sentence)
            near = " ".join(s.text for s in block.sentences[max(0, index - 2) : index + 3])
            if not holds("stop_rule", near, block.languages):
                yield self.in_block(block, start, end, phrase=phrase)


class RelativeDate(PhraseRule):
    code, slug, severity = "ZL313", "relative-date", "info"
    message = "`{phrase}` means nothing to a model that is not told the date"
    lexicon = "relative_date"

    def check(self, doc: Document) -> Iterable[Finding]:
        if re.search(r"date|time|now|today|year|日期|时间|当前", " ".join(doc.source.names), re.IGNORECASE):
            return
        if re.search(r"\b20[2-4]\d\b|current date|today is|今天是|当前日期|CURRENT_DATE", doc.text):
            return
        for block, _, start, end, phrase in phrase_hits(doc, self.lexicon):
            # A heading names what the answer is to hold, such as the steps of this month.
            if not block.text[block.line_at(start).start :].lstrip(" \t0123456789.").startswith(("#", "**")):
                yield self.in_block(block, start, end, phrase=phrase)


class KnowledgeCutoff(PhraseRule):
    code, slug = "ZL314", "knowledge-cutoff"
    message = "`{phrase}`: a cutoff written into a prompt is wrong with the next model"
    lexicon = "cutoff"


class LanguageConflict(Rule):
    code, slug = "ZL315", "language-conflict"
    message = "This asks for {second}, and line {line} for {first}"
    _asks = re.compile(
        r"(?:\b(?:answer|respond|reply|write|output|return)(?: (?:only|always"
        r"|strictly))? in (?P<en>English|Chinese|Japanese|French|German|Spanish)\b"
        r"(?! (?:if|when|or|unless))|(?:请|必须|始终|一律|只)?(?:使?用|以)(?P<zh>中文|英文|英语|日语|日文"
        r"|法语)(?:来)?(?:回答|回复|输出|作答|撰写))",
        re.IGNORECASE,
    )
    _known = ("english", "chinese", "japanese", "french", "german", "spanish", "中文", "英文", "英语", "日", "法语")
    _starts = words_of("engl chin japa fren germ span")
    _names: ClassVar[dict[str, str]] = {
        "chinese": "中文",
        "english": "英文",
        "英语": "英文",
        "japanese": "日文",
        "日语": "日文",
    }

    def check(self, doc: Document) -> Iterable[Finding]:
        chinese = 0 if doc.low.isascii() else sum(name in doc.low for name in self._known[6:])
        if len(self._starts & words(doc.low)) + chinese < 2:
            return
        for prompt in doc.prompts:
            first: tuple[str, str, int] | None = None
            whole = "".join(lowered(block.prose) for block in prompt)
            if sum(name in whole for name in self._known) < 2:
                continue
            for block in prompt:
                for match in self._asks.finditer(block.prose):
                    name = match["en"] or match["zh"]
                    key = self._names.get(name.lower(), name.lower())
                    line_text = block.prose[slice(*block.line_at(match.start()))]
                    if re.search(r"\b(?:if|when|unless|otherwise|else)\b|如果|若|当|否则|时", line_text, re.IGNORECASE):
                        continue
                    line = doc.source.line_col(block.part.to_file(match.start()))[0]
                    if first is None:
                        first = (key, name, line)
                    elif first[0] != key:
                        yield self.in_block(block, *match.span(), second=name, first=first[1], line=first[2])


class TwoPersonas(Rule):
    code, slug = "ZL316", "two-personas"
    message = "A second role for the same message; line {line} gives the first"
    _hints = ("You are ", "扮演", "充当", "担任")
    _pattern = re.compile(
        r"^[ \t#*]*(?:You are (?:an? |the )(?P<en>(?:\w+[ -]){0,5}?(?:assistant|expert|agent|engineer"
        r"|writer|analyst|teacher|developer|translator|editor|judge))\b"
        r"|(?:我想让你|请你?|现在)?(?:扮演|充当|担任)(?:一[个名位])?(?P<zh>[\u4e00-\u9fff]{2,12}))",
        re.MULTILINE,
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if any(tag.kind == "statement" for tag in block.part.tags) or sum(map(block.prose.count, self._hints)) < 2:
                continue
            found = list(self._pattern.finditer(block.prose))
            for match in found[1:]:
                first = (found[0]["en"] or found[0]["zh"]).lower()
                if (match["en"] or match["zh"]).lower() != first:
                    line = doc.source.line_col(block.part.to_file(found[0].start()))[0]
                    yield self.in_block(block, *match.span(), line=line)
                    break


class PlaceholderLeft(Rule):
    code, slug = "ZL317", "placeholder-left"
    _starts = frozenset(("todo", "fixm", "tbd", "xxx", "lore"))
    _bracket = re.compile(r"\[(?:insert|your|enter|paste|fill|add)")
    _chinese = re.compile(r"[待此【][补填处请]")
    message = "`{found}` looks like a blank that nobody filled in"
    _pattern = re.compile(
        r"\b(?:TODO|FIXME|TBD|XXX)\b(?=\s*[:：]|\s*$)|\blorem ipsum\b"
        r"|\[(?:INSERT|YOUR|ENTER|PASTE|FILL|ADD)\b[^\]\n]{0,60}\]"
        r"|待补充|待填写|此处填写|【请(?:填写|输入)[^】\n]{0,20}】",
        re.MULTILINE,
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        low = doc.low
        is_likely = self._bracket.search(low) or not self._starts.isdisjoint(words(low)) or self._chinese.search(low)
        for block in doc.blocks if is_likely else ():
            for match in self._pattern.finditer(block.prose):
                if not forbids(block.prose[block.line_at(match.start()).start : match.start()]):
                    yield self.in_block(block, *match.span(), found=match[0])


class HardWordCap(Rule):
    code, slug, severity = "ZL318", "hard-word-cap", "info"
    message = "A cap of {count} words on everything costs an agent quality; cap the part that must be short"
    _pattern = re.compile(
        r"(?:k(?<!\wk)eep|l(?<!\wl)imit)\b[^.\n]{0,60}"
        r"\b(?:to|under|below|within)\s+(?:at most\s+)?(?P<count>\d{1,2})\s+words\b"
        r"|(?:每次|所有)(?:回复|回答|输出)[^。\n]{0,10}(?:不超过|少于|控制在)(?P<zh>\d{1,2})个?字"
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        found = words(doc.low)
        is_likely = ("word" in found and ("keep" in found or "limi" in found)) or "字" in doc.low
        for prompt in doc.prompts if is_likely else ():
            caps = [(block, match) for block in prompt for match in self._pattern.finditer(lowered(block.prose))]
            is_agent = caps and ("tools" in doc.data or any(holds("agent", block.text) for block in prompt))
            for block, match in caps if is_agent else ():
                count = int(match["count"] or match["zh"])
                if count <= 25:
                    yield self.in_block(block, *match.span(), count=count)


class Filler(PhraseRule):
    code, slug, fix = "ZL319", "filler", "unsafe"
    severity = "info"
    message = "`{phrase}` asks for nothing"
    lexicon = "filler"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, sentence, start, end, phrase in phrase_hits(doc, self.lexicon):
            if len(sentence.text.replace(MASK, "").strip()) <= len(phrase) + 3:
                fix = delete_sentence(doc, block, sentence, "Delete it")
                yield self.in_block(block, start, end, fix, phrase=phrase)
