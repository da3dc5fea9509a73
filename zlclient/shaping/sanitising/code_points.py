"""code_points.toml as look-up tables, one policy a mode, built when first asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from zlclient.errors import ConfigError

# The sets that contexts ask about most are bits of one byte a code point; the rest are sets of characters.
JOINING, PICTOGRAPHIC, HAN, UNSPACED, RTL, MODIFIER, KEYCAP, VARIATION_BASE = (1 << bit for bit in range(8))
_BITS = {
    "joining": JOINING,
    "pictographic": PICTOGRAPHIC,
    "han": HAN,
    "unspaced": UNSPACED,
    "rtl": RTL,
    "modifier": MODIFIER,
    "keycap": KEYCAP,
    "variation_base": VARIATION_BASE,
}
_CHARACTER_SETS = ("emoji_by_default", "jamo", "mongolian")
_UNTOUCHED = ("always", "elsewhere")  # contexts under which the main pass never acts
_ALL = 0x110000
_FILE = "code_points.toml"

Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the table. `reason` is for people, `source` names the standard it rests on."""

    name: str
    reason: str
    source: str
    hidden: bool = False
    ranges: tuple[tuple[int, int], ...] = ()
    replacement: str = ""
    keep: str | None = None
    strict_keep: str | None = None
    minimal: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one mode as tables.

    `number[code point]` is 0 for a code point the mode leaves alone, else the 1-based place of its rule in `rules`.
    `keep[number]` names the context in which it stays, None where the rule always acts. `suspect` finds one such code
    point, `safe` runs over all others. Both list the safe ones on purpose: for common characters the bitmap of the
    class answers at once, while a class that names the many astral ranges of the rules is walked range by range.
    """

    mode: str
    number: bytes
    rules: tuple[Rule, ...]
    keep: tuple[str | None, ...]
    suspect: re.Pattern[str]
    safe: re.Pattern[str]

    def written(self, number: int, text: str, at: int) -> str:
        """What the rule writes in place of `text[at]`, empty for a deletion."""
        new = self.rules[number].replacement
        if new == "cp1252":
            return text[at].encode("latin-1").decode("cp1252", "ignore")
        return "" if text[at] == "\r" and text.startswith("\n", at + 1) else new


@cache
def _document() -> dict[str, Any]:
    import tomllib
    from importlib.resources import files

    text = files("zlclient.shaping.sanitising").joinpath(_FILE).read_text("utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(error), file=_FILE) from error


def _ranges(owner: str, code_points: str) -> Ranges:
    found: Ranges = []
    for item in code_points.split():
        low, _, high = item.partition("-")
        try:
            first, last = int(low, 16), int(high or low, 16)
        except ValueError as error:
            raise ConfigError("not a hexadecimal code point or range", key=owner, value=item, file=_FILE) from error
        if not first <= last < _ALL:
            raise ConfigError("not a range of code points", key=owner, value=item, file=_FILE)
        found.append((first, last))
    return found


@cache
def rules() -> dict[str, Rule]:
    """Every rule by its public name, those of whole sequences included."""
    document = _document()
    found: dict[str, Rule] = {}
    for entry in [*document["rule"], *document["sequence"]]:
        fields: dict[str, Any] = dict(entry)
        ranges = tuple(_ranges(fields["name"], fields.pop("code_points", "")))
        try:
            found[fields["name"]] = Rule(ranges=ranges, **fields)
        except TypeError as error:
            raise ConfigError(str(error), key=fields["name"], file=_FILE) from error
    return found


@cache
def policy(mode: str) -> Policy:
    """The tables of mode "standard", "strict" or "minimal"; about 1 MB each."""
    number = bytearray(_ALL)
    chosen = [Rule("", "", "")]
    keep: list[str | None] = [None]
    for rule in rules().values():
        context = rule.strict_keep or rule.keep if mode == "strict" else rule.keep
        # A NUL is the one control that breaks transport, so it alone is a rule of mode "minimal" cut from a wider one.
        ranges = rule.ranges
        if mode == "minimal" and not rule.minimal:
            ranges = ((0, 0),) if rule.name == "control" else ()
        if not ranges or context in _UNTOUCHED:
            continue
        for first, last in ranges:
            number[first : last + 1] = bytes([len(chosen)]) * (last + 1 - first)
        chosen.append(rule)
        keep.append(None if context == "never" else context)
    safe = _class([(run.start(), run.end() - 1) for run in re.finditer(rb"\x00+", number)])
    return Policy(mode, bytes(number), tuple(chosen), tuple(keep), re.compile(f"[^{safe}]"), re.compile(f"[{safe}]*+"))


def _class(ranges: Ranges) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


@cache
def properties() -> bytes:
    """The bits JOINING … VARIATION_BASE of every code point."""
    table = bytearray(_ALL)
    for name, bit in _BITS.items():
        with_bit = bytes(value | bit for value in range(256))
        for first, last in _set_ranges(name):
            table[first : last + 1] = table[first : last + 1].translate(with_bit)
    return bytes(table)


@cache
def characters(name: str) -> frozenset[str]:
    """The set "emoji_by_default", "jamo" or "mongolian"."""
    if name not in _CHARACTER_SETS:
        raise KeyError(name)
    return frozenset(chr(code) for first, last in _set_ranges(name) for code in range(first, last + 1))


@cache
def rtl() -> re.Pattern[str]:
    """Finds a character written from right to left."""
    return re.compile("[" + _class(_set_ranges("rtl")) + "]")


def _set_ranges(name: str) -> Ranges:
    return _ranges(f"set.{name}", _document()["set"][name]["code_points"])
