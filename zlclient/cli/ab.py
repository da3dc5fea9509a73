"""`zlclient ab report`: the evidence on a rollout or experiment, as HTML, JSON or text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..routing.judge import Judge
from ..routing.report import as_json, render_html, summarise
from .rollout import opened, status_lines

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("ab", help="report on a rollout or experiment")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    report = actions.add_parser("report", help="verdict, gates, traffic, distributions, sample ratio")
    report.add_argument("name", metavar="NAME")
    report.add_argument("--html", metavar="FILE", type=Path, help="write one self-contained page")
    report.add_argument("--json", action="store_true", help="print the same facts as JSON")
    report.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write and print what was asked for; the verdict in any case."""
    rollouts, store = opened(args.name)
    rollout, now = rollouts[args.name], time.time()
    if not args.html and not args.json:
        print(f"{args.name}: " + "\n".join(status_lines(rollout, Judge(rollout, store).look(now))))
        return 0
    summary = summarise(rollout, store, now)
    if args.html:
        try:
            args.html.write_text(render_html(summary), "utf-8")
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", where=str(args.html)) from None
    if args.json:
        print(json.dumps(as_json(summary), ensure_ascii=False, indent=2))
    else:
        print(f"{summary.verdict.sentence}\nwrote {args.html}")
    return 0
