"""Output formats, one module each: `render(diagnostics) -> str`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..diagnostic import Diagnostic
from . import concise, github, gitlab, json, sarif, text

FORMATS: dict[str, Callable[[Sequence[Diagnostic]], str]] = {
    "text": text.render,
    "concise": concise.render,
    "json": json.render,
    "github": github.render,
    "gitlab": gitlab.render,
    "sarif": sarif.render,
}
