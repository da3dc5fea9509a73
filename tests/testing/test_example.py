"""The example project passes its own tests, run in its own folder as a user would."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "test_your_app"


def test_the_example_project_passes_without_a_key():
    # Only the plugins it needs: another one that is installed by chance should not slow it down or change it.
    plugins = ("-p", "zlclient.testing.plugin", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider")
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--strict-markers", *plugins, str(EXAMPLE)],
        cwd=EXAMPLE,
        env={**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "10 passed" in run.stdout
