"""`zlclient lint`: findings in prompt files, fixes, and the linter's bookkeeping."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zlclient.errors import ConfigError

if TYPE_CHECKING:
    from zlclient.linting.diagnostic import Diagnostic
    from zlclient.linting.engine import FileReport
    from zlclient.linting.running import Linter

CLEAN, FINDINGS, ERROR = 0, 1, 2


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Register the command with what `ArgumentParser.add_subparsers` gave."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "lint",
        help="find mistakes in prompts",
        description="Exit code: 0 clean, 1 findings, 2 error or unreadable file.",
    )
    parser.add_argument("paths", nargs="*", metavar="path", help="files and folders (default: the current folder)")
    parser.add_argument("--fix", action="store_true", help="make the safe fixes")
    parser.add_argument("--unsafe-fixes", action="store_true", help="make all fixes")
    parser.add_argument(
        "--select", action="append", metavar="RULES", help="run only these; codes, prefixes, slugs, families, ALL"
    )
    parser.add_argument("--extend-select", action="append", metavar="RULES", help="run these too")
    parser.add_argument("--ignore", action="append", metavar="RULES", help="leave these out")
    parser.add_argument(
        "--target-model", metavar="MODEL", help="lint for this model, such as anthropic:claude-opus-5@2026-10-21"
    )
    parser.add_argument(
        "--output-format", default="text", choices=["text", "concise", "json", "github", "gitlab", "sarif"]
    )
    parser.add_argument("--statistics", action="store_true", help="count findings by rule")
    parser.add_argument("--add-noqa", action="store_true", help="silence every finding with a comment")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="leave out the findings that FILE knows")
    parser.add_argument("--update-baseline", action="store_true", help="write the findings of now to --baseline")
    parser.add_argument("--watch", action="store_true", help="lint again whenever a file changes")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one a core)")
    parser.add_argument("--server", action="store_true", help="run as a language server over stdio (extra: lsp)")
    parser.add_argument("--no-cache", action="store_true", help="lint every file, whatever is remembered")
    parser.add_argument("--explain", metavar="RULE", help="show a rule's page")
    parser.add_argument("--list-rules", action="store_true", help="list all rules")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Lint; 0 clean, 1 findings, 2 a wrong setting or a file that cannot be linted."""
    try:
        return _run(args)
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        return CLEAN


def _run(args: argparse.Namespace) -> int:
    if args.explain:
        from zlclient.linting.docs import render_rule
        from zlclient.linting.registry import find_rule

        print(render_rule(find_rule(args.explain)), end="")
        return CLEAN
    if args.list_rules:
        return _list_rules(args.output_format)
    if args.server:
        return _serve(_options(args))
    if args.update_baseline and args.baseline is None:
        raise ConfigError("needs --baseline FILE", key="--update-baseline")
    writes = [name for name in ("fix", "unsafe_fixes", "add_noqa", "update_baseline") if getattr(args, name)]
    if args.watch and writes:
        raise ConfigError(f"only looks; run --{writes[0].replace('_', '-')} without it", key="--watch")
    from zlclient.linting.running import Linter

    linter = Linter(_options(args), jobs=args.jobs, cache_folder=None if args.no_cache else Path.cwd())
    if args.watch:
        return _watch(args, linter)
    files = linter.files(args.paths)
    if args.fix or args.unsafe_fixes:
        made = linter.fix(files, unsafe=args.unsafe_fixes)
        print(f"{made} fixed", file=sys.stderr)
    reports = linter.reports(files)
    if args.add_noqa:
        print(f"{_add_noqa(reports)} findings silenced", file=sys.stderr)
        reports = linter.reports(files)
    return _report(args, reports)


def _serve(options: dict[str, Any]) -> int:
    try:
        from zlclient.linting.lsp import create_server
    except ImportError:
        raise ConfigError("needs pygls: install zlclient[lsp]", key="--server") from None
    # The server closes what it reads and writes; the process keeps its own streams.
    create_server(options).start_io(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    return CLEAN


def _options(args: argparse.Namespace) -> dict[str, Any]:
    split = {
        name: tuple(item.strip() for value in getattr(args, name) or () for item in value.split(",") if item.strip())
        for name in ("select", "extend_select", "ignore")
    }
    return {**split, "target_model": args.target_model, "force_target": bool(args.target_model) or None}


def _report(args: argparse.Namespace, reports: Sequence[FileReport]) -> int:
    from zlclient.linting.baseline import read_baseline, subtract, write_baseline
    from zlclient.linting.output import FORMATS

    found = [item for report in reports for item in report.diagnostics]
    unreadable = any(report.is_unreadable for report in reports)
    if args.update_baseline:
        count = write_baseline(args.baseline, found)
        print(f"{count} findings written to {args.baseline}", file=sys.stderr)
        return ERROR if unreadable else CLEAN
    if args.baseline is not None:
        found = subtract(found, read_baseline(args.baseline), args.baseline.resolve().parent)
    if args.statistics:
        print(_statistics(found, args.output_format), end="")
    else:
        print(FORMATS[args.output_format](found), end="")
    if args.output_format == "text":
        print(_summary(found, len(reports)), file=sys.stderr)
    return ERROR if unreadable else FINDINGS if found else CLEAN


def _summary(found: Sequence[Diagnostic], files: int) -> str:
    safe = sum(item.fix is not None and item.fix.safety == "safe" for item in found)
    unsafe = sum(item.fixable for item in found) - safe
    hints = [f"{safe} fixable with --fix"] * (safe > 0) + [f"{unsafe} more with --unsafe-fixes"] * (unsafe > 0)
    return ", ".join([f"{len(found)} findings in {files} files", *hints])


def _statistics(found: Sequence[Diagnostic], output: str) -> str:
    counts = Counter((item.code, item.slug) for item in found).most_common()
    if output == "json":
        import json

        return json.dumps([{"code": code, "slug": slug, "count": n} for (code, slug), n in counts], indent=1) + "\n"
    return "".join(f"{n:6}  {code}  {slug}\n" for (code, slug), n in counts)


def _list_rules(output: str) -> int:
    from zlclient.linting.docs import list_rules

    rules = list_rules()
    if output == "json":
        import json

        print(json.dumps(rules, ensure_ascii=False, indent=1))
    else:
        for rule in rules:
            print(f"{rule['code']}  {rule['slug']:26} {'' if rule['default'] else '(off) '}{rule['what']}")
    return CLEAN


def _add_noqa(reports: Sequence[FileReport]) -> int:
    from zlclient.linting.noqa import add_noqa

    silenced = 0
    for report in reports:
        if report.text is None:
            continue
        text, count = add_noqa(report.text, report.path, report.diagnostics)
        if count:
            Path(report.path).write_bytes(text.encode("utf-8"))
            silenced += count
    return silenced


def _watch(args: argparse.Namespace, linter: Linter) -> int:
    from zlclient.linting.running import watch

    for changed in watch(lambda: linter.files(args.paths), time.sleep):
        print(f"-- {time.strftime('%H:%M:%S')} {len(changed)} files", file=sys.stderr)
        _report(args, linter.reports(changed))
        sys.stdout.flush()
    return CLEAN
