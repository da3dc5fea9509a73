"""The page's code is run: Python blocks as tests (and as scripts), YAML blocks as scenario files."""

import re
from pathlib import Path

import anthropic  # noqa: F401 - pytester would otherwise import them anew for every block
import openai  # noqa: F401
import pytest

from zlclient.serving.responders.scenario_file import load_scenarios
from zlclient.testing import interception  # noqa: F401

pytest_plugins = ["pytester"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "test-your-llm-application-offline.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_python_blocks_run(number: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    source = blocks("python")[number]
    compile(source, str(PAGE), "exec")
    tests = len(re.findall(r"^def test_", source, re.MULTILINE))
    if not tests:
        exec(source, {})
        return
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(source)
    result = pytester.runpytest_inprocess("-p", "zlclient.testing.plugin", "-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=tests)


@pytest.mark.parametrize("number", range(len(blocks("yaml"))))
def test_yaml_blocks_are_scenarios(number: int, tmp_path: Path):
    path = tmp_path / "block.yaml"
    path.write_text(blocks("yaml")[number], "utf-8")
    assert load_scenarios(path)


def test_the_page_has_what_is_tested_here():
    assert len(blocks("python")) >= 6
    assert len(blocks("yaml")) >= 1
