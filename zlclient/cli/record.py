"""`zlclient record`: a proxy to a real API that writes what passes to a cassette."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add `record` to the command line's sub-commands."""
    parser = subparsers.add_parser(
        "record",
        help="record exchanges with a real API, for `zlclient serve --replay`",
        description="Pass requests on to a real API and record each exchange, without keys and account data. "
        "Prompts and answers are recorded as they are.",
    )
    parser.add_argument("--upstream", required=True, metavar="URL", help="base URL, such as https://api.anthropic.com")
    parser.add_argument("--out", required=True, metavar="FILE", help="the cassette, JSON Lines; added to if it exists")
    parser.add_argument("--port", type=int, default=8766, help="port to listen on; 0 takes a free one (default: 8766)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
    parser.add_argument(
        "--redact",
        action="append",
        default=[],
        type=_pattern,
        metavar="REGEX",
        help="remove what matches, too; may be repeated",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Record until interrupted; 0 after a stop. Raises ConfigError where the settings or the address are wrong."""
    from ..serving.app import serve
    from ..serving.proxy import RecordingProxy
    from ..serving.recording import CassetteWriter
    from ..serving.redaction import Redaction

    redaction = Redaction(patterns=args.redact)
    proxy = RecordingProxy(args.upstream, CassetteWriter(args.out), redaction=redaction)
    try:
        serve(proxy, args.host, args.port, lambda url: _announce(url, args))
    except KeyboardInterrupt:
        pass
    finally:
        proxy.close()
    return 0


def _announce(url: str, args: argparse.Namespace) -> None:
    print(f"zlclient record: {url} → {args.upstream}, written to {args.out}", flush=True)
    if args.host not in ("127.0.0.1", "::1", "localhost"):
        print(f"zlclient record: {args.host} is reachable from other machines", file=sys.stderr, flush=True)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text
