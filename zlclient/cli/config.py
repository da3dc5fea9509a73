"""`zlclient config`: the effective settings, and where each value came from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..reply import as_plain
from ..settings import Settings

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("config", help="show the effective settings and where each came from")
    parser.add_argument("--json", action="store_true", help="print a JSON object: key → value and origin")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print them."""
    rows = Settings.load().effective()
    if args.json:
        shown = {key: {"value": as_plain(value), "origin": origin} for key, value, origin in rows}
        print(json.dumps(shown, ensure_ascii=False, indent=2))
        return 0
    width = max(len(key) for key, _, _ in rows)
    for key, value, origin in rows:
        shown_value = json.dumps(as_plain(value), ensure_ascii=False)
        print(f"{key:<{width}}  {shown_value:<40}  {origin}")
    return 0
