"""`zlclient batch prompts.jsonl -o replies.jsonl`: answer every row of a file or a folder, resumable."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..request import PRESETS, RATE_LIMIT_POLICIES, SANITIZE_MODES
from .chat import go_offline
from .options import request_options

if TYPE_CHECKING:
    from ..batch.report import BatchReport

DONE, FAILED, BUDGET, INTERRUPTED = 0, 1, 9, 130
_EPILOG = """Exit codes: 0 every row was answered; 1 some rows failed, they are in the side file; 9 stopped by a budget
(start it again to go on); 130 interrupted (likewise); 2 to 8 as for every command."""


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "batch",
        help="answer every row of a file or a folder, resumable",
        description="Answer every row of a file or a folder. Started again after a break, it goes on where it stopped.",
        epilog=_EPILOG,
    )
    parser.add_argument("source", help="a .jsonl, .csv, .tsv or .parquet file, a folder of texts, or - for JSON Lines")
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="where replies go, as JSON Lines")
    parser.add_argument("--errors", metavar="PATH", help="where failed rows go (default: beside the output)")
    parser.add_argument("--template", metavar="T", help="a template, or a bundled one's name; rows give its inputs")
    parser.add_argument(
        "--runner", choices=("local", "provider", "ray"), default="local", help="who sends (default: local)"
    )
    parser.add_argument("--ledger", metavar="URL", help="sqlite:///PATH or postgresql://… (default: beside the output)")
    parser.add_argument("--unordered", action="store_true", help="write replies as they are answered")
    parser.add_argument("--concurrency", type=int, default=32, metavar="N", help="requests in flight, at most")
    parser.add_argument("--max-requests", type=int, metavar="N", help="requests this run may send")
    parser.add_argument("--max-tokens-total", type=int, metavar="N", help="tokens this run may take, in and out")
    parser.add_argument("--max-cost", type=float, metavar="USD", help="US dollars this run may cost")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress bar")
    _add_chat_options(parser)
    parser.set_defaults(run=run)


def _add_chat_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("for every row, unless it says otherwise")
    group.add_argument("-m", "--model", help='"auto", "legacy", a route, or provider:model-id')
    group.add_argument("--provider", help="where auto, legacy or a bare model id is found")
    group.add_argument("--offline", action="store_true", help="use the offline engine")
    group.add_argument("-s", "--system", help="system text")
    group.add_argument("-d", "--domain", help="finance, law, medicine, science, technology, support, general …")
    group.add_argument("--anchors", action="append", metavar="NAME")
    group.add_argument("--reinforce", action="store_true", default=None)
    group.add_argument("--sanitize", choices=SANITIZE_MODES)
    group.add_argument("--max-tokens", type=int)
    group.add_argument("--temperature", type=float)
    group.add_argument("--preset", choices=PRESETS)
    group.add_argument("--effort")
    group.add_argument("--timeout", type=lambda text: text if text == "off" else float(text))
    group.add_argument("--deadline", type=float)
    group.add_argument("--retry", type=int)
    group.add_argument("--fallback", action="append", metavar="ROUTE")
    group.add_argument("--on-rate-limit", choices=RATE_LIMIT_POLICIES)
    group.add_argument("--strict", action="store_true", default=None)


def run(args: argparse.Namespace) -> int:
    """Run the batch and print its report; returns the exit code, or raises the error that `main` turns into one."""
    from ..batch.running import Plan, execute
    from ..client import Client

    options = request_options(args)
    with Client() as client:
        settings = client.settings
        go_offline(client, options, asked=args.offline)
    plan = Plan(
        source=args.source,
        output=args.output,
        template=args.template,
        runner=args.runner,
        ledger=args.ledger,
        errors=args.errors,
        ordered=not args.unordered,
        concurrency=args.concurrency,
        max_requests=args.max_requests,
        max_tokens_total=args.max_tokens_total,
        max_cost=args.max_cost,
        progress=not args.quiet,
        settings=settings,
        options=options,
    )
    report = execute(plan)
    print(report.to_json(indent=2) if args.json else report)
    return exit_code(report)


def exit_code(report: BatchReport) -> int:
    """What the command returns for a run that came to its report."""
    if report.stopped is not None:
        return BUDGET if report.stopped == "budget" else INTERRUPTED
    return FAILED if report.failed else DONE
