"""The results of a run as one table for a terminal or a Markdown page, and as plots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import ConfigError
from .plots import Point, chart

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SIZES = ("em_4", "em_8", "em_24")
SIDES = ("legacy", "auto")


Row = tuple[str, str, str, str]  # what, legacy's value, auto's, auto over legacy or the difference with its interval


def _row(what: str, sides: Iterable[str] = ("", ""), compared: str = "") -> Row:
    legacy, auto = sides
    return what, legacy, auto, compared


def claim_rows(found: Mapping[str, Any]) -> list[tuple[str, str, str, str, str]]:
    """Claim, bound, measured with interval, verdict, and what it rests on."""
    signs = {"at_most": "≤", "at_least": "≥", "above": ">"}
    return [
        (
            item["says"],
            f"{signs[item['rule']]} {item['claimed']:g}",
            f"{item['measured']:.3f} ({item['low']:.3f} to {item['high']:.3f})",
            item["verdict"],
            item["rests_on"],
        )
        for item in found["claims"].values()
    ]


def rows(found: Mapping[str, Any]) -> list[tuple[str, list[Row]]]:
    """All measurements, by subject."""
    return [
        ("speed, CPU ms of one thread", _speed(found)),
        ("time without a part, over the same generation's with it", _ablation(found)),
        ("memory and load", _load(found)),
        ("quality on generated documents and written passages", _quality(found)),
        ("quality by domain (share of right outcomes)", _domains(found)),
        ("what a mechanism adds: right outcomes, exact match, refusing", _mechanisms(found)),
        ("the check loop's verdict, and contradictions", _judgement(found)),
    ]


def _speed(found: Mapping[str, Any]) -> list[Row]:
    over = found["auto_over_legacy"]
    listed = [_row(f"{name}, all lengths", compared="× " + _interval(over[name])) for name in over]
    for length, cell in found["lengths"].items():
        for what, key, ratio in (
            ("TTFT p50", "ttft_p50_ms", "ttft_p50"),
            ("TTFT P95", "ttft_p95_ms", "ttft_p95"),
            ("prefill", "prefill_ms", "prefill"),
            ("per output token", "per_token_ms", "time_per_output_token"),
        ):
            said = [f"{cell[side][key]:.2f}" for side in SIDES]
            listed.append(_row(f"{what}, {length} tokens", said, "× " + _interval(cell["auto_over_legacy"][ratio])))
    return listed


def _ablation(found: Mapping[str, Any]) -> list[Row]:
    listed = [
        _row(f"share of the check loop in legacy, {name}", (_interval(share), ""))
        for name, share in found["check_loop_share"].items()
    ]
    for side in SIDES:
        for part, cell in found["ablation"][side].items():
            for key, what in (("prefill", "prefill"), ("time_per_output_token", "per token")):
                said = "× " + _interval(cell[key])
                listed.append(_row(f"without {part}, {what}", (said, "") if side == "legacy" else ("", said)))
    return listed


def _load(found: Mapping[str, Any]) -> list[Row]:
    listed: list[Row] = []
    for length, cell in found["memory"].items():
        said = [f"{cell[side] / 1e6:.1f}" for side in SIDES]
        listed.append(_row(f"peak memory, {length} tokens, MB", said, f"× {cell['auto_over_legacy']:.3f}"))
    for size, cell in found["throughput"].items():
        said = [f"{cell[side]:.0f}" for side in SIDES]
        listed.append(_row(f"tokens a CPU second, batch {size}", said, "× " + _interval(cell["auto_over_legacy"])))
    calls, cache = found["calls"], found["prefix_cache"]
    spent = [_interval(calls[side], 1) for side in SIDES]
    listed.append(_row("CPU seconds of 1,000 calls", spent, "× " + _interval(calls["auto_over_legacy"])))
    for label, name in (("blocks", "bytes for blocks"), ("blocks_and_matrices", "for blocks and position matrices")):
        said = [f"{cache[label][side]:.3f}" for side in SIDES]
        gained = _interval(cache[label]["auto_minus_legacy"], signed=True)
        listed.append(_row(f"prefix-cache hit rate, {name}", said, gained))
    return listed


def _quality(found: Mapping[str, Any]) -> list[Row]:
    quality, gained = found["quality"], found["quality_difference"]
    listed: list[Row] = []
    for size in SIZES:
        for language in ("zh", "en"):
            asked = quality["auto"][size][f"{language}_asked"]
            said = [_named(quality[side][size], language) for side in SIDES]
            listed.append(_row(f"exact match, {size[3:]} facts, {language} ({asked} asked)", said))
        listed.append(_row(f"exact match, {size[3:]} facts", compared=_interval(gained[size], signed=True)))
    listed.append(_row("exact match, all sizes", compared=_interval(gained["em"], signed=True)))
    listed.append(_row("overlap F1, all sizes", [_named(quality[side], "overlap_f1") for side in SIDES]))
    refusing = [_named(quality[side], "unanswerable_f1") for side in SIDES]
    listed.append(_row("F1 of refusing", refusing, _interval(gained["unanswerable_f1"], signed=True)))
    listed.append(_row("exact match, 8 facts, free", [f"{quality[side]['em_8_free']:.3f}" for side in SIDES]))
    extracted = [_counted(quality[side]["values_8"]) for side in SIDES]
    listed.append(_row("values extracted, 8 facts", extracted))
    if quality["auto"]["passages"]:
        said = [_counted(quality[side]["passages"]) for side in SIDES]
        listed.append(_row("written passages", said, f"comparing words: {_right(quality['offline']['passages'])}"))
        served = [quality[side]["passages_served"] for side in SIDES]
        said = [f"{_right(cell)}, {cell['by_the_engine']} by the engine" for cell in served]
        listed.append(_row("written passages, as served", said))
    repeated = found["repetition"]
    for temperature in repeated["auto"]["share"]:
        said = [f"{repeated[side]['share'][temperature]:.3f}" for side in SIDES]
        listed.append(_row(f"repeated bigrams, temperature {temperature}", said))
    slopes = [_interval(repeated[side]["slope"], signed=True) for side in SIDES]
    listed.append(_row("their slope over temperature", slopes))
    return listed


def _domains(found: Mapping[str, Any]) -> list[Row]:
    domains, listed = found["domains"], list[Row]()
    changes = domains["auto"]["over_plain"]
    for condition, cells in domains["auto"].items():
        if cells is changes:
            continue
        for domain in cells:
            said = [_interval(domains[side][condition][domain]["outcome"]) for side in SIDES]
            listed.append(_row(f"{domain}, {condition}", said))
    for condition in changes:
        said = [_interval(domains[side]["over_plain"][condition]["outcome"], signed=True) for side in SIDES]
        listed.append(_row(f"all domains, {condition} over plain", said))
    return listed


def _mechanisms(found: Mapping[str, Any]) -> list[Row]:
    listed: list[Row] = []
    for side in SIDES:
        for part, cell in found["mechanisms"][side].items():
            if part == "whole":
                continue
            for key, what in (("outcome", "right outcomes"), ("em", "exact match"), ("unanswerable_f1", "refusing")):
                said = _interval(cell[f"{key}_added"], signed=True)
                listed.append(_row(f"{part}, {what}", (said, "") if side == "legacy" else ("", said)))
    layer = found["position_layer"]
    if layer:
        said = f"{layer['frozen_gates']} gates frozen, tensors removed at step {layer['removed_at_step']}"
        listed.append(_row("position layer, from the training log", ("", said)))
        for when in ("before", "after"):
            if layer[when]:
                scores = ", ".join(f"{name} {score}" for name, score in layer[when].items())
                listed.append(_row(f"held-out scores {when} its removal", ("", scores)))
    return listed


def _judgement(found: Mapping[str, Any]) -> list[Row]:
    agreement, noted = found["agreement"], found["contradictions"]
    names = {
        "verdict_with_trunk_spearman": "verdict and trunk's own probability (Spearman)",
        "verdict_with_right": "verdict and right decision (point-biserial)",
        "trunk_with_right": "trunk's own probability and right decision",
    }
    listed = [_row(name, (_interval(agreement[key], signed=True), "")) for key, name in names.items()]
    for kind, what in (
        ("year_noted", "another year asked, noted"),
        ("entity_noted", "another entity asked, noted"),
        ("stated_answered", "asked as stated, answered"),
    ):
        said = [_counted(noted[side][kind]) for side in SIDES]
        listed.append(_row(what, said))
    return listed


def as_text(found: Mapping[str, Any]) -> str:
    """The whole table for a terminal."""
    lines = _aligned([("claim", "bound", "measured", "verdict"), *(row[:4] for row in claim_rows(found))])
    for subject, listed in rows(found):
        lines += ["", *_aligned([(subject, *SIDES, "auto and legacy"), *listed])]
    lines += ["", f"intervals: 95 %; {found['took_s']} s, {found['cpu_s']} of them CPU{'; quick' * found['quick']}"]
    return "\n".join(lines)


def _aligned(listed: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) + 2 for column in zip(*listed, strict=True)]
    return ["".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in listed]


def claims_page(found: Mapping[str, Any], plots: str = "") -> str:
    """The claims and their verdicts as Markdown, and the plots, if they are to be shown, in the folder `plots`."""
    measured = ", ".join(f"{name} `{sha256[:12]}`" for name, sha256 in found["checkpoints"].items())
    lines = [
        f"Measured{' quickly' * found['quick']} in {found['cpu_s']:.0f} CPU seconds on the checkpoints {measured};",
        "`zlclient engine info` shows those that are shipped.",
        "",
        *_table(("claim", "bound", "measured", "verdict", "what decides it"), claim_rows(found)),
    ]
    for name in draw(found) if plots else ():
        lines += ["", f"![{name.removesuffix('.svg')}]({plots}/{name})"]
    return "\n".join(lines)


def tables_page(found: Mapping[str, Any]) -> str:
    """Everything measured, as a Markdown page of its own."""
    lines = ["# The engine, measured", "", "Written by `python -m zlclient.engine.evaluate`; intervals are of 95 %."]
    for subject, listed in rows(found):
        lines += ["", f"## {subject[:1].upper()}{subject[1:]}", "", *_table(("", *SIDES, "auto and legacy"), listed)]
    return "\n".join(lines) + "\n"


def write_page(page: Path, found: Mapping[str, Any], plots: str = "") -> None:
    """Put the claims between the marks of a Markdown page; raises ConfigError where it has no marks."""
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"needs the lines {BEGIN} and {END}", file=str(page))
    page.write_text(f"{before}{BEGIN}\n\n{claims_page(found, plots)}\n\n{END}{after}", "utf-8")


def draw(found: Mapping[str, Any]) -> dict[str, str]:
    """The plots, file name → SVG."""
    lengths, memory, batches = found["lengths"], found["memory"], found["throughput"]
    quality, repetition = found["quality"], found["repetition"]
    repeated = {side: [_plain(at, share) for at, share in repetition[side]["share"].items()] for side in SIDES}
    return {
        "ttft.svg": chart(
            "Time to first token", _lines(lengths, lambda cell: cell["ttft_p50_ms"]),
            x="tokens of the prompt", y="CPU ms, median", log_x=True, log_y=True,
        ),
        "memory.svg": chart(
            "Peak memory beyond the weights", _lines(memory, lambda cell: cell / 1e6),
            x="tokens of the prompt", y="MB", log_x=True, log_y=True,
        ),
        "throughput.svg": chart(
            "Decoding", _lines(batches, float),
            x="sequences at once", y="tokens a CPU second", log_x=True,
        ),
        "quality.svg": chart(
            "Exact match on generated documents",
            {f"{side} {language}": [_at(quality[side][size], language, float(size[3:])) for size in SIZES]
             for side in SIDES for language in ("zh", "en")},
            x="facts in the document", y="share", log_x=True,
        ),
        "repetition.svg": chart(
            "Repeated bigrams of free answers", repeated,
            x="temperature", y="share",
        ),
    }  # fmt: skip


def _lines(cells: Mapping[str, Any], value: Callable[[Any], float]) -> dict[str, list[Point]]:
    """A line for each generation through x → {generation: what `value` makes a number of}."""
    return {side: [_plain(at, value(cell[side])) for at, cell in cells.items()] for side in SIDES}


def _plain(x: str, y: float) -> Point:
    return float(x), y, y, y


def _at(cell: Mapping[str, float], name: str, x: float) -> Point:
    return x, cell[name], cell[f"{name}_low"], cell[f"{name}_high"]


def _table(heads: Sequence[str], listed: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *listed]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _interval(estimate: Mapping[str, float], digits: int = 3, *, signed: bool = False) -> str:
    value = next(number for name, number in estimate.items() if name not in ("low", "high"))
    sign = "+" if signed else ""
    if estimate["low"] == estimate["high"]:
        return f"{value:{sign}.{digits}f}"
    return f"{value:{sign}.{digits}f} ({estimate['low']:{sign}.{digits}f} to {estimate['high']:{sign}.{digits}f})"


def _named(cell: Mapping[str, float], name: str) -> str:
    return f"{cell[name]:.3f} ({cell[f'{name}_low']:.3f} to {cell[f'{name}_high']:.3f})"


def _right(cell: Mapping[str, Any]) -> str:
    return f"{cell['right']} of {cell['asked']}"


def _counted(cell: Mapping[str, Any]) -> str:
    return f"{_right(cell)}: {_interval({name: cell[name] for name in ('share', 'low', 'high')})}"
