"""How many tokens a text costs, without a network.

`estimate_tokens` adds one weight a character, by character class. The weights were fitted on natural text in many
languages (median error 1.9 % for Claude, 3.7 % for o200k; 19 of 20 texts within 20 %); on text full of markup, tables
and code they err on the high side (tests/benchmarks/tokens.py). So a figure that must not be exceeded needs a margin:
`with_margin` pads an estimate, `plannable` shrinks a limit. Long unbroken ASCII runs (base64, digests, keys) are far
dearer than words and are charged one token a character. `count_tokens` counts exactly where an installed tokenizer
knows the model, and says whether it did.

The estimate is additive but for those runs, and cutting a run never makes it dearer: the parts of a text, estimated
one by one, cost at least what the whole costs, less rounding. The segmenter stands on that.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

Family = Literal["claude", "o200k", "unknown"]

UNIT = 100
"""Weights are whole hundredths of a token, so that sums are exact and the same everywhere."""

MARGIN = 1.25
"""What budgets allow for the estimate's error: the worst natural text was underestimated by 20 %."""

RUN_LENGTH = 32
"""An unbroken ASCII run of at least this many characters is charged one token a character."""

# class: (Claude 4.8 and later, o200k), in hundredths of a token a character. "rare" and "astral" are not fitted:
# characters outside the vocabularies fall back to their bytes, three or four tokens each.
_WEIGHTS: dict[str, tuple[int, int]] = {
    "letter": (37, 25),
    "digit": (52, 54),
    "space": (10, 5),
    "newline": (26, 0),
    "punctuation": (103, 84),
    "han": (112, 71),
    "kana": (89, 82),
    "hangul": (139, 68),
    "arabic": (77, 37),
    "indic": (85, 37),
    "other": (88, 126),
    "emoji": (228, 144),
    "rare": (300, 300),
    "astral": (400, 400),
}
# Everything not named here is "other". Later entries win.
_RANGES: tuple[tuple[int, int, str], ...] = (
    (0x20, 0x20, "space"),
    (0x09, 0x09, "space"),
    (0xA0, 0xA0, "space"),
    (0x3000, 0x3000, "space"),
    (0x0A, 0x0D, "newline"),
    (0x85, 0x85, "newline"),
    (0x21, 0x7E, "punctuation"),
    (0xA1, 0xBF, "punctuation"),
    (0x30, 0x39, "digit"),
    (0x41, 0x5A, "letter"),
    (0x61, 0x7A, "letter"),
    (0xC0, 0x24F, "letter"),
    (0x370, 0x52F, "letter"),  # Greek and Cyrillic merge as Latin does
    (0x1E00, 0x1FFF, "letter"),
    (0x530, 0x5FF, "arabic"),  # Armenian and Hebrew merge as Arabic does
    (0x600, 0x8FF, "arabic"),
    (0x10A0, 0x10FF, "arabic"),  # Georgian
    (0xFB50, 0xFDFF, "arabic"),
    (0xFE70, 0xFEFE, "arabic"),
    (0x900, 0xDFF, "indic"),
    (0x1100, 0x11FF, "hangul"),
    (0x3130, 0x318F, "hangul"),
    (0xAC00, 0xD7AF, "hangul"),
    (0x2010, 0x2027, "punctuation"),
    (0x2030, 0x205E, "punctuation"),
    (0x2028, 0x2029, "newline"),
    (0x3001, 0x3020, "punctuation"),
    (0x3041, 0x30FF, "kana"),
    (0x31F0, 0x31FF, "kana"),
    (0xFF66, 0xFF9D, "kana"),
    (0xFF01, 0xFF65, "punctuation"),
    (0x4E00, 0x9FFF, "han"),
    (0x3400, 0x4DBF, "rare"),
    (0xE000, 0xF8FF, "rare"),
    (0xF900, 0xFAFF, "emoji"),  # compatibility ideographs: two tokens, near enough
    (0x2600, 0x27BF, "emoji"),
    (0x10000, 0x10FFFF, "astral"),
    (0x1F000, 0x1FAFF, "emoji"),
)
# Older and foreign models stay "unknown": cl100k, for one, takes half as many tokens again for Chinese.
_O200K = ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-6", "gpt-oss", "chatgpt", "o1", "o3", "o4")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
_SPACES = b" \t"
_NEWLINES = b"\n\r\x0b\x0c"
_CONTROLS = bytes(c for c in range(128) if (c < 0x20 and c not in b"\t\n\r\x0b\x0c") or c == 0x7F)
_RUN_MASK = bytes(0x78 if c in _LETTERS + _DIGITS + b"+/=_-" else 0x20 for c in range(256))
_RUN = b"x" * RUN_LENGTH
_UTF32 = "utf-32-le" if sys.byteorder == "little" else "utf-32-be"
_CHUNK = 1 << 18  # characters weighed at once; bounds what a long text costs in memory
_NUMPY_PAYS = 1 << 14  # below this, importing numpy costs more than it saves


@dataclass(frozen=True, slots=True)
class TokenCount:
    """`n` tokens; `exact` when a tokenizer counted them, else estimated without margin."""

    n: int
    exact: bool


def estimate_tokens(text: str, model: str | None = None) -> int:
    """Estimate the tokens of `text`; an unknown or absent `model` gets the larger weight of every class."""
    return -(-weigh(text, family_of(model)) // UNIT)


def count_tokens(text: str, model: str | None = None) -> TokenCount:
    """Count with an installed tokenizer that knows `model` (quicktok, or tiktoken with a local cache), or estimate."""
    tokenizer = exact_tokenizer(model)
    if tokenizer is None:
        return TokenCount(estimate_tokens(text, model), exact=False)
    return TokenCount(tokenizer(text), exact=True)


def with_margin(tokens: int) -> int:
    """Return an upper bound that natural text of `tokens` estimated tokens keeps to."""
    return math.ceil(tokens * MARGIN)


def plannable(limit: int) -> int:
    """How many estimated tokens may be planned into a real `limit`."""
    return math.floor(limit / MARGIN)


def family_of(model: str | None) -> Family:
    """Return whose tokenizer `model` uses; a provider's prefix (`openai:`, `anthropic/`) is ignored."""
    if not model:
        return "unknown"
    name = model.lower().replace(":", "/").rpartition("/")[2]
    if "claude" in name:  # also anthropic.claude-… and claude-…@date, as the clouds write it
        return "claude"
    return "o200k" if name.startswith(_O200K) else "unknown"


def weigh(text: str, family: Family) -> int:
    """Weigh `text` in hundredths of a token, long ASCII runs included."""
    if text.isascii():
        data = text.encode("ascii")
        total = _weigh_ascii(data, family)
    else:
        data = text.encode("ascii", "replace") if len(text) >= RUN_LENGTH else b""
        total = _weigh_any(text, family)
    for start, end in runs(data):
        total += max(0, UNIT * (end - start) - _weigh_ascii(data[start:end], family))
    return total


def runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of long unbroken runs in `data`, an ASCII rendering with one byte a character.

    A run of few distinct characters, such as a ruled line, is no run: tokenizers hold those whole.
    """
    if len(data) < RUN_LENGTH:
        return
    mask = data.translate(_RUN_MASK)
    start = mask.find(_RUN)
    while start >= 0:
        end = mask.find(b" ", start)
        end = len(mask) if end < 0 else end
        if len(set(data[start : min(end, start + 4 * RUN_LENGTH)])) >= 4:
            yield start, end
        start = mask.find(_RUN, end)


@cache
def weights(family: Family) -> array[int]:
    """Return the weight of every code point, in hundredths of a token, as an array of 0x110000 unsigned shorts."""

    def weight(kind: str) -> int:
        claude, o200k = _WEIGHTS[kind]
        return {"claude": claude, "o200k": o200k, "unknown": max(claude, o200k)}[family]

    table = array("H", [weight("other")]) * 0x110000
    for first, last, kind in _RANGES:
        table[first : last + 1] = array("H", [weight(kind)]) * (last - first + 1)
    return table


def numpy_for(size: int) -> Any:
    """Return numpy where it is worth it for `size` characters: already imported, or installed and the text long."""
    if size < 256:
        return None
    if "numpy" not in sys.modules and size < _NUMPY_PAYS:
        return None
    return _numpy()


@cache
def _numpy() -> Any:
    try:
        import numpy as np  # pyright: ignore[reportMissingImports, reportUnusedImport]
    except ImportError:
        return None
    return np


@cache
def _numpy_weights(family: Family) -> Any:
    return _numpy().frombuffer(weights(family), dtype="uint16")


@cache
def _ascii_table(family: Family) -> bytes:
    return bytes([*weights(family)[:128], *[0] * 128])  # every ASCII weight fits a byte


def weigh_each(text: str, family: Family) -> Any:
    """Return the weight of each character, runs left out: a writable numpy array or, without numpy, an array."""
    np = numpy_for(len(text))
    if text.isascii():
        weighed = bytearray(text.encode("ascii").translate(_ascii_table(family)))
        return array("B", weighed) if np is None else np.frombuffer(weighed, dtype=np.uint8)
    data = text.encode(_UTF32, "surrogatepass")
    if np is None:
        return array("H", map(weights(family).__getitem__, array("I", data)))
    # Every code point is inside the table; "clip" spares numpy a check of each.
    return _numpy_weights(family).take(np.frombuffer(data, dtype=np.uint32), mode="clip")


def _weigh_any(text: str, family: Family) -> int:
    if numpy_for(len(text)) is None:
        return sum(map(weights(family).__getitem__, map(ord, text)))
    pieces = (text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK))
    return sum(int(weigh_each(piece, family).sum(dtype="int64")) for piece in pieces)


@cache
def _ascii_weights(family: Family) -> tuple[int, int, int, int, int, int]:
    table = weights(family)
    return table[0x61], table[0x30], table[0x20], table[0x0A], table[0], table[0x21]


def _weigh_ascii(data: bytes, family: Family) -> int:
    """Weigh ASCII by deleting one class after another: bytes.translate is the quickest counter Python has."""
    letter, digit, space, newline, control, punctuation = _ascii_weights(family)
    no_letters = data.translate(None, _LETTERS)
    no_spaces = no_letters.translate(None, _SPACES)
    no_digits = no_spaces.translate(None, _DIGITS)
    no_newlines = no_digits.translate(None, _NEWLINES)
    rest = len(no_newlines.translate(None, _CONTROLS))
    return (
        letter * (len(data) - len(no_letters))
        + space * (len(no_letters) - len(no_spaces))
        + digit * (len(no_spaces) - len(no_digits))
        + newline * (len(no_digits) - len(no_newlines))
        + control * (len(no_newlines) - rest)
        + punctuation * rest
    )


def exact_tokenizer(model: str | None) -> Callable[[str], int] | None:
    """Return a function from text to its exact token count, or None where none is installed. No network is used."""
    if family_of(model) != "o200k":
        return None
    return _o200k()


@cache
def _o200k() -> Callable[[str], int] | None:
    try:
        import quicktok  # pyright: ignore[reportMissingTypeStubs, reportMissingImports]
    except ImportError:
        return _tiktoken_o200k()
    count = cast("Callable[[str], int]", quicktok.get_encoding("o200k_base").count)  # pyright: ignore

    def counted(text: str) -> int:
        # It takes UTF-8 only; a lone surrogate costs what the replacement a wire would carry does.
        return count(text.encode("utf-8", "replace").decode("utf-8"))

    return counted


def _tiktoken_o200k() -> Callable[[str], int] | None:
    """tiktoken downloads a vocabulary it does not have; so look for the cached file first."""
    import hashlib
    import os
    import tempfile
    from pathlib import Path

    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    cached = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache")
    if not (cached / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()).is_file():
        return None
    try:
        import tiktoken  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    encoding: Any = tiktoken.get_encoding("o200k_base")

    def counted(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return counted
