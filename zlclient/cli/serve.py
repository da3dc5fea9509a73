"""`zlclient serve`: the local server on a port."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError

if TYPE_CHECKING:
    from ..serving.responders.base import Responder

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_parser(subparsers: Any) -> None:
    """Add `serve` to the command line's sub-commands."""
    parser = subparsers.add_parser(
        "serve",
        help="answer the Anthropic and OpenAI APIs on a local port",
        description="Answer the Anthropic Messages, OpenAI Chat Completions and OpenAI Responses APIs.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: loopback only)")
    parser.add_argument("--port", type=int, default=8765, help="port to listen on; 0 takes a free one (default: 8765)")
    parser.add_argument("--scenario", metavar="FILE", help="answer from this file of scenarios")
    parser.add_argument("--replay", metavar="FILE", help="answer from this cassette of `zlclient record`")
    parser.add_argument(
        "--redact", action="append", default=[], metavar="REGEX", help="what `zlclient record --redact` removed"
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="ID", help="a further model id to accept; may be repeated"
    )
    parser.add_argument(
        "--today", type=_day, metavar="YYYY-MM-DD", help="refuse models that are retired on this day (default: none)"
    )
    parser.add_argument("--no-key", action="store_true", help="answer requests without an API key")
    parser.add_argument(
        "--engine",
        action="store_true",
        help="load the reference engine now, and let it alone answer auto and legacy, also where it is not sure",
    )
    parser.add_argument(
        "--profile", metavar="FILE", help="with --engine: write where its time went, a flame graph for a .svg file"
    )
    parser.add_argument("--strict", action="store_true", help="fail requests and models that nothing is prepared for")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted; 0 after a stop. Raises ConfigError where a file or the address is wrong."""
    from ..serving.app import serve
    from ..serving.build import build_server

    responders: tuple[Responder, ...] = ()
    if args.engine:
        responders = _engines()
    elif args.profile:
        raise ConfigError("only the engine's work is sampled: give --engine as well", key="--profile")
    server = build_server(
        responders=responders,
        scenario=args.scenario,
        replay=args.replay,
        redact=args.redact,
        strict=args.strict,
        require_key=not args.no_key,
        models=args.model,
        today=args.today,
    )
    with _profiled(args.profile), suppress(KeyboardInterrupt):
        serve(server, args.host, args.port, lambda url: _announce(url, args.host))
    return 0


def _engines() -> tuple[Responder, ...]:
    """The responders of both generations, loaded, so that the first request finds them warm."""
    from ..engine.config import GENERATIONS
    from ..engine.probe import skipped_parts
    from ..serving.responders.engine import EngineResponder

    responders = tuple(EngineResponder(generation) for generation in GENERATIONS)
    for responder in responders:
        skipped = ", ".join(skipped_parts(responder.engine)) or "nothing"
        print(f"zlclient serve: engine {responder.generation}: skipped {skipped}", file=sys.stderr, flush=True)
    return responders


@contextmanager
def _profiled(file: str | None) -> Generator[None]:
    """Sample the engine until the block ends, then write `file`, which is tried first."""
    if not file:
        yield
        return
    from ..engine.flame import flame_graph
    from ..engine.profiling import Profiler, collapsed

    try:
        Path(file).write_text("", "utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error}", key="--profile", value=file) from None
    with Profiler() as profiler:
        yield
    write = flame_graph if file.endswith(".svg") else collapsed
    Path(file).write_text(write(profiler.stacks), "utf-8")


def _announce(url: str, host: str) -> None:
    print(f"zlclient serve: {url} (Anthropic), {url}/v1 (OpenAI)", flush=True)
    if host not in LOOPBACK:
        print(f"zlclient serve: {host} is reachable from other machines", file=sys.stderr, flush=True)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day; write it as 2027-01-31") from None
