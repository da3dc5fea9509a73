"""Bucketing against the public GrowthBook vectors, the GrowthBook SDK, and its own invariants."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlclient.routing.assignment import bucket_ranges, choose_variation, equal_weights, hash_unit, in_namespace


@pytest.fixture(scope="module")
def vectors(shared: Path) -> dict[str, list[Any]]:
    return json.loads((shared / "vectors" / "growthbook-cases.json").read_text())


def rounded(ranges: list[list[float]]) -> list[list[float]]:
    # The reference's own tests round too: 0.2 * 0.2 is 0.04000000000000001 in every SDK.
    return [[round(edge, 8) for edge in pair] for pair in ranges]


def test_hash_vectors(vectors):
    assert [hash_unit(*case[:3]) for case in vectors["hash"]] == [case[3] for case in vectors["hash"]]


def test_range_vectors(vectors):
    for name, arguments, expected in vectors["getBucketRange"]:
        assert rounded(bucket_ranges(*arguments)) == rounded(expected), name


def test_choose_vectors(vectors):
    for name, n, ranges, expected in vectors["chooseVariation"]:
        assert choose_variation(n, ranges) == expected, name


def test_namespace_vectors(vectors):
    for name, unit, namespace, expected in vectors["inNamespace"]:
        assert in_namespace(unit, namespace) is expected, name


def test_weight_vectors(vectors):
    for n, expected in vectors["getEqualWeights"]:
        assert equal_weights(n) == expected


def test_the_kinds_of_the_vectors_without_them():
    # Figures of the public specification, so that the project checks itself where ../shared is absent.
    assert hash_unit("", "a", 1) == 0.22
    assert hash_unit("seed", "a", 2) == 0.0505
    assert hash_unit("abc", "def", 99) is None
    assert bucket_ranges(2, 0.5) == [[0, 0.25], [0.5, 0.75]]
    assert bucket_ranges(2, 1, [0.7, 0.6]) == [[0, 0.5], [0.5, 1]]
    assert choose_variation(0.5, [[0, 0.5], [0.5, 0.5], [0.5, 1]]) == 2
    assert in_namespace("3", ("namespace2", 0, 0.4))
    assert equal_weights(3) == [0.33333333] * 3


def test_agrees_with_the_growthbook_sdk():
    core = pytest.importorskip("growthbook.core")

    @given(st.text(), st.text(), st.sampled_from([1, 2]))
    def check(seed: str, value: str, version: int) -> None:
        # Its Python SDK walks code points where the reference walks UTF-16: the same up to U+FFFF.
        if all(ord(char) <= 0xFFFF for char in seed + value):
            assert hash_unit(seed, value, version) == core.gbhash(seed, value, version)

    check()


@given(st.text(), st.text())
def test_every_text_has_a_bucket(seed, value):
    for version in (1, 2):
        place = hash_unit(seed, value, version)
        assert place is not None
        assert 0 <= place < 1


@given(st.integers(1, 8), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.9999))
def test_growing_coverage_only_adds_units(n, one, other, place):
    small, large = sorted((one, other))
    before = choose_variation(place, bucket_ranges(n, small))
    after = choose_variation(place, bucket_ranges(n, large))
    assert before in (-1, after)
