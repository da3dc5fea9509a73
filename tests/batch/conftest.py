import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from zlclient.batch import batch as run_batch


class Folder:
    """A working folder with an input, its outputs, and the run between them."""

    def __init__(self, path: Path) -> None:
        self.path, self.output = path, path / "replies.jsonl"

    def rows(self, rows: list[Any], name: str = "prompts.jsonl") -> Path:
        path = self.path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return path

    def run(self, source: Any, **options: Any) -> Any:
        return run_batch(source, output=self.output, **{"provider": "local", **options})

    @property
    def replies(self) -> list[dict[str, Any]]:
        return lines(self.output)

    @property
    def failures(self) -> list[dict[str, Any]]:
        return lines(self.path / "replies.errors.jsonl")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture(scope="session")
def routing_servers() -> Any:
    """The fixtures of the routing tests, which start a real PostgreSQL."""
    path = Path(__file__).parents[1] / "routing" / "conftest.py"
    spec = importlib.util.spec_from_file_location("routing_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
