"""Importing zlclient is light: nothing heavy is loaded before it is used."""

import json
import subprocess
import sys

import pytest

import zlclient

HEAVY = ("anthropic", "openai", "httpx2", "httpcore2", "numpy", "jinja2", "yaml", "uvicorn", "pydantic", "sqlalchemy")


def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return set(json.loads(out.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import zlclient",
        "import zlclient; zlclient.sanitize('hi')",
        "import zlclient; zlclient.Client(provider='local').prepare('hi', domain='law')",
        "import zlclient; zlclient.Client(provider='local').chat('hi')",
        "import zlclient.routing, zlclient.serving, zlclient.linting, zlclient.prompts, zlclient.checking",
        "import zlclient.testing.plugin",
    ],
)
def test_nothing_heavy_is_loaded(code):
    assert not modules_after(code) & set(HEAVY)


def test_import_alone_loads_almost_nothing():
    assert len(modules_after("import zlclient") - modules_after("pass")) < 40


def test_every_public_name_is_there():
    for name in zlclient.__all__:
        assert getattr(zlclient, name) is not None
    with pytest.raises(AttributeError):
        zlclient.nothing  # noqa: B018
    assert set(zlclient.__all__) <= set(dir(zlclient))


def test_a_public_name_is_what_it_says_whatever_was_asked_for_before():
    """A submodule of the same name would take its place once anything else of that module is imported."""
    code = (
        "import zlclient\n"
        "for name in reversed(zlclient.__all__): getattr(zlclient, name)\n"
        "for name in zlclient.__all__: assert callable(getattr(zlclient, name)) or name in NO_CALLS, name\n"
    )
    plain = {name for name in zlclient.__all__ if not callable(getattr(zlclient, name))}
    subprocess.run([sys.executable, "-c", f"NO_CALLS = {plain!r}\n{code}"], check=True)
    assert "middleware" not in plain
