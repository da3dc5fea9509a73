"""The `zlclient` command: one file a command group, imported only when it is asked for.

Exit codes: 0 success; 2 bad usage; 3 bad input; 4 configuration or credentials; 5 provider error; 6 timeout;
7 a check failed; 130 interrupted. `zlclient lint` has its own: 0 clean, 1 findings, 2 error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from ..errors import CheckError, ConfigError, InputError, Timeout, ZlclientError

OK, USAGE, INPUT, CONFIG, PROVIDER, TIMEOUT, CHECK, INTERRUPTED = 0, 2, 3, 4, 5, 6, 7, 130

# command → (module, what it does)
COMMANDS = {
    "chat": ("chat", "ask a model, or the offline engine"),
    "explain": ("explain", "show the exact request that would leave, and every adjustment"),
    "config": ("config", "show the effective settings and where each came from"),
    "lint": ("lint", "check prompt templates, and fix what is safe to fix"),
    "render": ("render", "show what a prompt template becomes"),
    "rollout": ("rollout", "see and move a staged rollout"),
    "ab": ("ab", "report on an experiment"),
    "console": ("console", "watch and move rollouts on a local page"),
    "ask": ("ask", "ask a question about a document"),
    "serve": ("serve", "run the local server that the official SDKs accept"),
    "record": ("record", "record exchanges with a real endpoint, without secrets"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser(arguments).parse_args(arguments)
    try:
        return args.run(args)
    except ZlclientError as error:
        print(f"zlclient: {error}", file=sys.stderr)
        return _code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has gone: nothing more can be said, not even by the interpreter at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _code(error: ZlclientError) -> int:
    if isinstance(error, CheckError):
        return CHECK
    if isinstance(error, ConfigError):
        return CONFIG
    if isinstance(error, InputError):
        return INPUT
    return TIMEOUT if isinstance(error, Timeout) else PROVIDER


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    """The parser; only the asked command's module is imported, so that a start stays quick."""
    from .. import __version__

    parser = argparse.ArgumentParser(
        prog="zlclient",
        description="The layer between an application and a chat model.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"zlclient {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        if name == asked:
            import_module(f".{module}", __name__).add_parser(commands)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser
