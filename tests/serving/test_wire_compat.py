"""The points of ../shared/tools/wire_compat.py, which was not written for this server, on both Anthropic versions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from zlclient.serving import LocalServer
from zlclient.serving.app import Listener


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("version", ["2026-10-21", "2023-06-01"])
def test_every_point_is_ok(shared: Path, version: str):
    tool = shared / "tools" / "wire_compat.py"
    if not tool.is_file():
        pytest.skip("no wire_compat.py beside this checkout")
    with Listener(LocalServer(require_key=True)) as listener:
        command = [sys.executable, "-W", "ignore", str(tool), "zlclient", listener.url, f"{listener.url}/v1"]
        environment = {**os.environ, "ANTHROPIC_CUSTOM_HEADERS": f"anthropic-version: {version}"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    points = json.loads(done.stdout)
    assert len(points) == 30
    assert {point: result for point, result in points.items() if result.startswith("FAIL")} == {}
    assert done.returncode == 0
