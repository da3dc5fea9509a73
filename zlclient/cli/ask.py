"""`zlclient ask FILE "…"`: a question over a document, with the places that support the answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..client import Client
from ..errors import InputError
from ..request import MODES, SEGMENT_ERROR_POLICIES
from .chat import go_offline
from .options import add_request_options, read_prompt, request_options

if TYPE_CHECKING:
    import argparse

    from ..answering.jobs import Progress
    from ..reply import Reply
    from ..shaping.documents import Document

_WIDTH = 24  # cells of the bar
_PHASES = {"read": "reading", "merge": "merging"}


def add_parser(commands: Any) -> None:
    """Register the command."""
    parser = commands.add_parser("ask", help="ask a question over a document of any length")
    parser.add_argument("document", metavar="FILE", help="text, Markdown, HTML, PDF or DOCX")
    add_request_options(parser)
    parser.add_argument("--mode", choices=MODES, help="answer (the default), summary, or extract: word for word")
    parser.add_argument("--structure", help="law, contract, paper, markdown …, or a TOML file; detected when not given")
    parser.add_argument("--encoding", help="what the file's bytes are in; detected when not given")
    parser.add_argument("--segment-tokens", type=int, help="tokens of the document in one request, at most")
    parser.add_argument("--concurrency", type=int, help="how many segments are read at once")
    parser.add_argument("--on-segment-error", choices=SEGMENT_ERROR_POLICIES, help="raise (the default) or skip")
    parser.add_argument("--no-sources", action="store_true", help="print the answer alone")
    parser.add_argument("--json", action="store_true", help="print the whole reply as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="print coverage, usage and adjustments to stderr")
    parser.set_defaults(run=run)


_OPTIONS = ("mode", "segment_tokens", "concurrency", "on_segment_error")


def run(args: argparse.Namespace) -> int:
    """Ask; returns 0, or raises the error that `main` turns into an exit code."""
    document = _document(args)
    question = read_prompt(args)
    options = request_options(args)
    options |= {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    bar = Bar(sys.stderr)
    options |= {"document": document, "progress": bar}
    with Client() as client:
        go_offline(client, options, asked=args.offline)
        try:
            with client.stream(question, **options) as answer:
                bar.clear()
                for text in () if args.json else answer:
                    sys.stdout.write(text)
                    sys.stdout.flush()
                reply = answer.reply
        finally:
            bar.clear()
    if args.json:
        print(reply.to_json(indent=2))
    else:
        print()
        if not args.no_sources:
            _print_sources(reply)
    _tell(reply, verbose=args.verbose)
    return 0


def _document(args: argparse.Namespace) -> Document:
    from ..shaping.documents import Document

    try:
        return Document.from_path(Path(args.document), args.structure, encoding=args.encoding)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=args.document) from None


def _print_sources(reply: Reply) -> None:
    """One line a statement: its path and characters, or that nothing supports it."""
    for number, found in enumerate(reply.citations, 1):
        if number == 1:
            print()
        if found.supported:
            print(f"[{number}] {' › '.join(found.path) or 'text'}, characters {found.start}–{found.end}")
        else:
            missing = f"; the nearest place lacks {', '.join(found.missing)}" if found.missing else ""
            print(f"[{number}] not supported by the document{missing}: {found.statement}")


def _tell(reply: Reply, *, verbose: bool) -> None:
    coverage = reply.coverage
    if coverage is not None and (verbose or not coverage.complete):
        read = f"{coverage.read} of {len(coverage.segments)} segments read, {coverage.share:.1%} of the characters"
        print(f"coverage: {read}", file=sys.stderr)
        for segment in coverage.segments:
            if not segment.read:
                place = f"{' › '.join(segment.path) or 'text'}, characters {segment.start}–{segment.end}"
                print(f"not read: {place} ({segment.error or 'not sent'})", file=sys.stderr)
    if verbose:
        usage = reply.usage
        print(f"usage: {usage.total_input} in ({usage.cache_read} cached), {usage.output} out", file=sys.stderr)
        for note in reply.adjustments:
            print(f"note: {note}", file=sys.stderr)


class Bar:
    """A progress bar on a terminal; on anything else it is silent."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = 0  # characters of the line that stands there

    def __call__(self, progress: Progress) -> None:
        """Draw how far the call is."""
        if not self._stream.isatty():
            return
        cells = _WIDTH * (progress.done + progress.failed) // progress.total
        failed = f", {progress.failed} failed" if progress.failed else ""
        line = (
            f"{_PHASES[progress.phase]} [{'█' * cells}{'░' * (_WIDTH - cells)}]"
            f" {progress.done}/{progress.total} segments{failed}"
        )
        self._stream.write(f"\r{line.ljust(self._shown)}")
        self._stream.flush()
        self._shown = len(line)

    def clear(self) -> None:
        """Take the bar away, so that what follows stands alone."""
        if self._shown:
            self._stream.write(f"\r{' ' * self._shown}\r")
            self._stream.flush()
            self._shown = 0
