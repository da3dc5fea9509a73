"""Reading a request as a person would: what is asked, and about which text.

It sees through the shapes that prompts have: a tag such as 【财经数据】 before the text, a text under a label (文本：
or Text:) or inside <document> or triple-quote fences, document blocks, the system text, earlier turns, and a question
before or after its text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..value_kinds import kind_of
from .base import Ask, Turn, text_of

Language = Literal["zh", "en"]

_TAG = re.compile(r"^\s*(?:【[^】\n]{1,24}】\s*)+")
_FENCES = re.compile(
    r"<(?P<tag>document_content|documents?|passage|text|context|article|source|content|doc|material|reference)s?\b[^>]*>"
    r"(?P<inner>.*?)</(?P=tag)s?>|\"\"\"(?P<quoted>.+?)\"\"\"|```\w*\n(?P<code>.+?)```"
    r"|(?P<block>(?:^>[^\n]*(?:\n|$))+)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
# A text in quotes, which only counts where it is longer than the rest of its request.
_QUOTES = re.compile(r"\"[^\"]{40,}\"|“[^”]{20,}”", re.DOTALL)
_TEXT_LABEL = (
    r"(?:以下|下面)?(?:是|为)?(?:文本|原文|材料|正文|文章|资料|段落|内容|背景|上下文|参考资料|新闻|报道|合同|病历|邮件|短信|通知|对话"
    r"|聊天记录|会议记录|纪要|日志|输入|用户输入)"
    r"|(?:the |user |input |source |customer |original |meeting )?"
    r"(?:text|passage|context|document|article|source|content|background|material|paragraph|report|e-?mail|mail|message"
    r"|notes?|input|transcript|review|log|conversation|ticket|letter)"
)
_ASK_LABEL = r"问题\d?|提问|问\d?|任务|要求|指令|请回答|question(?: \d)?|query|q\d?|task|instructions?|request"
# Where an answer is to go: no part of what is asked.
_ANSWER_LABEL = re.compile(
    r"\n[ \t*#]*(?:答案?|回答|输出|answer|a|output|response|summary|json)[*]*[ \t]*[:：][*]*\s*$", re.IGNORECASE
)
_LABEL = re.compile(
    rf"(?:^|(?<=[\n。！？.!?]))[ \t#*]*(?:(?P<text>{_TEXT_LABEL})|(?P<ask>{_ASK_LABEL}))[*]*[ \t]*[:：][*]*\s*",
    re.IGNORECASE,
)
SUMMARY = re.compile(
    r"总结|概括|摘要|概述|归纳|提炼|简述|缩写成|要点"
    r"|[一两二三\d]句话(?:怎么|来|去)?(?:说|讲|描述|表达|表述|介绍)|讲了?(?:啥|什么|些什么)|说了?(?:啥|些什么)|大意|主旨|中心思想|浓缩|太长不看|长话短说|压缩[成到]|梗概"
    r"|summar|tl;?dr|\babstract\b|key points|main points|\bgist\b|condense|shorten|takeaways"
    r"|\bsum(?:med|ming)? (?:\w+ )?up\b|\bboil\b.*\bdown\b|\brecap\b|nutshell|\boverview\b|\bdigest\b"
    r"|what(?:.s| is| does) (?:this|that|the \w+|it)(?: \w+)? (?:about|say)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"[?？]\s*$|^\s*(?:who|what|when|where|which|why|how|whose|whom|is|are|was|were|did|does|do|can|could|has|have|had"
    r"|will)\b|什么|谁|哪[里儿个些位年天一]|多少|几[个名人年次月天家位]|何时|何地|为什么|为何|怎么|怎样|如何|吗\s*[?？]?\s*$"
    r"|是否|有没有",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"^\s*(?:请|根据|用|你是|你要|把|将|对|从|只|不要|必须|列出|找出|提取|抽取|摘出|整理|回答|翻译|说出|指出"
    r"|please\b|using\b|based on\b"
    r"|according to\b|answer\b|list\b|find\b|tell me\b|give\b|extract\b|state\b|identify\b|name\b|you are\b"
    r"|translate\b|write\b|in (?:one|two|three|\d+) "
    r"|(?:make|create|turn|convert|rewrite|rephrase|classify|fix|change|put|format|show|sort|count|compare|explain"
    r"|describe|help|draft|generate|compose|correct|proofread|return|output|reformat|organi[sz]e|arrange|pull|get"
    r"|calculate|clean|check|read|reply|respond|paraphrase|transform|break|split|highlight|shorten|simplify|hi|hey"
    r"|can you|could you|would you|i (?:only |just )?(?:need|want)|i.d like|just|only|need|which|here (?:is|are)"
    r"|below is|the following|from (?:this|these|the|it)|quick question)\b"
    r"|.{0,40}\b(?:as|into|in) (?:a |an )?(?:\w+ )?(?:list|table|check ?list|json)\b"
    r"|.{0,30}\b(?:table|list|json)\b,? (?:with|of|containing)\b"
    r"|.{0,60}(?:json|表格|清单|字段|键名?[为是]|[几两三四五六]项|一行一[个条项])"
    r"|.{0,40}(?:列出来|摘出来|挑出来|找出来|整理出来|提取出来|都?给我列)"
    r"|.{0,30}\b(?:extract|pull out|fill in|summari[sz]e|as json|as a table|bullet points?)\b"
    r"|.{0,30}(?:请你?|帮我?忙?|麻烦|想).{0,20}(?:提取|抽取|整理|总结|概括|列出|改成|转成|变成|转换|做成|归纳|识别|填)"
    r"|改|转[成换为]|做[成个]|生成|写|给|统计|分类|纠正|润色|比较|解释|帮|麻烦|能不能|能否|可以|分析|判断|输出|抽出|算|列)",
    re.IGNORECASE,
)
# Where a sentence ends. A full stop ends it before a space and a capital, a digit or Han, not after an initial or title
_END = re.compile(
    r"[。！？]+[」』”’）\")]*|[!?]+[\"')]*(?=\s|$)"
    r"|(?:(?<!\b[A-Z])|(?<=\b(?:[Hh]all|[Rr]oom|[Pp]art|[Pp]lan|[Gg]ate|[Ww]ing|[Tt]eam|[Uu]nit|[Tt]ype) [A-Z]))"
    r"(?<!\b[DMS]r)(?<!\bMrs)(?<!\bSt)(?<!\bNo)(?<!\bvs)\.+[\"')]*"
    r"(?=\s+[\"'(A-Z0-9\u4e00-\u9fff]|\s*$|\n)|\n"
)
_COMMAS = re.compile(r"\s*[、，,；;]\s*(?:and\s+|和)?|\s+and\s+|以及|和")
_NAME = re.compile(r"[\u4e00-\u9fff]{2,8}|[A-Za-z_.-]+(?: [A-Za-z_.-]+){0,3}")
_WH = re.compile(r"\b(?:what|when|where|who|whom|why|how|which)\b|谁|什么|哪|多少|几|为何|怎么|何时", re.IGNORECASE)
_JOINED = re.compile(r",?\s+and\s+(?=(?:\w+ )?(?:what|when|where|who|why|how|which)\b)|[，,；;、]\s*", re.IGNORECASE)
_BLANK = re.compile(r"(?m)^[ \t\-*•]*[^:：\n]{1,32}[:：][ _…]*$\n?")
_TEMPLATE = re.compile(rf"(?:{_BLANK.pattern[4:]}){{2,}}", re.MULTILINE)
_LEAD = re.compile(r"^[^\n:：?？]{2,60}[:：]\s*(?=\S)")
_RULE = re.compile(r"(?m)^[ \t]*([-*_=~])(?:[ \t]?\1){2,}[ \t]*(?:\n|$)")  # a line that only divides a text
_EDGE = 1000  # characters
_SHORTEST = 20  # characters of what may be a text
_HAN = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Reading:
    """What is asked and the text it is asked of; `passage` is "" when the request holds none."""

    question: str
    passage: str
    language: Language

    @property
    def request(self) -> str:
        """The question's beginning and end, where a long one says what is wanted: patterns are tried on no more."""
        asked = self.question
        return asked if len(asked) <= 2 * _EDGE else f"{asked[:_EDGE]}\n{asked[-_EDGE:]}"

    @property
    def wants_summary(self) -> bool:
        """Whether the question asks for a summary rather than a fact."""
        return bool(SUMMARY.search(self.request))


def read(ask: Ask) -> Reading:
    """The question and passage of `ask`."""
    users = [turn for turn in ask.turns if turn.role == "user"]
    question, passages = _read_turn(users[-1]) if users else ("", [])
    language = language_of(question)
    if not passages:
        for turn in reversed(users[:-1]):
            asked, given = _read_turn(turn)
            passages = given or ([asked] if len(sentences(asked)) > 1 else [])
            if passages:
                break
    if not passages:
        passages = _system_passages(ask.system)
    return Reading(_plain(question.strip()), _RULE.sub("", "\n".join(passages)).strip(), language)


def _plain(question: str) -> str:
    """A question without the instruction to answer it: `Answer from the note below: what dose …?`"""
    rest = _LEAD.sub("", question)
    return rest if rest != question and _QUESTION.search(rest) else question


def language_of(text: str) -> Language:
    """zh when a quarter of the letters or more are Han characters (a Chinese question may hold foreign names)."""
    han, latin = len(_HAN.findall(text)), len(re.findall(r"[A-Za-z]+", text))
    return "zh" if han and han * 2 >= latin else "en"


def sentences(text: str) -> list[str]:
    """`text` cut into sentences, Chinese and English, each stripped; empty ones left out."""
    ends = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    return [part for start, end in itertools.pairwise(ends) if (part := text[start:end].strip())]


def questions_of(asked: str) -> list[str]:
    """The questions in what is asked, one or several, without what is said around them; all of it where it has none."""
    told = sentences(asked)
    found = [part for sentence in told if sentence[-1:] in "?？" for part in _together(sentence)]
    return found or [asked]


def _together(question: str) -> list[str]:
    """The questions of one sentence: `how much is it, and when is it due?`"""
    parts = _JOINED.split(question)
    return parts if len(parts) > 1 and all(_WH.search(part) for part in parts) else [question]


def untagged(text: str) -> str:
    """`text` without the domain tags at its start."""
    return _TAG.sub("", text)


def _read_turn(turn: Turn) -> tuple[str, list[str]]:
    passages: list[str] = []
    asked: list[str] = []
    texts: list[str] = []
    for block in turn.blocks:
        if block.get("type") == "document":
            passages.append(text_of(block))
        elif block.get("type") in ("text", "tool_result"):
            texts.append(untagged(text_of(block)))
    for text in texts:
        question, given = split(text)
        passages += given
        if question:
            asked.append(question)
    if len(asked) > 1 and not passages:
        # Blocks without any mark of their own: the text is whatever is not the last request.
        asks = [text for text in asked if is_request(text)] or asked[-1:]
        passages = [text for text in asked if text not in asks]
        asked = asks
    return "\n".join(asked), [passage for passage in passages if passage.strip()]


def split(text: str) -> tuple[str, list[str]]:
    """The request in `text`, and the passages it holds."""
    text = _ANSWER_LABEL.sub("", text)
    template = _TEMPLATE.search(text)
    blanks = _BLANK.findall(template[0]) if template else []
    if template and len(rest := text.replace(template[0], "").strip()) > _SHORTEST:
        question, passages = split(rest)  # labels with nothing after them are a template to fill in
        return "\n".join([question, *(blank.strip() for blank in blanks)]).strip(), passages
    marked = list(_FENCES.finditer(text))
    fenced = [
        untagged(inner)
        for match in marked
        if (inner := match["inner"] or match["quoted"] or match["code"] or _unquoted(match["block"]))
    ]
    if fenced:
        around = _FENCES.sub("\n", text)
        # What is only quoted (> …) is the text where the rest is a request: a thread of mails has quotes within it.
        if any(not match["block"] for match in marked) or _short_request(around.strip()):
            return _without_labels(around), fenced
    quotes = _QUOTES.findall(text)
    rest = _QUOTES.sub("\n", text).strip()
    if len(quotes) == 1 and len(quotes[0]) > len(rest) > 0:
        return _without_labels(rest), [quotes[0][1:-1].strip()]
    labelled = _split_labels(text)
    if labelled:
        return labelled
    return _split_plain(text)


def is_request(text: str) -> bool:
    """Whether a piece of text asks for something rather than tells."""
    return bool(
        _QUESTION.search(text) or SUMMARY.search(text) or _INSTRUCTION.search(text) or len(names_of_fields(text)) > 1
    )


def names_of_fields(line: str) -> list[str]:
    """The fields in a line that is nothing but their names: `order number, delivery date - nothing else`."""
    parts = [part.strip(" .。") for part in _COMMAS.split(re.split(r"\s[-–—]\s", line)[0])]
    return parts if all(_NAME.fullmatch(part) and kind_of(part) for part in parts) else []


def _unquoted(block: str | None) -> str:
    """The lines of a `> ` block without their marks."""
    return re.sub(r"(?m)^> ?", "", block or "").strip()


def _without_labels(text: str) -> str:
    return _LABEL.sub("\n", text).strip()


def _split_labels(text: str) -> tuple[str, list[str]] | None:
    marks = list(_LABEL.finditer(text))
    if not any(mark["text"] for mark in marks):
        return _split_asked(text, marks)
    before = text[: marks[0].start()].strip()
    asked: list[str] = []
    passages: list[str] = []
    for mark, after in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)], strict=True):
        part = text[mark.end() : after].strip()
        (passages if mark["text"] else asked).append(part)
    # A question under a label is all that is asked; what stands before the labels then says how to answer.
    question = "\n".join(part for part in asked if part) or before
    if not question and passages:
        # "文本：… 谁…？" with the question behind the text, unlabelled.
        question, passages = _split_plain("\n".join(passages))
    return question, passages


def _split_asked(text: str, marks: list[re.Match[str]]) -> tuple[str, list[str]] | None:
    """A text with its question under a label behind it, and perhaps an instruction before it."""
    if not marks or len(text[: marks[0].start()].strip()) < _SHORTEST:
        return None
    told = text[: marks[0].start()].strip()
    asked = _LABEL.sub("\n", text[marks[0].start() :]).strip()
    head, colon, tail = _colon(told)
    if colon and is_request(head):
        told = tail
    return (asked, [told]) if told else None


def _split_plain(text: str) -> tuple[str, list[str]]:
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n|\n", text) if part.strip()]
    if not paragraphs:
        return "", []
    if len(paragraphs) > 1:
        last = len(paragraphs) - 1
        for at in (0, last) if paragraphs[0].endswith((":", "：")) else (last, 0):
            if _short_request(paragraphs[at]):
                rest = paragraphs[:at] + paragraphs[at + 1 :]
                if at == 0 and len(rest) > 1 and re.fullmatch(r"[（(][^（）()]+[）)]", rest[-1]):
                    return f"{paragraphs[0]}\n{rest[-1]}", ["\n".join(rest[:-1])]
                return paragraphs[at].rstrip(":：") if at == 0 else paragraphs[at], ["\n".join(rest)]
    head, colon, tail = _colon(text)
    if colon and len(tail) > _SHORTEST and is_request(head):
        return head, [tail]
    told = sentences(text)
    if len(told) > 1:
        for at in (len(told) - 1, 0):
            rest = " ".join(told[:at] + told[at + 1 :])
            if is_request(told[at]) and len(rest) >= _SHORTEST // 2:
                return told[at], [rest]
    return text.strip(), []


def _colon(text: str) -> tuple[str, str, str]:
    match = re.search(r"[:：](?!\d)", text[:120])
    return (text[: match.start()], ":", text[match.end() :].strip()) if match else (text, "", "")


def _short_request(paragraph: str) -> bool:
    return len(paragraph) <= 200 and len(sentences(paragraph)) <= 3 and is_request(paragraph)


def _system_passages(system: str) -> list[str]:
    """The parts of a system text that tell something, its instructions left out."""
    if not system:
        return []
    fenced = [match["inner"] for match in _FENCES.finditer(system) if match["inner"]]
    if fenced:
        return fenced
    told = list(_telling(untagged(system)))
    return ["\n".join(told)] if told else []


def _telling(system: str) -> Iterator[str]:
    for sentence in sentences(_without_labels(system)):
        if (
            not _INSTRUCTION.search(sentence)
            and not _QUESTION.search(sentence)
            and (_LETTER.search(sentence) or _HAN.search(sentence))
        ):
            yield sentence
