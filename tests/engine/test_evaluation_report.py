"""Intervals on known data, verdicts, the object of a run, and how it is shown."""

import json
import random
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from zlclient.engine import evaluate
from zlclient.engine.evaluation import by_domain, results
from zlclient.engine.evaluation.claims import _claim, claims, estimate_at, judged, verdict
from zlclient.engine.evaluation.intervals import (
    Estimate,
    bootstrap,
    mean,
    median,
    paired_ratio,
    pearson,
    slope,
    spearman,
)
from zlclient.engine.evaluation.plots import chart
from zlclient.engine.evaluation.report import BEGIN, END, as_text, claims_page, draw, tables_page, write_page
from zlclient.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs"
TINY = results.Effort(
    lengths=[64, 128], batches=[1, 2], prompts=1, repeats=1, ablated=64, memory=[128, results.CLAIMED_LENGTH], documents=1, free=1, decoded=1, calls=2,
    requests=20, sampled=1, domain=1, effects=1, decisions=1, contradictions=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_domain, "DOMAINS", ("finance", "law"))
        return results.collect(TINY, [{"text": "It rained. The sun set.", "asks": [{"question": "?", "holds": None}]}])


def test_an_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(4)
    covered = 0
    for seed in range(60):
        estimate = bootstrap(rng.normal(3, 1, (40, 1)), mean, seed=seed)
        covered += estimate.low <= 3 <= estimate.high
    assert 51 <= covered <= 60


def test_rows_are_resampled_whole():
    one = np.random.default_rng(0).uniform(1, 9, 30)
    ratio = paired_ratio(2 * one, one, median)
    assert (ratio.value, ratio.low, ratio.high) == (2, 2, 2)
    with pytest.raises(ValueError, match="at least one row"):
        bootstrap([], mean)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=30))
def test_correlations_are_those_of_scipy(pairs):
    rows = np.array(pairs, float)
    if np.ptp(rows[:, 0]) and np.ptp(rows[:, 1]):
        assert spearman(rows) == pytest.approx(stats.spearmanr(rows[:, 0], rows[:, 1]).statistic, abs=1e-9)
        assert pearson(rows) == pytest.approx(stats.pearsonr(rows[:, 0], rows[:, 1]).statistic, abs=1e-9)
        assert slope(rows[:, 0], rows[:, 1]) == pytest.approx(stats.linregress(rows[:, 0], rows[:, 1]).slope, abs=1e-9)
    else:
        assert pearson(rows) == spearman(rows) == 0


def test_a_point_biserial_correlation_is_pearsons():
    rng = random.Random(2)
    rows = np.array([(rng.random(), rng.random() < 0.4) for _ in range(50)], float)
    assert pearson(rows) == pytest.approx(stats.pointbiserialr(rows[:, 1], rows[:, 0]).statistic)


@pytest.mark.parametrize(
    ("estimate", "rule", "bound", "said"),
    [
        (Estimate(0.4, 0.39, 0.43), "at_most", 0.43, "reached"),
        (Estimate(0.6, 0.55, 0.65), "at_most", 0.43, "not reached, by 0.170"),
        (Estimate(0.43, 0.4, 0.5), "at_most", 0.43, "open: 0.400 to 0.500 holds 0.43"),
        (Estimate(0.1, 0.0, 0.2), "at_least", 0, "reached"),
        (Estimate(-0.1, -0.2, -0.05), "at_least", 0, "not reached, by 0.100"),
        (Estimate(0.0, 0.0, 0.0), "at_least", 0, "reached: no difference"),
        (Estimate(0.0, 0.0, 0.0), "above", 0, "not reached: no difference"),
        (Estimate(0.1, 0.0, 0.2), "above", 0, "open: 0.000 to 0.200 holds 0"),
        (Estimate(0.1, 0.05, 0.2), "above", 0, "reached"),
    ],
)
def test_a_verdict_is_what_the_interval_says(estimate, rule, bound, said):
    assert verdict(estimate, rule, bound) == said


@given(
    st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    st.floats(-2, 2),
    st.sampled_from(["at_most", "at_least", "above"]),
)
def test_a_verdict_is_never_reached_against_the_interval(values, bound, rule):
    low, value, high = sorted(values)
    said = verdict(Estimate(value, low, high), rule, bound)
    if said.startswith("reached"):
        assert high <= bound if rule == "at_most" else low >= bound
    elif said.startswith("not"):
        assert low > bound if rule == "at_most" else high <= bound


def test_claims_are_checked_when_they_are_read():
    assert {claim.key for claim in claims()} >= {"ttft_p50", "ttft_p95", "prefill", "memory_8k", "quality"}
    with pytest.raises(ConfigError, match="one of"):
        _claim({"key": "x", "says": "x", "path": "a", "rests_on": "y"})
    with pytest.raises(KeyError):
        estimate_at({"a": {}}, ("a", "b"))


def test_the_object_has_the_names_that_others_read(found):
    ratios = found["auto_over_legacy"]
    assert set(ratios) == {"ttft_p50", "ttft_p95", "prefill", "memory_8k", "time_per_output_token"}
    assert all(set(ratio) == {"ratio", "low", "high"} for ratio in ratios.values())
    for side in ("auto", "legacy"):
        quality = found["quality"][side]
        for size in ("em_4", "em_8", "em_24"):
            for language in ("zh", "en"):
                low, value, high = (quality[size][f"{language}{end}"] for end in ("_low", "", "_high"))
                assert 0 <= low <= value <= high <= 1
        assert 0 <= quality["unanswerable_f1"] <= 1
        assert quality["passages"]["asked"] == 1
    assert found["quality"]["offline"]["passages"]["asked"] == 1
    domains = found["domains"]["auto"]
    assert set(domains) == {"plain", "tag", "call-up", "tag and call-up", "over_plain"}
    assert set(domains["over_plain"]) == {"tag", "call-up", "tag and call-up"}
    assert set(domains["plain"]["law"]) == {"em", "overlap_f1", "unanswerable_f1", "outcome"}
    assert found["claims"] == judged(found)
    assert json.loads(json.dumps(found)) == found


def test_the_table_holds_every_claim(found):
    text, page = as_text(found), claims_page(found, "plots")
    for claim in claims():
        assert claim.says in text
        assert claim.says in page
    assert "![ttft](plots/ttft.svg)" in page
    assert "svg" not in claims_page(found)
    assert tables_page(found).count("\n## ") == 7


def test_plots_are_xml(found):
    for name, svg in draw(found).items():
        root = ElementTree.fromstring(svg)
        assert root.tag.endswith("svg"), name
        assert len(root.findall("{*}polyline")) >= 2
        numbers = [
            float(n)
            for line in root.findall("{*}polyline")
            for pair in line.get("points", "").split()
            for n in pair.split(",")
        ]
        assert all(0 <= number <= 560 for number in numbers)


def test_a_plot_needs_something_to_draw():
    with pytest.raises(ValueError, match="nothing to draw"):
        chart("t", {}, x="x", y="y")
    assert "a &lt; b" in chart("a < b", {"s": [(1, 0, 0, 0)]}, x="x", y="y")


def test_the_command_writes_what_it_shows(found, tmp_path, capsys):
    known, folder, page = tmp_path / "known.json", tmp_path / "out", tmp_path / "page.md"
    known.write_text(json.dumps(found), "utf-8")
    page.write_text(f"before\n{BEGIN}\nstale text\n{END}\nafter\n", "utf-8")
    assert evaluate.main(["--from", str(known), "--output", str(folder), "--page", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert {path.name for path in folder.iterdir()} == {"results.json", "measured.md", *draw(found)}
    text = page.read_text("utf-8")
    assert text.startswith("before")
    assert text.endswith("after\n")
    assert "stale text" not in text
    assert "(out/ttft.svg)" in text
    evaluate.main(["--from", str(folder / "results.json"), "--page", str(page), "--output", str(folder)])
    assert page.read_text("utf-8") == text
    assert "claim" in capsys.readouterr().out
    with pytest.raises(ConfigError, match="needs the lines"):
        write_page(known, found)
    with pytest.raises(ConfigError, match="cannot be read"):
        evaluate.main(["--from", str(page)])


def test_the_documentation_is_what_was_measured():
    known = json.loads((DOCS / "engine" / "results.json").read_text("utf-8"))
    assert known["claims"] == judged(known)
    assert claims_page(known, "engine") in (DOCS / "engine.md").read_text("utf-8")
    assert tables_page(known) == (DOCS / "engine" / "measured.md").read_text("utf-8")
    assert {name: (DOCS / "engine" / name).read_text("utf-8") for name in draw(known)} == draw(known)
