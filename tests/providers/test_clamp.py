"""The private attributes that the total deadline of synchronous clients rests on are still there."""

import httpcore2
import httpx2
import pytest

from zlclient.providers.clamp import ClampedBackend, ClampedStream, clamp
from zlclient.providers.limit import Limit, limited


def test_every_transport_of_a_client_is_clamped(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    client = clamp(httpx2.Client())
    transports = [client._transport, *client._mounts.values()]
    assert len(transports) > 1
    for transport in transports:
        if transport is not None:
            assert isinstance(transport._pool._network_backend, ClampedBackend)


class Slow(httpcore2.NetworkStream):
    def __init__(self):
        self.timeouts = []

    def read(self, max_bytes, timeout=None):
        self.timeouts.append(timeout)
        return b"x"


def test_reads_are_cut_to_the_time_left():
    now = [0.0]
    limit = Limit(lambda: now[0])
    stream = ClampedStream(inner := Slow())
    stream.read(1, 5)
    limit.at = 3.0
    with limited(limit):
        stream.read(1, 5)
        now[0] = 2.5
        stream.read(1, None)
        now[0] = 3.0
        with pytest.raises(httpcore2.ReadTimeout):
            stream.read(1, 5)
    stream.read(1, 5)
    assert inner.timeouts == [5, 3.0, 0.5, 5]
