"""The documentation site: `python -m sphinx -W docs build/docs` builds it strictly."""

import re
import shutil
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from zlclient.linting.docs import render_pages

project = "zlclient"
author = "The zlclient authors"
copyright = "2026, The zlclient authors"  # noqa: A001 - the name Sphinx wants
version = release = installed_version("zlclient")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
html_theme = "alabaster"
exclude_patterns = ["_build"]


def write_rules(app: Any) -> None:
    """Write `_generated/rules/`, one page a rule, from the rules themselves; git ignores it."""
    folder = Path(app.srcdir) / "_generated" / "rules"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, page in render_pages().items():
        # Pygments knows no .prompty, and a rule's example is often broken on purpose: it is shown as it is.
        (folder / name).write_text(re.sub(r"^(`{3,})\w+$", r"\1text", page, flags=re.M), "utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write("\n```{toctree}\n:hidden:\n:glob:\n\nZL*\n```\n")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", write_rules)
