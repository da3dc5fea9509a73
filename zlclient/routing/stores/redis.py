"""The Redis store: a hash for state and marks, a list for the history, a stream for the evidence of each rollout.

Everything that reads and then writes is one Lua script, so it is atomic. Records stay until you delete the keys
(`zlclient:{NAME}:*`).
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..records import Record
from ..state import Event, State
from . import PAGE, Snapshot, StoreUnavailable, need_driver

if TYPE_CHECKING:
    from redis import Redis

_SWAP = """
local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0')
if epoch ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'state', ARGV[3])
redis.call('RPUSH', KEYS[2], ARGV[4])
return 1
"""
_WRITE = """
for i = 1, #ARGV, 3 do
  if redis.call('SADD', KEYS[1], ARGV[i] .. ' ' .. ARGV[i + 1]) == 1 then
    redis.call('XADD', KEYS[2], '*', 'kind', ARGV[i], 'key', ARGV[i + 1], 'body', ARGV[i + 2])
  end
end
"""
_RAISE = """
local value = redis.call('HGET', KEYS[1], ARGV[1])
if not value or tonumber(value) < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
"""
_CLAIM = """
local value = redis.call('HGET', KEYS[1], ARGV[1])
if value and tonumber(value) > tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""
_BATCH = 500
"""Records a script writes at a time: Redis serves nobody else meanwhile."""


class RedisStore:
    """A Redis, or Valkey, server."""

    def __init__(self, url: str) -> None:
        try:
            import redis
        except ImportError as error:
            raise need_driver("redis", "redis") from error
        self._redis, self._url = redis, url
        self._client: tuple[int, Redis] | None = None

    def load(self, names: Sequence[str]) -> dict[str, Snapshot]:
        """See `Store`."""
        with self._connected() as client:
            pipeline = client.pipeline(transaction=False)  # pyright: ignore[reportUnknownMemberType]
            for name in names:
                pipeline.hget(_key(name, "state"), "state")
                pipeline.hgetall(_key(name, "marks"))
            found: list[Any] = pipeline.execute()
        return {
            name: Snapshot(State.parse(state) if state else None, {key: float(mark) for key, mark in marks.items()})
            for name, state, marks in zip(names, found[::2], found[1::2], strict=True)
        }

    def swap(self, name: str, expected: int, state: State, event: Event) -> bool:
        """See `Store`."""
        keys = [_key(name, "state"), _key(name, "events")]
        return self._script(_SWAP, keys, [expected, state.epoch, state.dump(), event.dump()]) == 1

    def note(self, event: Event) -> None:
        """See `Store`."""
        with self._connected() as client:
            client.rpush(_key(event.name, "events"), event.dump())

    def history(self, name: str) -> list[Event]:
        """See `Store`."""
        with self._connected() as client:
            found: Any = client.lrange(_key(name, "events"), 0, -1)
        return [Event.parse(event) for event in found]

    def write(self, records: Sequence[Record]) -> None:
        """See `Store`."""
        for name in sorted({record.name for record in records}):
            chosen = [record for record in records if record.name == name]
            keys = [_key(name, "seen"), _key(name, "records")]
            for start in range(0, len(chosen), _BATCH):
                batch = chosen[start : start + _BATCH]
                self._script(_WRITE, keys, [part for item in batch for part in (item.kind, item.key, item.body)])

    def read(self, name: str, after: str = "") -> tuple[list[Record], str]:
        """See `Store`."""
        places = dict(zip((name, ""), after.split("|") if after else ("", ""), strict=True))
        found: list[Record] = []
        with self._connected() as client:
            for stream, place in places.items():
                rows: Any = client.xrange(_key(stream, "records"), f"({place}" if place else "-", "+", PAGE)
                found += [Record(row["kind"], stream, row["key"], row["body"]) for _, row in rows]
                places[stream] = rows[-1][0] if rows else place
        return found, "|".join(places.values())

    def raise_mark(self, name: str, key: str, value: float) -> None:
        """See `Store`."""
        self._script(_RAISE, [_key(name, "marks")], [key, value])

    def add_mark(self, name: str, key: str, value: float) -> None:
        """See `Store`."""
        with self._connected() as client:
            client.hincrbyfloat(_key(name, "marks"), key, value)

    def claim(self, name: str, key: str, now: float, until: float) -> bool:
        """See `Store`."""
        return self._script(_CLAIM, [_key(name, "marks")], [key, now, until]) == 1

    def close(self) -> None:
        """Close the pool; the next call opens a new one."""
        if self._client and self._client[0] == os.getpid():
            self._client[1].close()
        self._client = None

    def _script(self, script: str, keys: list[str], arguments: list[Any]) -> Any:
        with self._connected() as client:
            return client.register_script(script)(keys=keys, args=arguments)

    @contextmanager
    def _connected(self) -> Generator[Redis]:
        found = self._client
        if not found or found[0] != os.getpid():
            client = self._redis.Redis.from_url(
                self._url, decode_responses=True, socket_timeout=2, socket_connect_timeout=2, health_check_interval=15
            )
            found = self._client = (os.getpid(), client)
        try:
            yield found[1]
        except (self._redis.RedisError, OSError) as error:
            raise StoreUnavailable(f"Redis store: {type(error).__name__}") from error


def _key(name: str, part: str) -> str:
    # The braces put all keys of a rollout on one node of a cluster, as the scripts need.
    return f"zlclient:{{{name or '*'}}}:{part}"
