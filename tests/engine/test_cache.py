"""Blocks are counted exactly, evicted oldest first, and never while somebody copies them."""

import random
import threading

from zlclient.engine.cache import PrefixCache, read_prompt
from zlclient.engine.model import CHUNK, Model


def prompt(seed: int, blocks: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(100) for _ in range(blocks * CHUNK + 1)]


def read(model: Model, cache: PrefixCache, tokens: list[int]) -> int:
    return read_prompt(model, cache, tokens, model.start())[0]


def test_the_least_recently_used_block_goes_first(make_checkpoint):
    model, cache = Model(make_checkpoint("auto")), PrefixCache(2)
    for seed in (1, 2):
        read(model, cache, prompt(seed, 1))
    assert read(model, cache, prompt(1, 1)) == CHUNK
    read(model, cache, prompt(3, 1))  # evicts 2
    assert read(model, cache, prompt(1, 1)) == CHUNK
    assert read(model, cache, prompt(2, 1)) == 0
    assert cache.stats.blocks == 2


def test_a_block_in_use_stays(make_checkpoint):
    model, cache = Model(make_checkpoint("auto")), PrefixCache(1)
    read(model, cache, prompt(1, 1))
    (stored,) = cache._blocks.values()
    held = cache.acquire(stored.key, prompt(1, 1)[:CHUNK])
    assert held is stored
    assert cache.stats.in_use == 1
    read(model, cache, prompt(2, 1))  # finds no room
    cache.release(held)
    assert cache.stats.in_use == 0
    assert read(model, cache, prompt(1, 1)) == CHUNK


def test_hits_are_counted_in_tokens(make_checkpoint):
    model, cache = Model(make_checkpoint("legacy")), PrefixCache(16)
    read(model, cache, prompt(1, 3))
    read(model, cache, prompt(1, 3))
    stats = cache.stats
    assert (stats.queries, stats.hits, stats.blocks) == (2 * (3 * CHUNK + 1), 3 * CHUNK, 3)


def test_a_cache_of_no_blocks_keeps_none(make_checkpoint):
    model, cache = Model(make_checkpoint("auto")), PrefixCache(0)
    assert [read(model, cache, prompt(1, 2)) for _ in range(2)] == [0, 0]
    assert cache.stats.blocks == 0


def test_equal_keys_with_other_tokens_are_no_hit(make_checkpoint):
    model, cache = Model(make_checkpoint("auto")), PrefixCache(4)
    read(model, cache, prompt(1, 1))
    for block in cache._blocks.values():
        block.tokens = tuple(prompt(2, 1)[:CHUNK])  # as a hash collision would be
    assert read(model, cache, prompt(1, 1)) == 0


def test_threads_lose_no_block(make_checkpoint):
    model, cache = Model(make_checkpoint("auto")), PrefixCache(3)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(15):
            read(model, cache, prompt(rng.randrange(5), 2))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stats = cache.stats
    assert stats.blocks <= 3
    assert stats.in_use == 0
    assert stats.queries == 4 * 15 * (2 * CHUNK + 1)
