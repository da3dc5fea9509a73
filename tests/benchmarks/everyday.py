"""How many everyday requests the local server meets: the cases of `tests/serving/cases/everyday*.yaml`, by kind.

    python tests/benchmarks/everyday.py

Prints a row a set and kind, met of asked: by the engine (`auto`, with the offline responder for what it leaves to it)
and by the offline responder alone. The rules were made on all sets but `everyday_held_out`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "support"))

from everyday import misses  # noqa: E402 - beside the tests, not installed

from zlclient import chat  # noqa: E402

MODELS = {"engine": "local:auto", "offline": "claude-sonnet-5"}


def main() -> None:
    """Ask every case of every model, and print the table."""
    print("| set | kind | asked | " + " | ".join(MODELS) + " |\n|---|---|---|" + "---|" * len(MODELS))
    for file in sorted((ROOT / "serving" / "cases").glob("everyday*.yaml")):
        asked: Counter[str] = Counter()
        met = {name: Counter[str]() for name in MODELS}
        for case in yaml.safe_load(file.read_text("utf-8")):
            kinds = (re.sub(r"^(?:zh|en)-|-\d+$", "", case["id"]), "all")
            asked.update(kinds)
            for name, model in MODELS.items():
                reply = chat(case["prompt"], model=model, provider="local")
                if not misses(reply.text, case["expect"]):
                    met[name].update(kinds)
        for kind in asked:
            print(
                f"| {file.stem} | {kind} | {asked[kind]} | "
                + " | ".join(str(found[kind]) for found in met.values())
                + " |"
            )


if __name__ == "__main__":
    main()
