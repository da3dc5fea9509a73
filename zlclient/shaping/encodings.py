"""Which encoding some bytes are in: marks, then what decodes strictly, then what reads like a language.

No statistics package is needed for the encodings documents come in: a byte order mark or valid UTF-8 settles nearly
all of them, and what is left is told apart by how many of the decoded characters are ones its language uses all the
time. A wrong guess among the legacy encodings scores near zero, because it decodes to rare characters.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from ..errors import InputError

_SAMPLE = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The commonest characters of running Chinese, simplified and traditional: about half of any text.
_COMMON_HAN = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方"
    "多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情"
    "明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给"
    "這個們來為國說時會對於著發後裡種經麼學現當沒動還進樣從實軍無與長機關點業將兩間問並應戰頭體見產給條規應權責當"
)
_PUNCTUATION = frozenset("，。、；：？！“”‘’（）《》【】—…·「」『』　")
_CYRILLIC_USUAL = frozenset("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё")
_LATIN_USUAL = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœÀÁÂÄÅÇÈÉÊÍÑÓÖÜØŠšžŽ‘’“”–—…€£§°«»·¿¡©®™×½²³µ")


def _share(decoded: str, usual: Callable[[str], bool]) -> float:
    strange = [char for char in decoded if ord(char) >= 0x80]
    return sum(map(usual, strange)) / len(strange) if strange else 0.0


def _chinese(decoded: str) -> float:
    # Half the characters of Chinese are these; every other reading of the bytes reaches a tenth.
    return min(1.0, 2 * _share(decoded, lambda c: c in _COMMON_HAN or c in _PUNCTUATION))


def _japanese(decoded: str) -> float:
    kana = _share(decoded, lambda c: "\u3041" <= c <= "\u30ff")
    rest = _share(decoded, lambda c: "\u4e00" <= c <= "\u9fff" or c in _PUNCTUATION)
    return kana + rest if kana > 0.2 else 0.0


def _korean(decoded: str) -> float:
    hangul = _share(decoded, lambda c: "\uac00" <= c <= "\ud7a3")
    return hangul if hangul > 0.85 else 0.0


def _cyrillic(decoded: str) -> float:
    return _share(decoded, lambda c: c in _CYRILLIC_USUAL)


def _latin(decoded: str) -> float:
    # Western text is mostly ASCII; where most characters are accented, it is another language misread.
    strange = sum(ord(char) >= 0x80 for char in decoded)
    return _share(decoded, lambda c: c in _LATIN_USUAL) if strange < 0.3 * len(decoded) else 0.0


_CANDIDATES: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("gb18030", _chinese),
    ("big5hkscs", _chinese),
    ("cp932", _japanese),
    ("euc_jp", _japanese),
    ("cp949", _korean),
    ("cp1251", _cyrillic),
    ("koi8_r", _cyrillic),
    ("cp1252", _latin),
)


def detect_encoding(data: bytes) -> str:
    """Return the Python codec `data` is in, judged by its first 64 KiB; cp1252 when nothing fits better.

    Raises InputError for bytes that are no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    sample = data[:_SAMPLE]
    wide = _utf16_without_mark(sample)
    if wide:
        return wide
    if _decoded(sample, "utf-8") is not None:
        return "utf-8"
    if b"\0" in sample:
        raise InputError("these bytes are no text (they hold NUL)", where="data")
    if _is_damaged_utf8(sample):
        return "utf-8"
    best, score = "cp1252", 0.2
    for encoding, plausible in _CANDIDATES:
        decoded = _decoded(sample, encoding)
        if decoded is not None and (found := plausible(decoded)) > score:
            best, score = encoding, found
    return best


def decode(data: bytes, encoding: str | None = None) -> tuple[str, str]:
    """Return the text of `data` and its encoding, line ends as they are.

    Bytes that the encoding has no character for become U+FFFD. Raises InputError for an unknown encoding.
    """
    encoding = encoding or detect_encoding(data)
    try:
        return data.decode(encoding, "replace"), encoding
    except LookupError:
        raise InputError(f"Python knows no encoding {encoding!r}", where="encoding") from None


def _decoded(sample: bytes, encoding: str) -> str | None:
    """Decode strictly; a character cut off at the end of the sample is no error."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(sample, final=False)
    except UnicodeDecodeError:
        return None


def _is_damaged_utf8(sample: bytes) -> bool:
    """Say whether `sample` would be UTF-8 but for one damaged character in twenty at most."""
    decoded = sample.decode("utf-8", "replace")
    damaged = decoded.count("\ufffd")
    return damaged * 20 < sum(ord(char) >= 0x80 for char in decoded)


def _utf16_without_mark(sample: bytes) -> str | None:
    """Recognise UTF-16 where NUL bytes show that it may be: read the right way round, it is mostly usual characters.

    Which side the NULs are on says little: 一 is U+4E00.
    """
    if b"\0" not in sample:
        return None
    shares: dict[str, float] = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        decoded = _decoded(sample[: len(sample) // 2 * 2], encoding)
        shares[encoding] = sum(map(_is_usual, decoded)) / len(decoded) if decoded else 0.0
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] > 0.4 and shares[best] > 2 * min(shares.values()) else None


def _is_usual(char: str) -> bool:
    if char < "\x80":
        return char.isprintable() or char in "\t\r\n\f"
    return (
        char in _COMMON_HAN
        or char in _PUNCTUATION
        or char in _CYRILLIC_USUAL
        or char in _LATIN_USUAL
        or "ぁ" <= char <= "ヿ"
    )
