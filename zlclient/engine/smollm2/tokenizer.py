"""Byte-level byte-pair encoding, from what the model's file says: text to token ids and back.

The UTF-8 of a stretch of text is merged pair by pair, the earliest merge of the list first. Control tokens such as the
end of a turn stand outside of this: no text encodes to them, whatever it says. Of the 256 bytes the vocabulary lacks 21
(eight ASCII control characters, and starts of UTF-8 that are unused or lead to unassigned planes); as in the original
they are left out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from ...errors import ConfigError
from .gguf import Gguf
from .pretokens import pretokens

_NORMAL = 1  # tokenizer.ggml.token_type of a token that text may become
_REMEMBERED = 50_000  # stretches
_LONGEST_REMEMBERED = 32  # characters


class Tokenizer:
    """A vocabulary and its merges. Safe to use from several threads.

    `pieces[i]` is what token i stands for in bytes; a control token's is empty. `controls` maps their names to ids.
    """

    def __init__(self, tokens: Sequence[str], merges: Sequence[tuple[str, str]], controls: Iterable[int] = ()) -> None:
        """`tokens` and `merges` are written in GPT-2's alphabet of 256 printable characters, one a byte.

        Raises:
            ValueError: a token cannot be read in that alphabet, or a merge makes no token.
        """
        apart = set(controls)
        self.controls = {tokens[token]: token for token in sorted(apart)}
        self.pieces = tuple(b"" if at in apart else _bytes_of(token) for at, token in enumerate(tokens))
        self.size = len(tokens)
        ids = {token: at for at, token in enumerate(tokens) if at not in apart}
        self._bytes = tuple(ids.get(char) for char in ALPHABET)
        self._merges: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, (left, right) in enumerate(merges):
            try:
                self._merges.setdefault((ids[left], ids[right]), (rank, ids[left + right]))
            except KeyError:
                raise ValueError(f"merge {rank} is of or makes something that is no token") from None
        self._known: dict[str, tuple[int, ...]] = {}

    @classmethod
    def of(cls, file: Gguf) -> Tokenizer:
        """The tokenizer that a model's file describes; raises ConfigError where it describes none of this kind."""
        for key, needed in (("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", "smollm")):
            if file.metadata.get(key) != needed:
                raise ConfigError(f"must be {needed!r}", key=key, file=str(file.path))
        tokens = file.strings("tokenizer.ggml.tokens")
        kinds = file.metadata.get("tokenizer.ggml.token_type")
        if getattr(kinds, "shape", None) != (len(tokens),):
            raise ConfigError("must be a number a token", key="tokenizer.ggml.token_type", file=str(file.path))
        merges: list[tuple[str, str]] = []
        for merge in file.strings("tokenizer.ggml.merges"):
            left, _, right = merge.partition(" ")
            merges.append((left, right))
        try:
            return cls(tokens, merges, (at for at, kind in enumerate(kinds) if kind != _NORMAL))  # type: ignore[arg-type]
        except ValueError as error:
            raise ConfigError(str(error), key="tokenizer.ggml", file=str(file.path)) from None

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`, never a control token; `decode` gives it back."""
        found: list[int] = []
        for stretch in pretokens(text):
            known = self._known.get(stretch)
            if known is None:
                known = tuple(self._merged(stretch.encode("utf-8", "replace")))
                if len(stretch) <= _LONGEST_REMEMBERED and len(self._known) < _REMEMBERED:
                    self._known[stretch] = known
            found += known
        return found

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`; control tokens have none, and bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.pieces[token] for token in tokens).decode("utf-8", "replace")

    def _merged(self, data: bytes) -> list[int]:
        """`data` with every merge made, earliest rank first and leftmost within one; n log n, for a word may be a page.

        Tokens form a linked list over their first bytes' places; a heap holds the merges that were possible when put
        there, and one whose two tokens are no longer the same is passed over.
        """
        tokens = [token for byte in data if (token := self._bytes[byte]) is not None]
        after = [*range(1, len(tokens)), -1] if tokens else []
        before = list(range(-1, len(tokens) - 1))
        heap: list[tuple[int, int, int, int]] = []

        def offer(at: int) -> None:
            if at >= 0 and after[at] >= 0:
                pair = tokens[at], tokens[after[at]]
                if (merge := self._merges.get(pair)) is not None:
                    heapq.heappush(heap, (merge[0], at, *pair))

        for at in range(len(tokens)):
            offer(at)
        while heap:
            _, at, left, right = heapq.heappop(heap)
            gone = after[at]
            if tokens[at] != left or gone < 0 or tokens[gone] != right:
                continue
            tokens[at], tokens[gone] = self._merges[left, right][1], -1
            after[at] = after[gone]
            if after[at] >= 0:
                before[after[at]] = at
            offer(at)
            offer(before[at])
        return [token for token in tokens if token >= 0]


def _alphabet() -> str:
    """GPT-2's printable character for each byte: itself where it prints, else the next one from U+0100 on."""
    printing = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = [byte for byte in range(256) if byte not in printing]
    return "".join(chr(byte if byte in printing else 256 + others.index(byte)) for byte in range(256))


ALPHABET = _alphabet()
_BYTES = {char: byte for byte, char in enumerate(ALPHABET)}


def _bytes_of(token: str) -> bytes:
    try:
        return bytes(_BYTES[char] for char in token)
    except KeyError:
        raise ValueError(f"token {token!r} is not in the alphabet of bytes") from None
