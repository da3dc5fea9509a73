"""An estimate of tokens, and text cut into token-sized pieces.

No provider's tokenizer is reproduced: a piece is a Chinese, Japanese or Korean character, up to three digits, a word
part of at most eight letters with the space before it, or one other character. On English and Chinese prose that is
near one piece a token.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PIECE = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]| ?\d{1,3}| ?[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{1,8}|\s+|."
)


def pieces(text: str) -> list[str]:
    """`text` cut into pieces; joined they are `text` again."""
    return _PIECE.findall(text)


def count(text: str) -> int:
    """The number of pieces in `text`."""
    return len(_PIECE.findall(text))


def count_json(value: Any) -> int:
    """The number of pieces in `value` written as JSON; 0 for None and for empty values."""
    return count(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) if value else 0
