"""Fixtures every test may use; nothing here starts a service or opens a socket by itself."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of facts, cases and vectors beside the checkout; a test that needs it skips without it."""
    if not SHARED.is_dir():
        pytest.skip("../shared is not beside this checkout")
    return SHARED
