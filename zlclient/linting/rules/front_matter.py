"""Front matter and YAML: what the formats define, and what they used to."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, ClassVar, cast

from ..diagnostic import Finding
from ..document import Document
from ..rule import Rule
from ..wordset import words_of

FAMILY = "template"
_KEYS: dict[str, frozenset[str]] = {
    "prompty": words_of(
        "name displayName description metadata model inputs outputs tools template version authors tags sample"
    ),
    "dotprompt": words_of("name variant description model tools config input output metadata toolDefs maxTurns ext"),
    "github-models": words_of(
        "name description model modelParameters messages testData evaluators responseFormat jsonSchema"
    ),
}
_OPTION_KEYS = words_of(
    "temperature maxOutputTokens topP topK frequencyPenalty presencePenalty seed stopSequences additionalProperties"
)
_INPUT_KINDS = words_of("string integer float number boolean array object thread image file audio any")


class FrontMatterInvalid(Rule):
    code, slug, severity = "ZL150", "front-matter-invalid", "error"
    message = "{what} cannot be read: {problem}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for problem in doc.source.problems:
            if problem.code.startswith("front-matter-") or problem.code in ("yaml-invalid", "yaml-too-deep"):
                what = "The front matter" if doc.source.front or doc.source.format == "prompty" else "The YAML"
                yield self.found((problem.start, problem.end), what=what, problem=problem.message)


class DuplicateKey(Rule):
    code, slug, severity = "ZL151", "duplicate-key", "error"
    message = "{problem}"

    def check(self, doc: Document) -> Iterable[Finding]:
        for problem in doc.source.problems:
            if problem.code == "yaml-duplicate-key":
                yield self.found(
                    (problem.start, problem.end), problem=problem.message[:1].upper() + problem.message[1:]
                )


class MisspelledKey(Rule):
    needs = "keys"
    code, slug = "ZL152", "misspelled-key"
    message = "`{key}` is no key of this format; did you mean `{close}`?"

    def check(self, doc: Document) -> Iterable[Finding]:
        known = _KEYS.get(doc.source.format)
        if not known or not doc.document:
            return
        for path, span in doc.document.keys.items():
            key, table = path[-1], path[:-1]
            accepted = known if not table else _OPTION_KEYS if table in (("model", "options"), ("config",)) else None
            if table == ("metadata", "zlclient"):
                accepted = _own_keys()
            if not accepted or not isinstance(key, str) or key in accepted:
                continue
            close = get_close_matches(key, accepted, 1, 0.8)
            if table and key in ("version", "language") and table[0] == "metadata":
                close = [f"metadata.{key}"]
            # Formats keep unknown keys, so only a near miss is surely a mistake.
            if close:
                yield self.found(span, key=key, close=close[0])


def _own_keys() -> frozenset[str]:
    from zlclient.prompts.outputs import OWN_KEYS

    return frozenset((*OWN_KEYS, "source"))


class OldPrompty(Rule):
    needs = "keys"
    code, slug, severity = "ZL153", "prompty-v1", "info"
    message = "`{key}` belongs to the first .prompty format; the second has {now}"
    _moved: ClassVar[dict[tuple[str, ...], str]] = {
        ("model", "api"): "model.apiType",
        ("model", "configuration"): "model.id, model.provider and model.connection",
        ("model", "parameters"): "model.options",
        ("sample",): "`example` in each input",
    }

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format != "prompty":
            return
        for path, now in self._moved.items():
            span = doc.key_span(path)
            if span:
                yield self.found(span, key=".".join(path), now=now)
                return


class WrongType(Rule):
    needs = "keys"
    code, slug, severity = "ZL154", "front-matter-type", "error"
    message = "`{key}` must be {expected}"

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.source.format not in ("prompty", "dotprompt", "github-models") or not doc.document:
            return
        for path, expected, kinds in self._expected(doc.source.format):
            value: Any = doc.data
            for step in path:
                value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
            wrong = value is not None and (
                not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)
            )
            span = doc.document.values.get(path)
            if wrong and span and not (isinstance(value, str) and ("${" in value or "{{" in value)):
                yield self.found(span, key=".".join(path), expected=expected)
        for item in doc.inputs:
            kind = item.spec.get("kind")
            if doc.source.format == "prompty" and isinstance(kind, str) and kind not in _INPUT_KINDS:
                span = doc.document.values.get((*item.path, "kind"), item.span)
                yield self.found(
                    span, key=f"inputs.{item.name}.kind", expected="one of " + ", ".join(sorted(_INPUT_KINDS))
                )

    def _expected(self, kind: str) -> list[tuple[tuple[str, ...], str, tuple[type, ...]]]:
        number, text, many = (int, float), (str,), (list, dict)
        tables = {"prompty": ("model", "options"), "dotprompt": ("config",), "github-models": ("modelParameters",)}
        table = tables[kind]
        found: list[tuple[tuple[str, ...], str, tuple[type, ...]]] = [
            ((*table, "temperature"), "a number", number),
            ((*table, "topP"), "a number", number),
            ((*table, "maxOutputTokens"), "a whole number", (int,)),
            ((*table, "maxTokens"), "a whole number", (int,)),
            (("name",), "text", text),
            (("description",), "text", text),
        ]
        if kind == "prompty":
            found += [(("inputs",), "a list or a mapping", many), (("outputs",), "a list or a mapping", many)]
            found += [(("tools",), "a list or a mapping", many), (("model",), "text or a mapping", (str, dict))]
        if kind == "github-models":
            found.append((("messages",), "a list", (list,)))
        return found


class RequiredWithDefault(Rule):
    code, slug = "ZL155", "required-with-default"
    message = "The input `{name}` is required and has a default that is never used"

    def check(self, doc: Document) -> Iterable[Finding]:
        for item in doc.inputs:
            if item.spec.get("required") is True and item.spec.get("default") not in (None, ""):
                yield self.found(item.span, name=item.name)


class FullWidthRole(Rule):
    code, slug, severity = "ZL156", "full-width-role", "error"
    message = (
        "`{found}` is no role line: it needs an ASCII colon and nothing else, so this text joins the message above"
    )

    def check(self, doc: Document) -> Iterable[Finding]:
        import re

        if doc.source.format not in ("prompty", "jinja"):
            return
        pattern = (
            r"^[ \t\u3000\xa0]*(?P<role>system|user|assistant|developer)[ \t\u3000\xa0]*(?:：|:[\u3000\xa0])[ \t]*\r?$"
        )
        for match in re.finditer(pattern, doc.text, re.MULTILINE | re.IGNORECASE):
            yield self.found(match.span("role"), found=match[0].strip())
