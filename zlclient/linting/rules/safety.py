"""Safety: hidden characters, secrets, and text that turns a template against its owner."""

# ruff: noqa: D101, D102 - what a rule does is said in texts/, for people who read no code

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..diagnostic import Edit, Finding, Fix
from ..document import Document
from ..rule import Rule
from ._text import in_tags, phrase_hits

_BIDI = frozenset(("override", "embedding", "direction-mark"))
_TAGS = frozenset(("tag", "plane-14"))
_CONTROL = frozenset(("control", "c1", "ansi", "overstrike", "noncharacter", "surrogate"))


class _Hidden(Rule):
    severity, fix = "error", "safe"
    names: frozenset[str] = frozenset()

    def check(self, doc: Document) -> Iterable[Finding]:
        for start, end, new, code in _runs(doc, self.names):
            edit = Edit(start, end, new)
            count = end - start
            yield self.found(
                (start, end), Fix("Remove it", (edit,)), code=code, count=count, s="" if count == 1 else "s"
            )


def _runs(doc: Document, names: frozenset[str]) -> Iterator[tuple[int, int, str, str]]:
    """Runs of characters that the sanitiser would change for one of `names`: (start, end, replacement, first code)."""
    run: tuple[int, int, str, str] | None = None
    for change in doc.changes:
        if change.rule not in names and (names or change.rule in _BIDI | _TAGS or not change.hidden):
            continue
        start, end = change.offset, change.offset + change.length
        if start == 0 and doc.text[0] == "\ufeff":
            continue  # a byte order mark at the start of a file is harmless
        if run and run[1] == start:
            run = (run[0], end, run[2] + change.replacement, run[3])
            continue
        if run:
            yield run
        run = (start, end, change.replacement, change.code)
    if run:
        yield run


class InvisibleCharacter(_Hidden):
    code, slug = "ZL010", "invisible-character"
    message = "{count} invisible character{s} here, from {code}"


class BidiOverride(_Hidden):
    code, slug = "ZL011", "bidi-override"
    message = "{code} changes the order in which this text is shown, not the order in which a model reads it"
    names = _BIDI


class TagCharacters(_Hidden):
    code, slug = "ZL012", "tag-characters"
    message = "{count} tag character{s} here spell text that only a model reads"
    names = _TAGS


class ControlCharacter(_Hidden):
    code, slug, severity = "ZL013", "control-character", "warning"
    message = "{count} control character{s} here, from {code}"
    names = _CONTROL


_KEY = re.compile(
    r"\b(?:sk-(?:ant-|proj-|live-|svcacct-)?[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{40,}"
    r"|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abpr]-[0-9A-Za-z-]{20,}|hf_[A-Za-z0-9]{30,}|glpat-[\w-]{20,}"
    r"|LTAI[A-Za-z0-9]{16,24})"
)
# What a key begins with; GitHub's tokens, of five kinds, have a pattern.
_KEY_STARTS = ("sk-", "AKIA", "AIza", "xox", "hf_", "glpat-", "b_pat_", "LTAI")
_GITHUB = re.compile(r"gh[pousr]_")
_PEM = re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----")
_ADDRESS = re.compile(r"://[^\s:/@{}<>$]{1,60}:(?P<value>[^\s:/@{}<>$\\]{3,80})@")
_NAMED = re.compile(
    r"(?:api[_-]?key|secret|token|password|passwd|pwd|密码|口令)[\"']?\s{0,4}[:=：]\s{0,4}[\"']?"
    r"(?P<value>[^\s\"'{}<>$,;：]{8,120})",
    re.IGNORECASE,
)
_NAME_STARTS = ("api", "secret", "token", "passw", "pwd", "密码", "口令")
_PLACEHOLDER = re.compile(
    r"x{3,}|\*{3,}|\.{3}|your|example|placeholder|changeme|dummy|test|redacted|<|\$|env|here|123456|abc|foo|sample|fake|demo",
    re.IGNORECASE,
)


class Secret(Rule):
    code, slug, severity = "ZL014", "secret", "error"
    message = "This looks like a {kind}; prompts are logged and shared, so take it from the environment"

    def check(self, doc: Document) -> Iterable[Finding]:
        text = doc.text
        if any(start in text for start in _KEY_STARTS) or _GITHUB.search(text):
            for match in _KEY.finditer(text):
                if _is_real(match[0]):
                    yield self.found(match.span(), kind="key")
        for match in _PEM.finditer(text):
            yield self.found(match.span(), kind="private key")
        for match in _ADDRESS.finditer(text):
            if not _PLACEHOLDER.search(match["value"]):
                yield self.found(match.span("value"), kind="password in an address")
        for start in _NAME_STARTS:
            at = doc.text_low.find(start)
            while at >= 0:
                match = _NAMED.match(text, at)
                if match and _is_real(match["value"]) and not _KEY.match(match["value"]):
                    yield self.found(match.span("value"), kind="password or key")
                at = doc.text_low.find(start, at + len(start))


def _is_real(value: str) -> bool:
    return _is_random(value) and not _PLACEHOLDER.search(value)


def _is_random(value: str) -> bool:
    """Whether a value mixes letters and digits as generated secrets do."""
    letters = sum(char.isalpha() for char in value)
    digits = sum(char.isdigit() for char in value)
    return letters >= 3 and digits >= 2 and len(set(value)) >= 8 and value.isascii()


class UnsafeAttribute(Rule):
    needs = "tags"
    code, slug, severity = "ZL015", "unsafe-attribute", "error"
    message = "`{name}` reaches into Python objects; the sandbox refuses it"
    _pattern = re.compile(r"(?:\.|\[\s*[\"']|\|\s*attr\(\s*[\"'])(?P<name>__\w{1,40}__|mro|func_globals|gi_frame)\b")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, match in in_tags(doc, self._pattern, ("jinja2", "format", "f-string")):
            yield self.in_block(block, *match.span("name"), name=match["name"])


class OverridePhrase(Rule):
    code, slug = "ZL016", "override-phrase"
    lexicon = "override"
    message = "`{phrase}` reads like an injected instruction; quote it if it is material, drop it if it is not yours"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, _, start, end, phrase in phrase_hits(doc, "override"):
            yield self.in_block(block, start, end, phrase=phrase)


class ExfiltrationLink(Rule):
    needs = "tags"
    code, slug, severity = "ZL017", "exfiltration-link", "error"
    message = "An address built from `{name}` lets whoever controls it learn what the model read"
    _pattern = re.compile(r"!?\[[^\]\n]{0,200}\]\(\s*https?://[^)\s]*?[?&/=]\{\{-?\s*(?P<name>[\w.]+)[^)\n]*\)")

    def check(self, doc: Document) -> Iterable[Finding]:
        for block in doc.blocks:
            if "](" not in block.text:
                continue
            for match in self._pattern.finditer(block.text):
                if match[0].startswith("!"):
                    yield self.in_block(block, *match.span(), name=match["name"])


_LONG_NUMBER = re.compile(r"\d\d\d[ -]?\d[ -]?\d\d[ -]?\d\d[ -]?\d\d")
# Digits of other scripts, full-width ones above all, are of several bytes, none of which is ASCII.
_ZEROS = bytes(48 if 48 <= code < 58 or code > 127 else 32 for code in range(256))
_ID_CARD = re.compile(r"(?<!\d)[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dXx](?!\w)")
_CARD = re.compile(r"(?<![\d.])(?:\d[ -]?){12,18}\d(?!\d|\.\d)")
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


class PersonalNumber(Rule):
    code, slug = "ZL018", "personal-number"
    message = "This is a valid {kind}; use an invented one that fails its checksum, or an input"

    def check(self, doc: Document) -> Iterable[Finding]:
        if not _has_long_number(doc.text):
            return
        for match in _ID_CARD.finditer(doc.text):
            number = match[0].upper()
            if "10X98765432"[sum(int(d) * w for d, w in zip(number, _WEIGHTS, strict=False)) % 11] == number[-1]:
                yield self.found(match.span(), kind="identity card number")
        for match in _CARD.finditer(doc.text):
            digits = [int(char) for char in match[0] if char.isdigit()]
            if digits[0] in (3, 4, 5, 6) and len(digits) in (15, 16, 19) and len(set(digits)) > 4 and _luhn(digits):
                yield self.found(match.span(), kind="payment card number")


def _has_long_number(text: str) -> bool:
    # Digits become zeros, without what may part them; so most texts are dismissed far faster than by the search.
    is_possible = b"0" * 10 in text.encode("utf-8", "replace").translate(_ZEROS, b" -")
    return is_possible and _LONG_NUMBER.search(text) is not None


def _luhn(digits: list[int]) -> bool:
    doubled = [sum(divmod(digit * 2, 10)) if index % 2 else digit for index, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0


class SecretPrompt(Rule):
    code, slug, severity = "ZL019", "secrecy-as-defence", "info"
    lexicon = "secrecy"
    message = "A request for secrecy does not keep a prompt secret; leave out what must not be known"

    def check(self, doc: Document) -> Iterable[Finding]:
        for block, _, start, end, _phrase in phrase_hits(doc, "secrecy"):
            yield self.in_block(block, start, end)


_FOREIGN = re.compile(r"[\u0370-\u03ff\u0400-\u04ff]")
_MIXED = re.compile(r"(?<![A-Za-z])[A-Za-z]*[\u0370-\u03ff\u0400-\u04ff][A-Za-z\u0370-\u03ff\u0400-\u04ff]*")
_LOOKALIKE = frozenset("асеорхуіјѕһԁԛԝАВЕКМНОРСТУХІЈЅαονρτυκικΑΒΕΖΗΙΚΜΝΟΡΤΥΧ")


class LookalikeLetters(Rule):
    code, slug = "ZL020", "lookalike-letters"
    message = "`{word}` mixes Latin letters with look-alikes of another script"

    def check(self, doc: Document) -> Iterable[Finding]:
        if doc.text.isascii() or not _FOREIGN.search(doc.text):
            return
        for match in _MIXED.finditer(doc.text):
            word = match[0]
            foreign = [char for char in word if not char.isascii()]
            latin = len(word) - len(foreign)
            if latin >= 2 and latin >= len(foreign) and all(char in _LOOKALIKE for char in foreign):
                yield self.found(match.span(), word=word)
