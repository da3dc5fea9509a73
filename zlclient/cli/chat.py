"""`zlclient chat`: ask, and print the answer as it arrives."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from ..client import Client
from ..reply import Reply
from .options import add_request_options, read_prompt, request_options

if TYPE_CHECKING:
    import argparse

_BANNER = "zlclient: offline engine ({why}); {what}"
_ENGINE = "it answers from the text you give it and knows nothing else"
_SMOLLM2 = "SmolLM2 is a small model for English, fluent and often wrong"


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("chat", help="ask a model, or the offline engine")
    add_request_options(parser)
    parser.add_argument("--json", action="store_true", help="print the whole reply as JSON, without streaming")
    parser.add_argument("--no-stream", action="store_true", help="print the answer when it is complete")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print route, usage, cost and adjustments to stderr"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask; returns 0, or raises the error that `main` turns into an exit code."""
    prompt = read_prompt(args)
    options = request_options(args)
    with Client() as client:
        go_offline(client, options, asked=args.offline)
        if args.json or args.no_stream:
            reply = client.chat(prompt, **options)
            print(reply.to_json(indent=2) if args.json else reply.text)
        else:
            reply = _stream(client, prompt, options)
    if args.verbose:
        _tell(reply)
    return 0


def _stream(client: Client, prompt: str, options: dict[str, Any]) -> Reply:
    with client.stream(prompt, **options) as answer:
        for text in answer:
            sys.stdout.write(text)
            sys.stdout.flush()
        sys.stdout.write("\n")
        return answer.reply


def go_offline(client: Client, options: dict[str, Any], *, asked: bool) -> None:
    """Send to the offline engine where no key is set, and say so; `asked`: the options say so already."""
    if asked:
        smollm2 = str(options.get("model", client.settings.model)).endswith("smollm2")
        print(_BANNER.format(why="asked for", what=_SMOLLM2 if smollm2 else _ENGINE), file=sys.stderr)
    elif _no_key_set(client, options):
        options["provider"] = "local"
        print(_BANNER.format(why="no key is set", what=_ENGINE), file=sys.stderr)


def _no_key_set(client: Client, options: dict[str, Any]) -> bool:
    """Whether nothing says where to send and no provider's key is there: only then the command line goes offline."""
    settings = client.settings
    if options.get("provider") or options.get("model") not in (None, "auto", "legacy"):
        return False
    if (
        settings.provider
        or settings.model not in ("auto", "legacy")
        or options.get("model", settings.model) in settings.routes
    ):
        return False
    return not any(os.environ.get(name) for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"))


def _tell(reply: Reply) -> None:
    cost = f"${reply.cost:.6f}" if reply.cost is not None else "unknown"
    usage, timings = reply.usage, reply.timings
    ttft = f"{timings.ttft:.3f} s" if timings.ttft is not None else "none"
    by = f" by {reply.responder}" if reply.responder else ""
    print(f"route: {reply.route}{by}", file=sys.stderr)
    print(
        f"usage: {usage.total_input} in ({usage.cache_read} cached), {usage.output} out; cost {cost}", file=sys.stderr
    )
    print(f"times: first token {ttft}, total {timings.total:.3f} s, attempts {len(reply.attempts)}", file=sys.stderr)
    for note in reply.adjustments:
        print(f"note: {note}", file=sys.stderr)
