"""The options that `chat` and `explain` share, and how a prompt is read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..request import PRESETS, RATE_LIMIT_POLICIES, SANITIZE_MODES

if TYPE_CHECKING:
    import argparse


def add_request_options(parser: argparse.ArgumentParser) -> None:
    """Everything that shapes a request."""
    parser.add_argument("prompt", nargs="*", help="the prompt; without one, standard input")
    parser.add_argument(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="PATH",
        help="a text to add after the prompt; - is standard input, which beside a prompt is read only when named so",
    )
    parser.add_argument("-m", "--model", help='"auto", "legacy", a route, or provider:model-id')
    parser.add_argument("--provider", help="where auto, legacy or a bare model id is found")
    parser.add_argument("--offline", action="store_true", help="use the offline engine")
    parser.add_argument("-s", "--system", help="system text")
    parser.add_argument("-d", "--domain", help="finance, law, medicine, science, technology, support, general …")
    parser.add_argument("--anchors", action="append", metavar="NAME", help="a system-side snippet to add")
    parser.add_argument("--reinforce", action="store_true", default=None, help="reinforce a loose system prompt")
    parser.add_argument("--sanitize", choices=SANITIZE_MODES)
    parser.add_argument("--max-tokens", type=int)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--preset", choices=PRESETS)
    parser.add_argument("--effort")
    parser.add_argument("--timeout", type=_seconds, help='seconds for the first event and each silence, or "off"')
    parser.add_argument("--deadline", type=float, help="seconds for the whole call")
    parser.add_argument("--retry", type=int)
    parser.add_argument("--fallback", action="append", metavar="ROUTE")
    parser.add_argument("--on-rate-limit", choices=RATE_LIMIT_POLICIES)
    parser.add_argument("--strict", action="store_true", default=None, help="a rejected option is an error")


_OPTIONS = (
    "model",
    "provider",
    "system",
    "domain",
    "anchors",
    "reinforce",
    "sanitize",
    "max_tokens",
    "temperature",
    "preset",
    "effort",
    "timeout",
    "deadline",
    "retry",
    "fallback",
    "on_rate_limit",
    "strict",
)


def request_options(args: argparse.Namespace) -> dict[str, Any]:
    """The options given, for `Client.chat`; those not given are left to the settings."""
    options = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    if args.offline:
        if args.provider not in (None, "local"):
            raise InputError(f"--offline and --provider {args.provider} contradict each other", where="--offline")
        options["provider"] = "local"
    return options


def read_prompt(args: argparse.Namespace) -> str:
    """The prompt from the arguments, then each file, or standard input when neither is given.

    Raises:
        InputError: a file cannot be read or is not UTF-8, or all is empty.
    """
    parts = [" ".join(args.prompt)] if args.prompt else []
    parts.extend(_read(path) for path in args.file or ([] if args.prompt else ["-"]))
    prompt = "\n\n".join(part for part in parts if part.strip())
    if not prompt:
        raise InputError("there is no prompt; give one as an argument, with --file, or on standard input")
    return prompt


def _read(path: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
        raise InputError(f"cannot be read: {reason}", where="stdin" if path == "-" else path) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start})", where="stdin" if path == "-" else path) from None


def _seconds(text: str) -> float | str:
    return text if text == "off" else float(text)
