"""Text cut into the stretches within which the tokenizer merges bytes.

SmolLM2's tokenizer first sets every number character apart (Unicode's N*), then cuts what is left by GPT-2's pattern:
an English contraction's end, letters with a space before them, other signs with a space before them, or spaces, of
which the last is left to the word that follows. Python's `re` has no Unicode categories, but it does not need them:
once the numbers are out, its alphanumerics without "_" are exactly the letters (a test goes through all code points).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

# Unicode's White_Space; Python's \s also has the four information separators.
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_PART = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)"
    r"| ?[^\W_]+"
    rf"| ?(?:_|[^\w{_SPACE}])+"
    rf"|[{_SPACE}]+(?![^{_SPACE}])"
    rf"|[{_SPACE}]+"
)


def pretokens(text: str) -> Iterator[str]:
    """The stretches; joined they are `text` again."""
    start = 0
    for at, char in enumerate(text):
        if is_number(char):
            yield from _PART.findall(text[start:at])
            yield char
            start = at + 1
    yield from _PART.findall(text[start:])


@lru_cache(maxsize=4096)
def is_number(char: str) -> bool:
    """Whether Unicode calls it a number: a digit, a fraction, a Roman numeral, a number in a circle."""
    return unicodedata.category(char)[0] == "N"
