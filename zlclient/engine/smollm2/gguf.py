"""GGUF files, read through a memory map: metadata as Python values, tensors as float32.

A file is magic, version, two counts, then the metadata (key, type, value), then the tensors (name, sizes with the
fastest first, type, offset), then padding and the data (the format's own description:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Every length is checked against what is left of the file
before anything is read or allocated for it, so that a damaged or hostile file is an error that names the byte.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import ConfigError
from ..safetensors import Array
from .quantised import FORMATS

MAGIC = b"GGUF"
VERSIONS = (2, 3)  # 1 had 32-bit lengths and is not written any more
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_DIMENSIONS = 4  # the most that the format has
_ALIGNMENT = 32  # where the file names none
_LEAST_ENTRY = 13  # bytes: a key's length, a type, a value of one byte


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor's place: `shape` is numpy's (slowest first), `start` its first byte in the file."""

    shape: tuple[int, ...]
    kind: int
    start: int


class Gguf:
    """An open file. `metadata` maps keys to numbers, booleans, strings, lists of strings, or arrays of the others."""

    def __init__(self, path: Path) -> None:
        """Read everything but the tensors' data.

        Raises:
            ConfigError: the file cannot be read or is no valid GGUF file; names the byte at which it is wrong.
        """
        self.path = path
        try:
            self._data: Array = np.memmap(path, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
        cursor = _Cursor(self._data, path)
        if cursor.take(4) != MAGIC:
            raise ConfigError("is no GGUF file", file=str(path))
        version = cursor.scalar("I")
        if version not in VERSIONS:
            raise cursor.wrong(f"version {version} is none of {VERSIONS}")
        tensors, entries = cursor.count(_LEAST_ENTRY), cursor.count(_LEAST_ENTRY)
        self.metadata: dict[str, Any] = {}
        for _ in range(entries):
            key = cursor.string()
            self.metadata[key] = cursor.value(cursor.scalar("I"))
        self.tensors = self._entries(cursor, tensors)

    def _entries(self, cursor: _Cursor, count: int) -> dict[str, Entry]:
        alignment = self.metadata.get("general.alignment", _ALIGNMENT)
        if not isinstance(alignment, int) or not 0 < alignment <= 1 << 20:
            raise cursor.wrong("general.alignment is no sensible number of bytes")
        headers = [cursor.tensor_header() for _ in range(count)]
        base = -(-cursor.at // alignment) * alignment
        found: dict[str, Entry] = {}
        for at, name, shape, kind, offset in headers:
            start = base + offset
            if name in found:
                raise cursor.wrong(f"tensor {name!r} is there twice", at)
            if kind not in FORMATS:
                raise cursor.wrong(f"tensor {name!r} has type {kind}; read are {', '.join(map(str, FORMATS))}", at)
            form = FORMATS[kind]
            if shape[-1] % form.values:
                raise cursor.wrong(f"tensor {name!r} has rows that are no whole blocks of {form.values}", at)
            if start + math.prod(shape) // form.values * form.size > self._data.size:
                raise cursor.wrong(f"tensor {name!r} does not fit in the file", at)
            found[name] = Entry(shape, kind, start)
        return found

    def tensor(self, name: str, shape: tuple[int, ...]) -> Array:
        """A tensor's values, float32, in memory of their own; raises ConfigError unless it is there with `shape`."""
        entry = self.tensors.get(name)
        if entry is None:
            raise ConfigError(f"tensor {name!r} is missing", file=str(self.path))
        if entry.shape != shape:
            raise ConfigError(f"tensor {name!r} has shape {entry.shape}, not {shape}", file=str(self.path))
        form = FORMATS[entry.kind]
        size = math.prod(shape) // form.values * form.size
        return form.read(self._data[entry.start : entry.start + size]).reshape(shape)

    def number(self, key: str, kind: type[int] | type[float] = int, least: float = 1, most: float = 1 << 20) -> Any:
        """Metadata that must be a number of `kind` within bounds; raises ConfigError naming the key."""
        value = self.metadata.get(key)
        if not isinstance(value, kind) or isinstance(value, bool) or not least <= value <= most:
            raise ConfigError(f"must be a {kind.__name__} from {least} to {most}", key=key, file=str(self.path))
        return value

    def strings(self, key: str) -> list[str]:
        """Metadata that must be a list of strings; raises ConfigError naming the key."""
        value = self.metadata.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):  # pyright: ignore[reportUnknownVariableType]
            raise ConfigError("must be a list of strings", key=key, file=str(self.path))
        return value  # pyright: ignore[reportUnknownVariableType]


class _Cursor:
    """A place in a file's head. Whatever does not fit in what is left is an error."""

    def __init__(self, data: Array, path: Path) -> None:
        self._bytes = data.data
        self._path = path
        self.at = 0

    def wrong(self, problem: str, at: int | None = None) -> ConfigError:
        """The error of something at byte `at`, here when None."""
        return ConfigError(f"byte {self.at if at is None else at}: {problem}", file=str(self._path))

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size > len(self._bytes) - self.at:
            raise self.wrong(f"ends too early: {size} bytes should follow")
        start, self.at = self.at, self.at + size
        return bytes(self._bytes[start : self.at])

    def scalar(self, code: str) -> Any:
        """One number of `struct`'s `code`."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}")))[0]

    def count(self, least: int) -> int:
        """A number of things that take at least `least` bytes each."""
        at, count = self.at, self.scalar("Q")
        if count * least > len(self._bytes) - self.at:
            raise self.wrong(f"{count} entries do not fit in the file", at)
        return count

    def string(self) -> str:
        """A length and as much UTF-8."""
        at, raw = self.at, self.take(self.scalar("Q"))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.wrong("this string is no UTF-8", at) from None

    def value(self, kind: int) -> Any:
        """A value of `kind`; arrays of arrays are refused, nothing writes them."""
        if kind == _STRING:
            return self.string()
        if kind in _SCALARS:
            return self.scalar(_SCALARS[kind])
        if kind != _ARRAY:
            raise self.wrong(f"there is no type {kind}")
        kind = self.scalar("I")
        if kind == _STRING:
            return [self.string() for _ in range(self.count(8))]
        if kind not in _SCALARS:
            raise self.wrong(f"there is no array of type {kind}")
        dtype = np.dtype(_SCALARS[kind]).newbyteorder("<")
        return np.frombuffer(self.take(self.count(dtype.itemsize) * dtype.itemsize), dtype)

    def tensor_header(self) -> tuple[int, str, tuple[int, ...], int, int]:
        """Where it stands, and a tensor's name, shape, type and offset."""
        at, name = self.at, self.string()
        dimensions = self.scalar("I")
        if not 1 <= dimensions <= _DIMENSIONS:
            raise self.wrong(f"tensor {name!r} has {dimensions} dimensions", at)
        sizes = struct.unpack(f"<{dimensions}Q", self.take(8 * dimensions))
        if not all(sizes):
            raise self.wrong(f"tensor {name!r} is empty", at)
        return at, name, tuple(reversed(sizes)), self.scalar("I"), self.scalar("Q")
