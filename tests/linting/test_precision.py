"""The judged sample: at least nine in ten findings are useful, at most three in a hundred wrong."""

import importlib.util
from collections import Counter
from pathlib import Path

import yaml

FOLDER = Path(__file__).parent / "precision"


def load_draw():
    spec = importlib.util.spec_from_file_location("draw", FOLDER / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def key(item):
    return item["code"], item["file"], item["line"], item["column"]


def test_the_sample_is_judged_and_good(shared):
    labels = yaml.safe_load((FOLDER / "labels.yml").read_text("utf-8"))
    assert all(item["label"] in ("useful", "noise", "wrong") and item["reason"] for item in labels)
    drawn = load_draw().draw(shared / "corpus")
    # A finding that is new since the sample was judged needs a judgement first.
    assert {key(item) for item in drawn} == {key(item) for item in labels}
    counts = Counter(item["label"] for item in labels)
    assert counts["useful"] >= 0.9 * len(labels)
    assert counts["wrong"] <= 0.03 * len(labels)
