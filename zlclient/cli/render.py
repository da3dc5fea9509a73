"""`zlclient render FILE name=value name=@file`: show what a template becomes, without sending it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError

if TYPE_CHECKING:
    from ..prompts.prompt import Prompt
    from ..prompts.rendered import Rendered

_STRUCTURED = frozenset(["integer", "float", "boolean", "array", "object", "thread", "any"])


def add_parser(subparsers: Any) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "render",
        help="show what a prompt template becomes",
        description="Render a prompt template and show its messages and options. Nothing is sent.",
    )
    parser.add_argument("file", help="a template, or the name of a bundled one, such as summary")
    parser.add_argument(
        "values",
        nargs="*",
        metavar="name=value",
        help="an input's value; name=@file reads it from a file, name=@- from standard input; "
        "numbers, lists and objects are JSON",
    )
    parser.add_argument("--language", help="language of a bundled template: en (default) or zh")
    parser.add_argument("--inputs", action="store_true", help="list the template's inputs instead")
    parser.add_argument(
        "--upgrade", action="store_true", help="print a first-format .prompty file in the second format"
    )
    parser.add_argument("--json", action="store_true", help="print messages, system and options as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the rendered prompt.

    Raises:
        ConfigError: the template is wrong.
        InputError: a value is missing, unknown, unreadable or of a wrong kind.
    """
    prompt = _prompt(args.file, args.language)
    if args.upgrade:
        sys.stdout.write(prompt.upgrade())
    elif args.inputs:
        print(json.dumps(_inputs(prompt), ensure_ascii=False, indent=2) if args.json else _listed(prompt))
    else:
        rendered = prompt.render(**_values(prompt, args.values))
        print(json.dumps(_as_json(rendered), ensure_ascii=False, indent=2) if args.json else _as_text(rendered))
    return 0


def _prompt(name: str, language: str | None) -> Prompt:
    from ..prompts.prompt import Prompt

    if Path(name).is_file() or Path(name).suffix or "/" in name:
        if language:
            raise InputError("is for bundled templates; a file is in one language", where="--language")
        return Prompt.load(name)
    return Prompt.bundled(name, language=language)


def _values(prompt: Prompt, words: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            raise InputError("must be name=value", where=word)
        spec = prompt.inputs.get(name)
        if text.startswith("@"):
            text = _read(text[1:], name)
        values[name] = _parsed(text, name) if spec and spec.kind in _STRUCTURED else text
    return values


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InputError("is not JSON, which an input of its kind is given as", where=name) from None


def _read(path: str, name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", where=name) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8", where=name) from None


def _as_json(rendered: Rendered) -> dict[str, Any]:
    return {
        "name": rendered.name,
        "version": rendered.version,
        "system": rendered.system,
        "messages": rendered.messages,
        "options": _plain_options(rendered),
        "untrusted": [vars(value) for value in rendered.untrusted],
        "unused": list(rendered.unused),
    }


def _plain_options(rendered: Rendered) -> dict[str, Any]:
    options = dict(rendered.options)
    if "output" in options:
        options["output"] = options["output"].model_json_schema()
    return options


def _as_text(rendered: Rendered) -> str:
    lines = [rendered.text]
    options = _plain_options(rendered)
    # What the answer is checked against is an input's text, shown above already.
    options.pop("source", None)
    if options:
        lines += ["", "options: " + json.dumps(options, ensure_ascii=False)]
    for value in rendered.untrusted:
        note = ", changed on the way" if value.is_changed else ""
        lines.append(
            f"untrusted: {value.input} in message {value.message} ({value.role}), fenced by {value.fence}{note}"
        )
    lines += [f"unused: {name}" for name in rendered.unused]
    return "\n".join(lines)


def _inputs(prompt: Prompt) -> list[dict[str, Any]]:
    return [
        {
            "name": spec.name,
            "kind": spec.kind,
            "required": spec.required,
            "trust": spec.trust,
            "description": spec.description,
        }
        | ({"default": spec.default} if spec.has_default else {})
        | ({"enumValues": list(spec.enum)} if spec.enum else {})
        for spec in prompt.inputs.values()
    ]


def _listed(prompt: Prompt) -> str:
    lines: list[str] = []
    for spec in prompt.inputs.values():
        need = "required" if spec.required else f"default {spec.default!r}" if spec.has_default else "optional"
        lines.append(f"{spec.name} ({spec.kind}, {need}, {spec.trust}): {spec.description}".rstrip(": "))
    return "\n".join(lines) or "no declared inputs"
