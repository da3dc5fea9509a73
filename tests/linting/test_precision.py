"""The judged sample: at least nine in ten findings are useful, at most three in a hundred wrong."""

import importlib.util
from collections import Counter
from pathlib import Path

import pytest
import yaml

FRESH = ("fresh_first.yml", "fresh_second.yml", "fresh_third.yml")
FOLDER = Path(__file__).parent / "precision"


def load_draw():
    spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(name):
    labels = yaml.safe_load((FOLDER / name).read_text("utf-8"))
    assert all(item["label"] in ("useful", "noise", "wrong") and item["reason"] for item in labels)
    return labels


def shares(labels):
    """(useful, wrong) in percent."""
    counts = Counter(item["label"] for item in labels)
    return tuple(round(100 * counts[label] / len(labels)) for label in ("useful", "wrong"))


def key(item):
    return item["code"], item["file"], item["line"], item["column"]


def test_the_sample_is_judged_and_good(shared):
    labels = load("labels.yml")
    drawn = load_draw().draw(shared / "corpus")
    # A finding that is new since the sample was judged needs a judgement first.
    assert {key(item) for item in drawn} == {key(item) for item in labels}
    counts = Counter(item["label"] for item in labels)
    assert counts["useful"] >= 0.9 * len(labels)
    assert counts["wrong"] <= 0.03 * len(labels)


@pytest.mark.parametrize(("name", "expected"), [*zip(FRESH, [(40, 42), (53, 37), (50, 39)], strict=True)])
def test_precision_on_prompts_that_no_rule_had_seen_is_what_the_docs_say(name, expected):
    labels = [item for item in load(name) if item.get("drawn", True)]
    assert all(item["repository"] and item["path"] and item["commit"] and item["line"] for item in labels)
    assert shares(labels) == expected


def test_all_judged_findings_that_stand_are_good():
    standing = [item for name in FRESH for item in load(name) if item["stands"]]
    every = standing + load("labels.yml")
    assert len(every) > 200
    useful, wrong = shares(every)
    assert useful >= 90
    assert wrong <= 3
