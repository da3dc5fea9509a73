"""Draw findings of the default rules over a folder of real prompts, spread over rules and languages, with a fixed seed.

    python tests/linting/precision/draw.py CORPUS > drawn.json

Rules take turns, and within a rule Chinese and other files do, until SIZE findings are drawn. labels.yml holds a
person's judgement of each of the corpus; test_precision.py compares the two. fresh_first.yml to fresh_third.yml hold
judgements of findings drawn the same way from prompt files of other repositories, which are named and not copied.
"""

from __future__ import annotations

import json
import random
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path

from zlclient.linting.engine import lint_file
from zlclient.linting.lint_settings import LintSettings

SEED, SIZE, TODAY = 5, 100, date(2026, 11, 30)
# BAML is no format of the linter.
SKIPPED = (".jsonl", ".baml")


def draw(corpus: Path) -> list[dict[str, object]]:
    """SIZE findings as (file, code, line, column, message), sorted."""
    settings = LintSettings(today=TODAY)
    by_rule: dict[str, dict[bool, list[dict[str, object]]]] = defaultdict(lambda: {True: [], False: []})
    for file in sorted(corpus.iterdir()):
        if file.suffix in SKIPPED or file.name == "README.md":
            continue
        report = lint_file(file, settings)
        is_chinese = sum("\u4e00" <= char <= "\u9fff" for char in report.text or "") > 50
        for item in report.diagnostics:
            entry = {
                "file": file.name,
                "code": item.code,
                "line": item.line,
                "column": item.column,
                "message": item.message,
            }
            by_rule[item.code][is_chinese].append(entry)
    chance = random.Random(SEED)
    queues = []
    for _, halves in sorted(by_rule.items()):
        for half in halves.values():
            chance.shuffle(half)
        chinese, other = halves[True], halves[False]
        queues.append(
            [half.pop() for turn in range(len(chinese) + len(other)) if (half := _turn(turn, chinese, other))]
        )
    drawn = []
    while len(drawn) < SIZE and any(queues):
        for queue in queues:
            if queue and len(drawn) < SIZE:
                drawn.append(queue.pop(0))
    return sorted(drawn, key=lambda item: (item["code"], item["file"], item["line"], item["column"]))


def _turn(turn: int, one: list, two: list) -> list:
    first, second = (one, two) if turn % 2 == 0 else (two, one)
    return first or second


if __name__ == "__main__":
    print(json.dumps(draw(Path(sys.argv[1])), ensure_ascii=False, indent=1))
