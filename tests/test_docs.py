"""Every code block of README.md and docs/ runs: python blocks of a page in one namespace, sh blocks with bash, offline.

The README's two set-up commands are run by `.ci/run` itself, on a clean checkout.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WRITTEN = (page for page in (ROOT / "docs").rglob("*.md") if "_generated" not in page.parts)
PAGES = sorted([ROOT / "README.md", *WRITTEN])
FENCE = re.compile(r"^```(?P<language>[\w{}-]*)\n(?P<code>.*?)^```$", re.M | re.S)
KNOWN = {"python", "sh", "toml", "yaml", "json", "text", "jinja", "ini", "console", "{toctree}", ""}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    text = page.read_text("utf-8")
    return [
        (text[: match.start()].count("\n") + 2, match["code"])
        for match in FENCE.finditer(text)
        if match["language"] == language
    ]


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A working directory of its own, no keys, and the installed command in front of the path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    return env | {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run(page, offline):
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for line, code in blocks(page, "python"):
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sh_blocks_run(page, offline):
    for line, code in blocks(page, "sh"):
        if "pip install" in code:
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code], env=offline, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{page.name}:{line}: {code}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_other_blocks_parse(page):
    languages = {match["language"] for match in FENCE.finditer(page.read_text("utf-8"))}
    assert languages <= KNOWN
    for _, code in blocks(page, "toml"):
        assert tomllib.loads(code)


def test_the_readme_has_exactly_two_set_up_commands():
    set_up = [code for _, code in blocks(ROOT / "README.md", "sh") if "pip install" in code]
    assert len(set_up) == 2
    assert all(len(code.strip().splitlines()) == 1 for code in set_up)
