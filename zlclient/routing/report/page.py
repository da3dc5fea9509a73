"""The report as one HTML file: no script, no font, no image, no request; it works from file:// and prints."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from .. import wording
from ..metrics import Scale
from . import charts
from .summary import ArmSummary, ShadowSummary, Summary

_TITLES = {"ttft": "Time to first token", "tpot": "Time per output token", "latency": "Whole answer", "cost": "Cost"}


def render_html(summary: Summary) -> str:
    """The page."""
    return page(f"{summary.name}: {summary.verdict.decision}", render_main(summary))


def page(title: str, main: str, *, policy: str = "style-src 'unsafe-inline'", extra: str = "") -> str:
    """A whole document around `main`. The content policy lets in nothing but what `policy` names.

    It is said in the file itself, so that a browser holds it to the promise.
    """
    style = files(__package__ or "").joinpath("style.css").read_text("utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; {policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>{main}</main>{extra}</body></html>"
    )


def render_main(summary: Summary) -> str:
    """What is inside of the page: the verdict first, then every section."""
    return "".join(
        (
            _head(summary),
            _gates(summary),
            _arms(summary),
            _over_time(summary),
            _distributions(summary),
            _ratio(summary),
            _shadow(summary.shadow) if summary.shadow else "",
            _history(summary),
        )
    )


def _head(summary: Summary) -> str:
    decision, _, reason = summary.verdict.sentence.partition(": ")
    kind = {"PROMOTE": "good", "ROLLBACK": "bad"}.get(decision, "open")
    facts = [f"{', '.join(summary.rollout.treatments)} against {summary.rollout.control}"]
    if summary.state:
        stages = summary.rollout.stages
        where = f"stage {summary.state.stage + 1} of {len(stages)}" if stages else "fixed shares"
        share = f" ({stages[summary.state.stage] * 100:g} %)" if stages else ""
        facts.append(f"{summary.state.status.replace('_', ' ')}, {where}{share}")
        facts.append(f"since {_time(summary.state.started)}")
    facts.append(f"as of {_time(summary.now)}")
    return (
        f"<header><p class='eyebrow'>{escape(summary.name)}</p>"
        f"<h1 class='{kind}'><span>{escape(decision)}</span> {escape(reason)}</h1>"
        f"<p class='facts'>{escape(' · '.join(facts))}</p></header>"
    )


def _gates(summary: Summary) -> str:
    results = summary.verdict.gates
    if not results:
        return _section("Gates", "<p>No gates are configured.</p>")
    alpha, rollback = summary.rollout.alpha, summary.rollout.rollback_alpha
    note = (
        f"<p class='note'>Dots are estimates, bars are intervals that hold at every look ({(1 - alpha) * 100:g} % a "
        "side), each on its own scale around its threshold. A gate is met when the evidence for it reaches "
        f"{1 / alpha:,.0f} : 1, and refuted at {1 / rollback:,.0f} : 1. Relative gates compare with the control of the "
        "same time.</p>"
    )
    return _section("Gates", charts.forest(results) + note)


def _arms(summary: Summary) -> str:
    heads = ["arm", "requests", "units", "errors", "by type", "fallbacks", "skipped", "TTFT p50 / p95 / p99"]
    rows = [_arm_row(number, arm) for number, arm in enumerate(summary.arms)]
    return _section("Arms at this stage", _table(heads, rows))


def _arm_row(number: int, arm: ArmSummary) -> list[str]:
    errors = sum(arm.errors.values())
    share = f" ({wording.quantity(errors / arm.requests, 'share')})" if arm.requests else ""
    kinds = ", ".join(f"{escape(kind)} {count:,}" for kind, count in sorted(arm.errors.items(), key=lambda e: -e[1]))
    ttft = " / ".join(wording.quantity(value, "seconds") for value in arm.quantiles.get("ttft", ()))
    return [
        f"<i class='key arm{number}'></i>{escape(arm.arm)}",
        f"{arm.requests:,}",
        f"{arm.units:,}",
        f"{errors:,}{share}",
        kinds or "–",
        f"{arm.fallbacks:,}",
        f"{arm.skipped:,}",
        ttft or "–",
    ]


def _over_time(summary: Summary) -> str:
    if not any(summary.bins.values()):
        return _section("Over time", "<p>No requests yet.</p>")
    stages = summary.rollout.stages
    marks = [
        (
            event.at,
            f"{stages[event.stage] * 100:g} %" if event.action in {"start", "advance", "restart"} else event.action,
        )
        for event in summary.history
        if event.action in {"start", "advance", "restart", "rollback", "kill"} and stages and event.stage < len(stages)
    ]
    width = wording.duration(summary.bin_width)
    # The last bin is still filling: drawn as it is, it would look like a drop.
    whole = {arm: [i for i in bins if i.at + summary.bin_width <= summary.now] for arm, bins in summary.bins.items()}
    shown = whole if any(whole.values()) else summary.bins
    traffic, errors = (charts.bands(shown, summary.bin_width, marks, errors=errors) for errors in (False, True))
    return _section(
        "Over time",
        f"{_legend(summary)}<h3>Requests per {width}</h3>{traffic}<h3>Error share, with 95 % bands per {width}</h3>"
        f"{errors}<p class='note'>Times are UTC. Compared requests of all stages.</p>",
    )


def _distributions(summary: Summary) -> str:
    arms = [arm.arm for arm in summary.arms]
    parts = [
        f"<h3>{title}</h3>{charts.curves(summary.curves[measure], arms, _scale(measure), title)}"
        for measure, title in _TITLES.items()
        if measure in summary.curves
    ]
    if not parts:
        return ""
    note = "<p class='note'>Share of successful requests at or below each value; further left is better.</p>"
    return _section("Distributions by arm", _legend(summary) + "".join(parts) + note)


def _ratio(summary: Summary) -> str:
    ratio = summary.verdict.ratio
    if ratio is None:
        return _section("Sample ratio", "<p>Nothing to compare: one arm only, or no units yet.</p>")
    rows = [[escape(arm), f"{seen:,}", f"{ratio.expected[arm]:,.0f}"] for arm, seen in ratio.seen.items()]
    word = "<b class='bad'>mismatch</b>: do not trust any comparison" if ratio.mismatch else "<b class='good'>fine</b>"
    return _section(
        "Sample ratio", _table(["arm", "units", "expected"], rows) + f"<p>χ² p = {ratio.p:.3g}: {word}.</p>"
    )


def _shadow(shadow: ShadowSummary) -> str:
    facts = [f"{shadow.copies:,} copies", f"{shadow.errors:,} failed", wording.quantity(shadow.cost_usd, "usd")]
    if shadow.similarity is not None:
        facts.append(f"median similarity {shadow.similarity:.2f}")
    if shadow.length_ratio is not None:
        facts.append(f"median length {shadow.length_ratio:.2f} × the control's")
    text = f"<p>{escape(' · '.join(facts))}</p>"
    if shadow.checks:
        heads = ["check", "both pass", "only control", "only treatment", "neither"]
        rows = [[escape(name), *(f"{count:,}" for count in counts)] for name, counts in shadow.checks.items()]
        text += _table(heads, rows)
    for example in shadow.examples:
        text += (
            f"<figure><figcaption>similarity {example['similarity'] or 0:.2f}</figcaption><div class='pair'>"
            f"<div><b>control</b><pre>{escape(example['control'])}</pre></div>"
            f"<div><b>treatment</b><pre>{escape(example['treatment'])}</pre></div></div></figure>"
        )
    return _section("Shadow traffic", text)


def _history(summary: Summary) -> str:
    rows = [
        [_time(event.at), event.action, str(event.epoch or "–"), escape(event.by), escape(event.reason)]
        for event in summary.history[::-1][:50]
    ]
    return _section("History", _table(["time", "action", "epoch", "by", "why"], rows) if rows else "<p>None.</p>")


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{title}</h2>{inside}</section>"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def _legend(summary: Summary) -> str:
    keys = "".join(
        f"<span><i class='key arm{number}'></i>{escape(arm.arm)}</span>" for number, arm in enumerate(summary.arms)
    )
    return f"<p class='legend'>{keys}</p>"


def _scale(measure: str) -> Scale:
    return "usd" if measure == "cost" else "seconds"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
