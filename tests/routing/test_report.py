"""The report: complete, small, self-contained, safe against what is in it, and drawn by a real browser."""

import json
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from zlclient.routing.experiments import Assigner
from zlclient.routing.judge import change_state, start
from zlclient.routing.records import Exposure, Outcome, Record, Shadow
from zlclient.routing.report import Summary, as_json, render_html, summarise
from zlclient.routing.rollouts import Rollout, parse_rollouts
from zlclient.routing.stores.memory import MemoryStore

BEGIN = 1_796_000_000.0


def plan(name: str = "support-bot") -> Rollout:
    gates = {
        "error_rate": "< 1%",
        "ttft_p50": "<= 200 ms",
        "ttft_p95": "<= control",
        "cost_mean": "<= control",
        "fidelity": ">= 95%",
        "fcr": ">= control - 5 pp",
    }
    table = {"control": "legacy", "treatment": "auto", "unit": "user_id", "stages": [10, 50, 100], "gates": gates}
    return parse_rollouts({name: table})[name]


def simulated(rollout: Rollout, errors: float, texts: tuple[str, str] | None = None) -> MemoryStore:
    store, rng, number = MemoryStore(), random.Random(7), 0
    start(store, rollout, BEGIN, "tests")
    for stage in range(2):
        state = store.load([rollout.name])[rollout.name].state
        assert state
        if stage:
            state = change_state(store, rollout, state, "advance", BEGIN + number, "tests", "go on")
            assert state
        assigner = Assigner(rollout.experiment, rollout.cells(stage), stage=stage, epoch=state.since)
        records: list[Record] = []
        for _ in range(3_000):
            number += 1
            decision, at = assigner.decide(f"u{rng.randrange(4_000)}"), BEGIN + number
            if not decision.in_experiment:
                continue
            failed = rng.random() < errors * decision.variation
            records.append(
                Exposure.of(
                    decision,
                    f"r{number}",
                    at,
                    error_type="ServerError" if failed else None,
                    ttft_s=rng.lognormvariate(-1.9, 0.4),
                    cost_usd=rng.random() / 100,
                    checks={"fidelity": True},
                ).record()
            )
            records.append(Outcome(f"r{number}", "resolved", float(rng.random() < 0.8), at).record())
        store.write(records)
    if texts:
        copy = Shadow(
            reply_id="s1",
            experiment=rollout.name,
            arm="auto",
            epoch=1,
            at=BEGIN,
            similarity=0.1,
            length_ratio=0.5,
            checks={"format": (True, False)},
            control_text=texts[0],
            treatment_text=texts[1],
        )
        store.write([copy.record()])
    return store


@pytest.fixture(scope="module")
def bad() -> Summary:
    rollout = plan()
    return summarise(rollout, simulated(rollout, 0.08, ("<script>alert(1)</script>", "答案 & 3％")), BEGIN + 7_000)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not any(name in {"src", "href", "onclick"} for name, _ in attrs)
        if tag not in {"meta"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def test_the_page_is_whole_small_and_alone(bad):
    html = render_html(bad)
    assert len(html.encode()) < 150_000
    page = Page(html)
    assert page.open == []
    assert not {"script", "img", "link", "iframe"} & set(page.seen)
    assert not re.search(r"https?://|@import|url\(", html)
    assert "default-src 'none'" in html


def test_the_verdict_comes_first(bad):
    words = [word for word in Page(render_html(bad)).words if word]
    headline = words.index("ROLLBACK")
    assert words[headline + 1].startswith("error_rate of auto")
    for section in ("Gates", "Over time", "Distributions by arm", "Sample ratio", "Shadow traffic", "History"):
        assert words.index(section) > headline


def test_answers_are_shown_as_text(bad):
    html = render_html(bad)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "答案 &amp; 3％" in html


def test_without_recorded_content_there_is_none():
    rollout = plan()
    assert "<pre>" not in render_html(summarise(rollout, simulated(rollout, 0.0), BEGIN + 7_000))


def test_names_cannot_break_the_page():
    rollout = plan("<b>&'\"").with_experiment(arms=("<i>", "x'\"><svg onload=alert(1)>"))
    Page(render_html(summarise(rollout, simulated(rollout, 0.0), BEGIN + 7_000)))


def test_an_empty_rollout_has_a_report():
    store, rollout = MemoryStore(), plan()
    for _ in range(2):
        found = summarise(rollout, store, BEGIN)
        assert "HOLD" in render_html(found)
        json.dumps(as_json(found), allow_nan=False)
        start(store, rollout, BEGIN, "tests")


def test_json_says_the_same(bad):
    found = json.loads(json.dumps(as_json(bad), allow_nan=False))
    assert (found["decision"], found["sentence"]) == ("ROLLBACK", bad.verdict.sentence)
    assert found["state"]["stage"] == 1
    assert {gate["metric"]: gate["standing"] for gate in found["gates"]}["error_rate"] == "refuted"
    error = found["gates"][0]
    assert error["low"] < error["estimate"] < error["high"]
    assert error["bound"] == pytest.approx(0.01)
    assert sum(item["requests"] for item in found["bins"]["auto"]) > found["arms"][1]["requests"]
    assert not found["sample_ratio"]["mismatch"]
    assert found["shadow"]["checks"] == {"format": [0, 1, 0, 0]}
    assert [event["action"] for event in found["history"]] == ["start", "advance"]
    for p50, p95, p99 in (arm["quantiles"]["ttft"] for arm in found["arms"]):
        assert p50 < p95 < p99


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_draws_it(bad, scheme, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        pytest.skip("chromium is not installed")
    page, shot = tmp_path / "report.html", tmp_path / "shot.png"
    page.write_text(render_html(bad), "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=860,900"]
    if scheme == "dark":
        options.append("--blink-settings=preferredColorScheme=0")
    log = subprocess.run(
        [
            chromium,
            *options,
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path}",
            f"--screenshot={shot}",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stderr
    # The content policy reports every violation to the console.
    assert "Refused to" not in log
    assert "CONSOLE" not in log
    assert top_left(shot)[0] < 60 if scheme == "dark" else top_left(shot)[0] > 200


def top_left(png: Path) -> tuple[int, ...]:
    """The first pixel of a PNG: enough to tell a dark page from a light one."""
    import zlib

    data, place, packed = png.read_bytes(), 8, b""
    while place < len(data):
        size = int.from_bytes(data[place : place + 4], "big")
        if data[place + 4 : place + 8] == b"IDAT":
            packed += data[place + 8 : place + 8 + size]
        place += size + 12
    return tuple(zlib.decompressobj().decompress(packed, 8)[1:4])
