"""Models: options and shapes that the model a prompt is for does not take. Keyed on model, API version and route."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, cast

from zlclient.models import Catalogue
from zlclient.prompts.parts import Span

from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..rule import Rule
from ..target import ModelUse, bare_id, find_retired, provider_of

_SAMPLING = ("temperature", "top_p", "top_k")


class SamplingRejected(Rule):
    needs = "models"
    code, slug, severity, fix = "ZL401", "sampling-rejected", "error", "unsafe"
    message = "{model}{version} rejects {option}; set effort instead"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            target = use.target
            if target is None or find_retired(target.model.id):
                continue
            effort = use.options.get("effort")
            level = effort.value if effort and isinstance(effort.value, str) else None
            if target.takes_sampling(level):
                continue
            for name in _SAMPLING:
                option = use.options.get(name)
                # OpenAI's reasoning models take the one value that is their default.
                if option is None or option.value is None or (target.provider == "openai" and option.value == 1):
                    continue
                version = f" on {target.version}" if target.version else ""
                yield self.found(
                    option.key,
                    _remove(doc, option.key, option.place),
                    model=target.model.id,
                    version=version,
                    option=name,
                )


def _remove(doc: Document, key: Span, value: Span) -> Fix | None:
    """Take `key: value` out with its line; None where other things stand on that line."""
    text = doc.text
    if doc.source.format == "python":
        return None
    start = text.rfind("\n", 0, key[0]) + 1
    end = text.find("\n", value[1])
    end = len(text) if end < 0 else end + 1
    if text[start : key[0]].strip() or text[value[1] : end].strip():
        return None
    indent = key[0] - start
    alone = not any(_is_sibling(line, indent) for line in _neighbours(text, start, end))
    return None if alone else Fix("Remove it", (Edit(start, end, ""),), "unsafe", ("front-matter",))


def _neighbours(text: str, start: int, end: int) -> tuple[str, str]:
    before = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start]
    stop = text.find("\n", end)
    return before, text[end : len(text) if stop < 0 else stop]


def _is_sibling(line: str, indent: int) -> bool:
    """Whether a line is a key of the same mapping, so that removing its neighbour leaves no empty mapping."""
    return len(line) - len(line.lstrip()) == indent and ":" in line and not line.lstrip().startswith(("#", "-"))


class RetiredModel(Rule):
    needs = "models"
    code, slug, severity = "ZL402", "retired-model", "error"
    message = "{model} can no longer be called; it was retired on {day}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            if use.span is None or use.is_override:
                continue
            day = _retirement(use, doc)
            if day:
                yield self.found(use.span, model=bare_id(use.name), day=day)


def _retirement(use: ModelUse, doc: Document) -> str | None:
    entry = find_retired(bare_id(use.name))
    if entry and doc.today > entry.retired:
        return entry.retired.isoformat()
    model = use.target.model if use.target else None
    if model and model.known and model.lifecycle(doc.today) == "retired" and model.retires:
        return model.retires.isoformat()
    return None


class DeprecatedModel(Rule):
    needs = "models"
    code, slug, severity = "ZL403", "deprecated-model", "info"
    message = "{model} is deprecated{day}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            model = use.target.model if use.target else None
            if model is None or use.span is None or use.is_override or find_retired(model.id) or not model.known:
                continue
            if model.lifecycle(doc.today) == "deprecated":
                day = f" and retires on {model.retires.isoformat()}" if model.retires else ""
                yield self.found(use.span, model=model.id, day=day)


class Prefill(Rule):
    needs = "models"
    code, slug, severity = "ZL404", "prefill", "error"
    message = "The last message is the assistant's; {model} rejects a prefilled answer"

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format in ("python", "promptfoo", "yaml"):
            return
        targets = [target for target in doc.targets if target.provider == "anthropic" and not target.model.prefill]
        for prompt in doc.prompts if targets else ():
            last = prompt[-1]
            if last.role == "assistant" and last.text.strip():
                marker = last.part.marker or (last.part.start, last.part.start + 1)
                yield self.found((marker[0], marker[1]), model=targets[0].model.id)


class UnknownEffort(Rule):
    needs = "models"
    code, slug, severity = "ZL405", "effort-rejected", "error"
    message = "{model} takes {accepted}, not effort {value}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            option = use.options.get("effort")
            model = use.target.model if use.target else None
            if option and model and model.known and option.value not in model.effort:
                accepted = "effort " + ", ".join(model.effort) if model.effort else "no effort"
                yield self.found(option.place, model=model.id, accepted=accepted, value=option.value)


class OutputTooLong(Rule):
    needs = "models"
    code, slug, severity = "ZL406", "max-tokens-too-high", "error"
    message = "{model} gives at most {limit} tokens; {value} are asked for"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            option = use.options.get("max_tokens")
            model = use.target.model if use.target else None
            limit = (model.max_output or model.context) if model and model.known else None
            if option and model and limit and isinstance(option.value, int) and option.value > limit:
                yield self.found(option.place, model=model.id, limit=limit, value=option.value)


class SamplingPair(Rule):
    needs = "models"
    code, slug, severity = "ZL407", "temperature-with-top-p", "warning"
    message = "{model} takes temperature or top_p, not both"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            target = use.target
            if target is None or target.model.temperature_with_top_p or not target.takes_sampling(None):
                continue
            top_p = use.options.get("top_p")
            if top_p and "temperature" in use.options and top_p.value is not None:
                yield self.found(top_p.key, model=target.model.id)


class UnknownModel(Rule):
    needs = "models"
    code, slug = "ZL408", "unknown-model"
    message = "`{name}` is no model that is known here; did you mean `{close}`?"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            model_id = bare_id(use.name)
            provider = provider_of(model_id)
            if use.span is None or use.is_override or provider is None or use.target is None or use.target.model.known:
                continue
            if find_retired(model_id):
                continue
            known = list(Catalogue.bundled().provider(provider).by_id)
            close = get_close_matches(model_id, known, 1, 0.85)
            if close and not model_id.startswith(close[0]):
                yield self.found(use.span, name=model_id, close=close[0])


class OptionOutOfRange(Rule):
    needs = "models"
    code, slug, severity = "ZL409", "option-out-of-range", "error"
    message = "{option} = {value} is outside {low} to {high}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            warm = 1 if use.target and use.target.provider == "anthropic" else 2
            ranges = {
                "temperature": (0, warm),
                "top_p": (0, 1),
                "max_tokens": (1, 10**9),
                "frequency_penalty": (-2, 2),
                "presence_penalty": (-2, 2),
            }
            for name, (low, high) in ranges.items():
                option = use.options.get(name)
                value = option.value if option else None
                if (
                    option
                    and isinstance(value, (int, float))
                    and not isinstance(value, bool)
                    and not low <= value <= high
                ):
                    yield self.found(option.place, option=name, value=value, low=low, high=high)


class ContextExceeded(Rule):
    needs = "models"
    code, slug, severity = "ZL410", "context-exceeded", "error"
    message = "The prompt alone has about {size} tokens, and {model} takes {limit}"

    def check(self, doc: Document) -> Iterable[Finding]:
        if len(doc.text) < 8000:
            return
        for target in doc.targets:
            for prompt in doc.prompts:
                # Four characters a token, or one for Chinese: a lower bound, so that only sure cases are reported.
                size = sum(len(b.text) // 5 if b.text.isascii() else len(b.text.encode()) // 6 for b in prompt)
                if target.model.known and size > target.model.context:
                    yield self.found(
                        (prompt[0].part.start, prompt[0].part.start + 1),
                        size=size,
                        model=target.model.id,
                        limit=target.model.context,
                    )
                    return


class JsonModeWord(Rule):
    needs = "models"
    code, slug, severity = "ZL411", "json-mode-without-word", "error"
    message = "response_format json_object is rejected unless the messages say JSON"

    def check(self, doc: Document) -> Iterable[Finding]:
        for use in doc.models:
            option = use.options.get("response_format")
            value: Any = option.value if option else None
            kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
            says_json = doc.source.format == "python" or any("json" in block.text.lower() for block in doc.blocks)
            if option and kind == "json_object" and not says_json:
                yield self.found(option.key)
