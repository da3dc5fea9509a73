"""Which parts of a model are active, seen from outside: a tagged text goes through it, and its operations are noted."""

from __future__ import annotations

from typing import Any

from .domains import domain_of
from .runner import Engine

TEXT = "【财经数据】公司第三季度营业收入为 12.6 亿元，同比增长 8%。"


def probe(engine: Engine) -> dict[str, Any]:
    """Read TEXT and say what was done; `ok` is true only where no position layer and no check loop was."""
    model, config = engine.model, engine.model.config
    domain, tag = domain_of(TEXT)
    state = model.start(domain)
    operations: list[str] = []
    tokens = [engine.tokenizer.bos, *engine.tokenizer.encode(TEXT)]
    model.forward(tokens, state, lambda name, _: operations.append(name))
    positions = [name for name in operations if name.endswith("pos_encoder")]
    checks = [name for name in operations if name == "check"]
    closed, seen = state.gated
    return {
        "ok": not positions and not checks,
        "generation": config.generation,
        "probe": {"tag": tag, "domain": domain, "tokens": len(tokens)},
        "position_layer": "active" if positions else "none",
        "check_loop": "active" if checks else "none",
        "anchors": {"active": any(state.leads), "domain": domain, "rows_by_layer": list(state.leads)},
        "entropy_gate": {"active": seen > 0, "bound": config.entropy_bound, "closed": closed, "seen": seen},
        "thresholds": {"active": bool(config.thresholds.get(domain)), **config.thresholds.get(domain, {})},
        "skipped": list(skipped_parts(engine)),
        "operations": operations,
    }


def skipped_parts(engine: Engine) -> tuple[str, ...]:
    """The parts that the checkpoint holds no weights for, and which are therefore not run."""
    config = engine.model.config
    parts = {
        "position layer": (config.buckets, "no pos_encoder tensors"),
        "check loop": (config.check_rank, "no check tensors"),
        "anchors": (config.anchors, "no anchors tensor"),
    }
    return tuple(f"{part} ({why})" for part, (size, why) in parts.items() if not size)
