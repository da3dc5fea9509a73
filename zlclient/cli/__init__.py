"""The `zlclient` command: one file a command group, imported only when it is asked for.

Exit codes: 0 success; 2 bad usage; 3 bad input; 4 configuration or credentials; 5 provider error; 6 timeout;
7 a check failed; 8 a file, port or output that the system refuses; 130 interrupted. `zlclient lint` has its own:
0 clean, 1 findings, 2 error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from ..errors import CheckError, ConfigError, InputError, Timeout, ZlclientError

OK, USAGE, INPUT, CONFIG, PROVIDER, TIMEOUT, CHECK, SYSTEM, INTERRUPTED = 0, 2, 3, 4, 5, 6, 7, 8, 130

# command → (module, what it does)
COMMANDS = {
    "chat": ("chat", "ask a model, or the offline engine"),
    "explain": ("explain", "show the exact request that would leave, and every adjustment"),
    "config": ("config", "show the effective settings and where each came from"),
    "batch": ("batch", "answer many prompts, resumably"),
    "engine": ("engine", "show the reference engine's checkpoints, or trace a forward pass"),
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
    _open_streams()
    arguments = list(sys.argv[1:] if argv is None else argv)
    args = _parser(arguments).parse_args(arguments)
    try:
        code = args.run(args)
        sys.stdout.flush()  # what cannot be written is found here, not by the interpreter at exit
        return code
    except ZlclientError as error:
        _say(str(error))
        return _code(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader has gone, which is its right: `zlclient … | head`
        return OK
    except OSError as error:
        _drop_output()
        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
        return SYSTEM


def _open_streams() -> None:
    """Streams that can be used: one closed by the caller is empty, and a character it cannot encode becomes "?"."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until exit
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape"):
        reconfigure(errors="replace")


def _say(message: str) -> None:
    with suppress(OSError):
        print(f"zlclient: {message}", file=sys.stderr)


def _drop_output() -> None:
    """Nothing more can be written, not even by the interpreter at exit."""
    with suppress(OSError):  # a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _code(error: ZlclientError) -> int:
    if isinstance(error, CheckError):
        return CHECK
    if isinstance(error, ConfigError):
        return CONFIG
    if isinstance(error, InputError):
        return INPUT
    return TIMEOUT if isinstance(error, Timeout) else PROVIDER


class _Version(argparse.Action):
    """Looks the version up only when it is asked for: the metadata of installed packages is slow to read."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        from .. import __version__

        print(f"zlclient {__version__}")
        parser.exit()


def _parser(arguments: list[str]) -> argparse.ArgumentParser:
    """The parser; only the asked command's module is imported, so that a start stays quick."""
    parser = argparse.ArgumentParser(
        prog="zlclient",
        description="The layer between an application and a chat model.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    asked = next((word for word in arguments if not word.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        if name == asked:
            import_module(f".{module}", __name__).add_parser(commands)
        else:
            commands.add_parser(name, help=summary, add_help=False)
    return parser
