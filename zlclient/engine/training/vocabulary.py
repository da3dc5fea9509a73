"""The vocabulary: English words and pieces, the common Chinese characters, digits and punctuation.

    python -m zlclient.engine.training vocabulary tokenizer.json

It is made from rules and a list, not learned from a corpus, so it is the same on every machine.
"""

from __future__ import annotations

import string
import tomllib
from functools import cache
from importlib.resources import files

from ..tokenizer import Tokenizer

_MARKS = "，。、；：？！（）《》“”‘’【】「」—…·～％￥℃°±×÷≤≥≈→–•€£¥§\n\t"


@cache
def word_lists() -> dict[str, tuple[str, ...]]:
    """function, content and endings: the lists of `words.toml`."""
    text = (files(__package__ or "zlclient.engine.training") / "words.toml").read_text("utf-8")
    return {name: tuple(dict.fromkeys(words.split())) for name, words in tomllib.loads(text).items()}


@cache
def chinese_characters() -> tuple[str, ...]:
    """The 3,755 characters of GB 2312 level 1 (rows 16 to 55), the most used ones, and a few more."""
    cells = ((row, cell) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    found = [bytes(cell).decode("gb2312", "ignore") for cell in cells]
    return tuple(
        dict.fromkeys([char for char in found if char] + list("〇曦鑫昊玥琪璐瑶婷皓煜焱妍琳瑜瑾铭锂酶卟嘌呤腺癌疡痫栓"))
    )


def build_tokenizer() -> Tokenizer:
    """The tokenizer of both generations."""
    lists = word_lists()
    letters = string.ascii_lowercase
    pieces = [
        *string.punctuation, *string.digits, " ", *_MARKS,
        *letters, *(f" {letter}" for letter in letters),
        *(a + b for a in letters for b in letters), *(f" {a}{b}" for a in letters for b in letters),
        *lists["endings"], *(f" {word}" for word in (*lists["function"], *lists["content"])),
        *chinese_characters(),
    ]  # fmt: skip
    return Tokenizer(list(dict.fromkeys(pieces)))
