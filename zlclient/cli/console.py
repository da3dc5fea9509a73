"""`zlclient console`: the live report in a browser, with buttons to advance, hold and roll back."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..routing.console import Console
from .rollout import opened

if TYPE_CHECKING:
    import argparse


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("console", help="show the rollouts live in a browser, and move them")
    parser.add_argument("--port", type=int, default=0, help="a free one by default; always on 127.0.0.1")
    parser.add_argument("--open", action="store_true", help="open the browser")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    rollouts, store = opened()
    try:
        console = Console(rollouts, store, port=args.port)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen: {error}", where="--port") from None
    print(f"{console.url}\nwhoever has this address may move your rollouts; Ctrl-C ends it", flush=True)
    if args.open:
        webbrowser.open(console.url)
    try:
        console.serve_forever()
    finally:
        console.server_close()
        store.close()
    return 0
