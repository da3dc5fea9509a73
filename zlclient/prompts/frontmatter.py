"""The YAML block between two `---` lines at the top of a file."""

from __future__ import annotations

import re
from typing import Any, cast

from .parts import Format, FrontMatter, Problem
from .yaml_nodes import read_yaml

# Only a line of exactly three dashes opens: `----` is a rule. Blank lines may come first, in dotprompt also comments.
_OPEN = re.compile(r"\ufeff?(?:[ \t]*\r?\n)*---[ \t]*(?:\r?\n|\Z)")
_OPEN_AFTER_COMMENTS = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\r\n]*)?\r?\n)*---[ \t]*(?:\r?\n|\Z)")
_CLOSE = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)

_STRICT: frozenset[Format] = frozenset({"prompty", "dotprompt"})


def split_front_matter(text: str, kind: Format) -> tuple[FrontMatter | None, int, list[Problem]]:
    """(front matter, where the body begins, problems).

    In .prompty and dotprompt files a block that does not close or parse is a problem; in Jinja files it is one if it
    closes; elsewhere `---` may as well be a rule, so only a block that is a mapping counts.
    """
    opening = (_OPEN_AFTER_COMMENTS if kind == "dotprompt" else _OPEN).match(text)
    if not opening:
        return None, 1 if text.startswith("\ufeff") else 0, []
    closing = _CLOSE.search(text, opening.end())
    if not closing:
        if kind in _STRICT:
            problem = Problem("front-matter-unclosed", "the front matter has no closing ---", *opening.span())
            return None, len(text), [problem]
        return None, 0, []
    start, end = opening.end(), closing.start()
    document = read_yaml(text[start:end], start)
    problem = document.problem
    data = document.data
    if problem is None and data is not None and not isinstance(data, dict):
        problem = Problem("front-matter-not-a-mapping", "the front matter is not a mapping", start, end)
    if kind in ("markdown", "text") and (problem or not data):
        return None, 0, []
    problems = [problem] if problem else []
    problems += [
        Problem("yaml-duplicate-key", f"the key {key!r} is given twice; the last one counts", *span)
        for key, span in document.duplicates
    ]
    front = FrontMatter(
        raw=text[start:end],
        start=start,
        end=end,
        data={} if problem or data is None else _with_text_keys(cast("dict[Any, Any]", data)),
        keys=document.keys,
        values=document.values,
        problem=problem,
    )
    return front, closing.end(), problems


def _with_text_keys(data: dict[Any, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in data.items()}
