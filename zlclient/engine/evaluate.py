"""`python -m zlclient.engine.evaluate`: both generations side by side, in one run, with intervals.

    python -m zlclient.engine.evaluate --output docs/engine --page docs/engine.md

prints one table, writes `results.json`, the table and the plots into a folder, and puts the claims with their verdicts
between the marks of a page.
Speed is measured interleaved, prompt by prompt, in CPU seconds of one thread; quality on generated documents that
training never sees and on the written passages of a file. A claim that is not reached is reported so.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ConfigError

WRITTEN = Path(__file__).parents[2] / "tests" / "serving" / "cases"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m zlclient.engine.evaluate", description="Compare the two generations."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--quick", action="store_true", help="less of everything: within 50 seconds")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="write results.json, measured.md and the plots there"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="put the claims between the marks of a Markdown page")
    parser.add_argument(
        "--from", type=Path, dest="known", metavar="FILE", help="a results.json to report instead of measuring"
    )
    parser.add_argument(
        "--passages",
        type=Path,
        nargs="*",
        default=sorted(WRITTEN.glob("offline*.yaml")),
        help="YAML files of written passages (default: the repository's, where this is a checkout of it)",
    )
    args = parser.parse_args(argv)
    # One thread, so that CPU seconds and wall time agree; numpy reads these when it is first imported.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from .evaluation.report import as_text, write_page

    found = _known(args.known) if args.known else evaluate(quick=args.quick, passages=args.passages)
    folder: Path | None = args.output
    page: Path | None = args.page
    if folder:
        _write(folder, found)
    if page:
        write_page(page, found, Path(os.path.relpath(folder, page.parent)).as_posix() if folder else "")
    print(json.dumps(found, ensure_ascii=False, indent=2) if args.json else as_text(found))
    return 0


def evaluate(*, quick: bool, passages: Sequence[Path] = ()) -> dict[str, Any]:
    """Everything, as one object for JSON.

    Raises:
        ConfigError: a file of passages cannot be read.
    """
    from .evaluation.results import FULL, QUICK, collect

    return collect(QUICK if quick else FULL, _cases(passages))


def _write(folder: Path, found: dict[str, Any]) -> None:
    from .evaluation.report import draw, tables_page

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    (folder / "measured.md").write_text(tables_page(found), "utf-8")
    for name, svg in draw(found).items():
        (folder / name).write_text(svg, "utf-8")


def _cases(files: Sequence[Path]) -> list[dict[str, Any]]:
    import yaml

    found: list[dict[str, Any]] = []
    for path in files:
        try:
            found += yaml.safe_load(path.read_text("utf-8"))
        except (OSError, yaml.YAMLError, TypeError) as error:
            raise ConfigError(f"cannot be read: {error}", file=str(path)) from None
    return found


def _known(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path)) from None


if __name__ == "__main__":
    sys.exit(main())
