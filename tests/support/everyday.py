"""Whether an answer to an everyday request is what its case expects; the cases are `tests/serving/cases/everyday*.yaml`.

A case's `expect` may hold, all of which must be met by the text of the answer:

    contains, lacks   strings that must, or must not, appear
    any               strings of which one must, in any case of letters
    items, sentences  how many list items or sentences
    table             how many rows a Markdown table has
    json              keys and values of the one JSON object that the answer is
    refuses           that it says it can't, or that the text does not state it
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from zlclient.serving.responders.reading import sentences

REFUSES = re.compile(r"can't|does not state|not stated|know nothing|不会|没有提到|未提及|没有常识")


def misses(told: str, expect: Mapping[str, Any]) -> list[str]:
    """What of a case's expectations an answer does not meet."""
    found = [f"no {part}" for part in expect.get("contains", ()) if part not in told]
    found += [f"has {part}" for part in expect.get("lacks", ()) if part in told]
    if "any" in expect and not any(part.lower() in told.lower() for part in expect["any"]):
        found.append(f"none of {expect['any']}")
    counts = {
        "items": len(re.findall(r"(?m)^(?:[-*•]|\d+[.、])\s", told)),
        "table": sum(line.startswith("|") for line in told.splitlines()) - 2,
        "sentences": len(sentences(told)),
    }
    found += [f"{name}: {counts[name]}" for name in counts if name in expect and counts[name] != expect[name]]
    found += _json_misses(told, expect["json"]) if "json" in expect else []
    if expect.get("refuses") and not REFUSES.search(told):
        found.append("does not refuse")
    return found


def _json_misses(told: str, wanted: Mapping[str, Any]) -> list[str]:
    try:
        data = json.loads(told)
        return [f"{key}: {data.get(key)}" for key, value in wanted.items() if str(data.get(key)) != str(value)]
    except (AttributeError, ValueError):
        return ["no JSON object"]
