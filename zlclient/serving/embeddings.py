"""OpenAI embeddings, made by feature hashing: texts that share words and letter groups are near each other.

Deterministic and of unit length, so that an application's index works as with a real model, without its
sense of meaning.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import re
import struct
from typing import TYPE_CHECKING, Any, cast

from .anthropic import json_response
from .openai_common import check_fields, invalid, missing
from .tokens import count
from .wire import WireResponse

if TYPE_CHECKING:
    from .server import Call

SIZES = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_WORD = re.compile(r"[a-z0-9]+|[\u3040-\u9fff\uac00-\ud7af]")


def create(call: Call) -> WireResponse:
    """POST /v1/embeddings."""
    body = call.json()
    check_fields(body, "embeddings")
    name = body.get("model")
    if not isinstance(name, str):
        raise missing("model")
    texts = _inputs(body.get("input"))
    size = body.get("dimensions", SIZES.get(name, 1536))
    if not isinstance(size, int) or not 1 <= size <= 8192:
        raise invalid("Invalid 'dimensions': expected an integer between 1 and 8192.", "dimensions")
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": at, "embedding": _packed(vector) if packed else vector}
        for at, vector in enumerate(embed(text, size) for text in texts)
    ]
    tokens = sum(count(text) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json_response({"object": "list", "model": name, "data": data, "usage": usage})


def embed(text: str, size: int) -> list[float]:
    """A unit vector of `size` numbers for `text`."""
    vector = [0.0] * size
    units = _WORD.findall(text.lower())
    features = [*units, *(a + " " + b for a, b in itertools.pairwise(units))] or [text]
    for feature in features:
        digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=24).digest()
        for at in range(0, 24, 6):
            place = int.from_bytes(digest[at : at + 5], "big") % size
            vector[place] += 1.0 if digest[at + 5] & 1 else -1.0
    length = math.sqrt(sum(value * value for value in vector))
    if not length:
        vector[0] = length = 1.0
    return [value / length for value in vector]


def _inputs(given: Any) -> list[str]:
    """The texts to embed; token arrays are taken as texts of their numbers."""
    if given is None:
        raise missing("input")
    items: list[Any] = cast("list[Any]", given) if isinstance(given, list) else [given]
    if items and all(isinstance(item, int) for item in items):
        items = [items]
    if not items or any(item in ("", []) for item in items):
        raise invalid("Invalid 'input': expected a non-empty string or array.", "input")
    if not all(isinstance(item, (str, list)) for item in items):
        raise invalid("Invalid 'input': expected strings or arrays of tokens.", "input", "invalid_type")
    return [item if isinstance(item, str) else " ".join(map(str, item)) for item in items]


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
