"""Text to token ids and back, exactly, for any text.

English words are cut into the longest known pieces, without regard to capitals (a mark before a piece says that it is
`Capitalised` or `UPPER`), so a word in a question and the same word at the start of a sentence are the same pieces.
A piece with a leading space starts a word, one without goes on. Chinese characters, digits and punctuation are pieces
of their own; whatever the vocabulary lacks is written as its UTF-8 bytes. Control tokens are never produced from text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

MARKERS = 64  # sentences of one window, each opened by its own marker
CONTROLS = ("<pad>", "<bos>", "<q>", "<a>", "<end>", "<none>", "<cap>", "<up>", "<v>")
# A word without inner capitals, the run of capitals before one, or any other character.
_RUN = re.compile(r" ?[A-Z]?[a-z]+| ?[A-Z]+(?![a-z])|.", re.DOTALL)


class Tokenizer:
    """A vocabulary and how to use it. `pieces[i]` is the text of token i; control tokens look like `<name>`.

    Ids run: control tokens, sentence markers `<s0>`…, the 256 bytes, then pieces. Immutable after construction.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = tuple(pieces)
        self.size = len(CONTROLS) + MARKERS + 256 + len(self.pieces)
        names = (*CONTROLS, *(f"<s{index}>" for index in range(MARKERS)))
        self.controls = {name: index for index, name in enumerate(names)}
        self.first_byte = len(names)
        self.first_piece = self.first_byte + 256
        self._ids = {piece: self.first_piece + index for index, piece in enumerate(self.pieces)}
        self._longest = max(map(len, self.pieces), default=1)
        self._digits = frozenset(self._ids[digit] for digit in "0123456789" if digit in self._ids)
        self._words: dict[str, tuple[int, ...]] = {}
        self.pad, self.bos, self.question, self.answer, self.end, self.none = range(6)
        self._cap, self._up, self.value = self.controls["<cap>"], self.controls["<up>"], self.controls["<v>"]

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """The tokenizer of a `tokenizer.json`; raises OSError, or ValueError when it is none."""
        data: Any = json.loads(path.read_text("utf-8"))
        try:
            pieces, markers = list(map(str, data["pieces"])), data["markers"]
        except (KeyError, TypeError):
            pieces, markers = [], None
        if markers != MARKERS:
            raise ValueError(f"{path.name} is no tokenizer of this engine")
        return cls(pieces)

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`."""
        text = json.dumps({"markers": MARKERS, "pieces": self.pieces}, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text + "\n", "utf-8")

    def marker(self, index: int) -> int:
        """The token that opens sentence `index` of a window."""
        return self.controls["<s0>"] + index

    def marked(self, token: int) -> int | None:
        """Which sentence a token opens, or None when it is no marker."""
        index = token - self.controls["<s0>"]
        return index if 0 <= index < MARKERS else None

    def is_digit(self, token: int) -> bool:
        """Whether the token is an ASCII digit."""
        return token in self._digits

    def is_capital(self, token: int) -> bool:
        """Whether the token makes the next piece start with a capital."""
        return token in (self._cap, self._up)

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`; `decode` gives it back exactly."""
        # A text that starts a word gets the space that starts its piece; one that starts with a space gets another.
        if text[:1] == " " or (text[:1].isascii() and text[:1].isalpha()):
            text = " " + text
        found: list[int] = []
        for run in _RUN.findall(text):
            known = self._words.get(run)
            if known is None:
                known = tuple(self._run(run))
                if len(self._words) < 100_000:
                    self._words[run] = known
            found += known
        return found

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`; control tokens have none, and bytes that are no UTF-8 become U+FFFD."""
        return self.raw(tokens).decode("utf-8", "replace").removeprefix(" ")

    def raw(self, tokens: Iterable[int]) -> bytes:
        """The UTF-8 of `tokens`, with the space that starts the first word still before it."""
        out = bytearray()
        before = self.pad
        for token in tokens:
            out += self.bytes_after(before, token)
            before = self.carried(before, token)
        return bytes(out)

    def carried(self, before: int, token: int) -> int:
        """What the token after `token` follows: a marker may stand between a mark of capitals and its piece."""
        return before if self.marked(token) is not None else token

    def bytes_after(self, before: int, token: int) -> bytes:
        """The bytes that `token` stands for when it follows `before`, which may be a mark of capitals."""
        if token < self.first_piece:
            return bytes([token - self.first_byte]) if token >= self.first_byte else b""
        piece = self.pieces[token - self.first_piece].encode()
        if before == self._up:
            return piece.upper()
        if before == self._cap:
            at = len(piece) - len(piece.lstrip(b" "))
            return piece[:at] + piece[at : at + 1].upper() + piece[at + 1 :]
        return piece

    def _run(self, run: str) -> list[int]:
        word = run.lstrip(" ")
        if not (word and word.isascii() and word.isalpha()):
            return self._whole(run)
        pieces = self._longest_pieces(run.lower())
        if word.islower():
            return pieces
        if min(pieces) < self.first_piece:  # a mark speaks of a piece, not of a byte
            return [self.first_byte + byte for byte in run.encode()]
        spaces = pieces[: self.pieces[pieces[0] - self.first_piece] == " "]
        pieces = pieces[len(spaces) :]
        if word.isupper() and len(word) > 1:
            return [*spaces, *(token for piece in pieces for token in (self._up, piece))]
        return [*spaces, self._cap, *pieces]

    def _whole(self, text: str) -> list[int]:
        known = self._ids.get(text)
        return [self.first_byte + byte for byte in text.encode("utf-8", "replace")] if known is None else [known]

    def _longest_pieces(self, word: str) -> list[int]:
        found: list[int] = []
        at = 0
        while at < len(word):
            size = min(self._longest, len(word) - at)
            while size > 1 and word[at : at + size] not in self._ids:
                size -= 1
            found += self._whole(word[at : at + size])
            at += size
        return found
