"""Prompt caching: what changes from call to call belongs after what does not."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections.abc import Iterable

from ..diagnostic import Finding
from ..document import Document
from ..rule import Rule
from ._text import in_tags, is_untrusted

_VOLATILE = re.compile(
    r"(?:^|_)(?:now|datetime|timestamp|current_?(?:time|datetime)|uuid|session_?id|request_?id|trace_?id|nonce|random|seed)$"
    r"|^time$|当前时间",
    re.IGNORECASE,
)
_CALL = re.compile(r"\b(?:now|today|utcnow|time|uuid4|strftime)\s*\(")


class VolatilePrefix(Rule):
    # A date is none: it changes once a day, and no cached prefix lives as long.
    needs = "tags"
    code, slug = "ZL501", "volatile-prefix"
    message = "`{name}` changes with every call, and {after} characters that do not follow it: nothing can be cached"
    smallest = 1500

    def check(self, doc: Document) -> Iterable[Finding]:
        for prompt in doc.prompts:
            sizes = [len(block.text) for block in prompt]
            for number, block in enumerate(prompt):
                for variable, start, end in doc.outputs(block):
                    text = block.text[start:end]
                    if not (_VOLATILE.search(variable.name) or _CALL.search(text)):
                        continue
                    after = sizes[number] - end + sum(sizes[number + 1 :])
                    if after >= self.smallest and block.role in (None, "system", "developer"):
                        yield self.in_block(block, start, end, name=variable.name, after=after)


class VariableBeforeStatic(Rule):
    needs = "tags"
    code, slug, severity = "ZL502", "early-variable", "info"
    message = (
        "`{name}` stands before {after} characters of fixed text; move it behind them and the prefix can be cached"
    )
    smallest = 4000

    def check(self, doc: Document) -> Iterable[Finding]:
        for prompt in doc.prompts:
            block = prompt[0]
            if block.role not in ("system", "developer", None) or any(t.kind == "statement" for t in block.part.tags):
                continue
            found = doc.outputs(block)
            if not found:
                continue
            variable, start, end = found[0]
            following = found[1][1] if len(found) > 1 else len(block.text)
            after = following - end
            per_call = is_untrusted(doc, variable.name) or re.search(r"user|name|customer|topic|lang", variable.name)
            if after >= self.smallest and start < len(block.text) // 5 and per_call:
                yield self.in_block(block, start, end, name=variable.name, after=after)


class VolatileCall(Rule):
    needs = "tags"
    code, slug, severity = "ZL503", "clock-in-template", "warning"
    message = "`{call}` reads the clock while rendering: no two prompts are equal, and no run can be repeated"
    _pattern = re.compile(
        r"\b(?:datetime\.(?:now|utcnow|today)|date\.today|time\.time|now|utcnow|strftime_now)\s*\([^()]*\)"
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, match in in_tags(doc, self._pattern, ("jinja2", "f-string")):
            yield self.in_block(block, *match.span(), call=match[0][:60])
