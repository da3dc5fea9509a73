"""Prompt caching as the Messages API accounts for it: a marked prefix is written once and read for five minutes after.

A prefix is everything up to a block with `cache_control`: tools, then system, then messages. The longest prefix seen
before counts as read, what lies between it and the last mark as written. Prefixes under the minimum are not cached.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from .tokens import count

TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
CAPACITY = 4096


class PrefixCache:
    """Remembers which prefixes were written, and until when. Thread-safe."""

    def __init__(self, minimum: int, clock: Callable[[], float]) -> None:
        self._minimum, self._clock = minimum, clock
        self._until: OrderedDict[bytes, float] = OrderedDict()
        self._lock = threading.Lock()

    def account(self, body: Mapping[str, Any], *, every: bool = False) -> tuple[int, int]:
        """The (read, written) tokens of a request's marked prefixes; remembers them.

        With `every`, the end of each block counts as marked, which is how the OpenAI APIs cache.
        """
        prefixes = [prefix for prefix in _prefixes(body, every=every) if prefix[1] >= self._minimum]
        if not prefixes:
            return 0, 0
        now = self._clock()
        with self._lock:
            read = max((tokens for key, tokens, _ in prefixes if self._until.get(key, 0.0) > now), default=0)
            for key, _, ttl in prefixes:
                self._until[key] = now + ttl
                self._until.move_to_end(key)
            while len(self._until) > CAPACITY:
                self._until.popitem(last=False)
        return read, max(tokens for _, tokens, _ in prefixes) - read


def _prefixes(body: Mapping[str, Any], *, every: bool) -> Iterator[tuple[bytes, int, float]]:
    """(digest, tokens, time to live) of each marked prefix, shortest first."""
    last_mark = body.get("cache_control")  # automatic caching: as if the last block were marked
    blocks = list(_blocks(body))
    if not (every or last_mark or any(block.get("cache_control") for _, block in blocks)):
        return
    import hashlib  # only requests with marks pay for it

    digest, tokens = hashlib.blake2b(str(body.get("model")).encode(), digest_size=16), 0
    for at, (role, block) in enumerate(blocks):
        mark = block.get("cache_control") or every
        if last_mark and at == len(blocks) - 1:
            mark = mark or last_mark
        plain = {key: value for key, value in block.items() if key != "cache_control"}
        text = json.dumps([role, plain], ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        digest.update(text.encode("utf-8", "surrogatepass"))
        tokens += count(text if "text" not in plain else str(plain["text"]))
        if mark:
            ttl = cast("Mapping[str, Any]", mark).get("ttl", "5m") if isinstance(mark, Mapping) else "5m"
            yield digest.copy().digest(), tokens, TTL_SECONDS.get(str(ttl), TTL_SECONDS["5m"])


def _blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in body.get("tools") or ():
        yield "tools", tool
    yield from _content("system", body.get("system") or ())
    for message in body["messages"]:
        yield from _content(message["role"], message["content"])


def _content(role: str, content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(content, str):
        yield role, {"type": "text", "text": content}
        return
    for block in content:
        yield role, block
