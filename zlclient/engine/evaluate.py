"""`python -m zlclient.engine.evaluate`: both generations side by side, in one run, with intervals.

    python -m zlclient.engine.evaluate --json --quick

Speed is measured interleaved, prompt by prompt, in CPU seconds of one thread; quality on generated documents that
training never sees and on the written passages of a file. A claim that is not reached is reported so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .config import GENERATIONS, Generation

if TYPE_CHECKING:
    from .evaluation.intervals import Ratio
    from .runner import Engine

WRITTEN = Path(__file__).parents[2] / "tests" / "serving" / "cases"
# What the source articles claim of auto over legacy, as the largest ratio that would bear it out.
CLAIMS = {"ttft_p50": 0.75, "ttft_p95": 0.60, "prefill": 0.43, "memory_8k": 0.5}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m zlclient.engine.evaluate", description="Compare the two generations."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="fewer prompts and documents: within 50 seconds")
    parser.add_argument(
        "--passages",
        type=Path,
        nargs="*",
        default=sorted(WRITTEN.glob("offline*.yaml")),
        help="YAML files of written passages (default: the repository's, where this is a checkout of it)",
    )
    args = parser.parse_args(argv)
    # One thread, so that CPU seconds and wall time agree; numpy reads these when it is first imported.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    found = evaluate(quick=args.quick, passages=args.passages)
    print(json.dumps(found, ensure_ascii=False, indent=2) if args.json else _table(found))
    return 0


def evaluate(*, quick: bool, passages: Sequence[Path] = ()) -> dict[str, Any]:
    """Everything, as one object for JSON.

    Raises:
        ConfigError: a file of passages cannot be read.
    """
    from .runner import Engine

    begun = time.perf_counter()
    cases = _cases(passages)
    loading: dict[str, float] = {}
    engines: dict[Generation, Engine] = {}
    for generation in GENERATIONS:
        at = time.perf_counter()
        engines[generation] = Engine.shipped(generation)
        loading[generation] = round(time.perf_counter() - at, 4)
    speed, ablation = _speed(engines, 12 if quick else 60)
    quality = {name: _quality(engine, 2 if quick else 40, cases) for name, engine in engines.items()}
    if cases:
        from .evaluation.quality import offline_passages

        quality["offline"] = {"passages": offline_passages(cases)}
    return {
        "auto_over_legacy": {name: ratio.plain() for name, ratio in speed.items()},
        "claims": {name: _verdict(speed[name], claim) for name, claim in CLAIMS.items()},
        "prefill_ablation": ablation,
        "quality": quality,
        "effects": {} if quick else _effects(engines["auto"]),
        "loading_s": loading,
        "quick": quick,
        "took_s": round(time.perf_counter() - begun, 1),
    }


def _speed(engines: dict[Generation, Engine], prompts: int) -> tuple[dict[str, Ratio], dict[str, float]]:
    """The ratios, and legacy's prefill time without each of its parts, as shares of its whole."""
    from .checkpoint import load_shipped
    from .evaluation.intervals import Ratio
    from .evaluation.speed import make_prompts, measure, peak_memory, ratios
    from .model import Model

    unchecked = Model(load_shipped("legacy"), check_prompt=False)
    models = {**{name: engine.model for name, engine in engines.items()}, "legacy, prompt unchecked": unchecked}
    times = measure(models, make_prompts(engines["auto"].tokenizer, prompts))
    found = ratios(times["auto"], times["legacy"])
    fresh = {name: Model(load_shipped(name)) for name in GENERATIONS}
    peaks = {name: peak_memory(model, 8192) for name, model in fresh.items()}
    memory = peaks["auto"] / peaks["legacy"]
    found["memory_8k"] = Ratio(memory, memory, memory)
    whole = sum(times["legacy"].prefill)
    return found, {
        "legacy": 1.0,
        "legacy without checking the prompt": round(sum(times["legacy, prompt unchecked"].prefill) / whole, 4),
        "auto (no check loop, no positions)": round(sum(times["auto"].prefill) / whole, 4),
    }


def _quality(engine: Engine, documents: int, cases: list[dict[str, Any]]) -> dict[str, Any]:
    from .evaluation.quality import generated, passages

    return {**generated(engine, documents), "passages": passages(engine, cases) if cases else None}


def _effects(auto: Engine) -> dict[str, Any]:
    """Auto's mechanisms switched off one at a time: exact match at 8 facts (zh and en) and the F1 of refusing."""
    from dataclasses import replace

    from .checkpoint import load_shipped
    from .evaluation.quality import exact_match, held_out
    from .runner import Engine

    documents = [*held_out(8, "zh", 30), *held_out(8, "en", 30)]
    checkpoint = load_shipped("auto")
    ungated = Engine(replace(checkpoint, config=replace(checkpoint.config, entropy_bound=None)))
    tallies = {
        "all": exact_match(auto, documents),
        "without thresholds": exact_match(auto, documents, thresholds=False),
        "without domain anchors": exact_match(auto, documents, domains=False),
        "without entropy gate": exact_match(ungated, documents),
    }
    return {
        name: {"em": round(tally.exact, 4), "unanswerable_f1": round(tally.f1, 4)} for name, tally in tallies.items()
    }


def _verdict(ratio: Ratio, claim: float) -> dict[str, Any]:
    if ratio.high <= claim:
        said = "reached"
    elif ratio.low > claim:
        said = f"not reached: {ratio.ratio:.2f} against {claim:.2f}"
    else:
        said = f"open: the interval {ratio.low:.2f} to {ratio.high:.2f} holds {claim:.2f}"
    return {"claimed": claim, "measured": round(ratio.ratio, 4), "verdict": said}


def _cases(files: Sequence[Path]) -> list[dict[str, Any]]:
    import yaml

    found: list[dict[str, Any]] = []
    for path in files:
        try:
            found += yaml.safe_load(path.read_text("utf-8"))
        except (OSError, yaml.YAMLError, TypeError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
    return found


def _table(found: dict[str, Any]) -> str:
    lines = ["auto / legacy            ratio   95 % interval"]
    for name, ratio in found["auto_over_legacy"].items():
        verdict = found["claims"].get(name, {}).get("verdict", "")
        lines.append(f"{name:<22} {ratio['ratio']:>7.3f}   {ratio['low']:.3f} to {ratio['high']:.3f}   {verdict}")
    lines += [
        "",
        json.dumps({key: found[key] for key in ("quality", "prefill_ablation", "effects")}, ensure_ascii=False),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
