"""`zlclient explain`: the exact request that would leave, with every adjustment and its reason. Nothing is sent."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..client import Client
from ..reply import as_plain
from .options import add_request_options, read_prompt, request_options

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("explain", help="show the exact request that would leave, and every adjustment")
    add_request_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object: wire, route, adjustments, bounds")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what would leave."""
    prompt = read_prompt(args)
    with Client() as client:
        prepared = client.prepare(prompt, **request_options(args))
    wire = prepared.wire
    if args.json:
        shown = {
            "route": prepared.route.label,
            "wire": wire,
            "adjustments": as_plain(prepared.adjustments),
            "bounds": asdict(prepared.bounds),
        }
        print(json.dumps(shown, ensure_ascii=False, indent=2))
        return 0
    print(f"route: {prepared.route.label}")
    print(f"{wire['method']} {wire['url']}")
    for name, value in wire["headers"].items():
        print(f"{name}: {value}")
    print()
    print(json.dumps(wire["body"], ensure_ascii=False, indent=2))
    print()
    print("adjustments:" if prepared.adjustments else "adjustments: none")
    for note in prepared.adjustments:
        print(f"  {note}")
    return 0
