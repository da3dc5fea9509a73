"""The safetensors format, read and written with numpy alone.

A file is an 8-byte little-endian length, a JSON header of `name → dtype, shape, data_offsets`, and the data
(https://github.com/huggingface/safetensors#format). Nothing in it is ever executed.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError

Array = NDArray[Any]
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "|u1"}
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_LARGEST_HEADER = 100_000_000  # the format's own bound


def read_tensors(path: Path) -> dict[str, Array]:
    """The tensors of a file, as read-only views of one mapping of it.

    Raises:
        ConfigError: the file cannot be read or is no safetensors file; names the tensor at fault.
    """
    try:
        raw = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
    size = int.from_bytes(raw[:8].tobytes(), "little")
    if raw.size < 8 or size > min(_LARGEST_HEADER, raw.size - 8):
        raise ConfigError("is no safetensors file: its header does not fit", file=str(path))
    try:
        header: Any = json.loads(raw[8 : 8 + size].tobytes())
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise ConfigError("is no safetensors file: its header is no JSON object", file=str(path))
    data = raw[8 + size :]
    entries = cast("dict[str, Any]", header)
    return {name: _tensor(name, entry, data, path) for name, entry in entries.items() if name != "__metadata__"}


def _tensor(name: str, entry: Any, data: Array, path: Path) -> Array:
    try:
        dtype = np.dtype(_TYPES[entry["dtype"]])
        begin, end = entry["data_offsets"]
        if not 0 <= begin <= end <= data.size:
            raise ValueError
        return data[begin:end].view(dtype).reshape(entry["shape"])
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"tensor {name!r} has no valid type, shape and place", file=str(path)) from None


def write_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """Write `tensors` in the order of their names; the same tensors give the same bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    chunks: list[bytes] = []
    at = 0
    for name in sorted(tensors):
        chunk = tensors[name]
        data = chunk.tobytes()  # in C order
        header[name] = {
            "dtype": _NAMES[chunk.dtype],
            "shape": list(chunk.shape),
            "data_offsets": [at, at + len(data)],
        }
        chunks.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join((struct.pack("<Q", len(text)), text, *chunks)))


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
