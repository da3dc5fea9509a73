"""The documentation site: `python -m sphinx -W docs build/docs` builds it strictly."""

from importlib.metadata import version as installed_version

project = "zlclient"
author = "The zlclient authors"
copyright = "2026, The zlclient authors"  # noqa: A001 - the name Sphinx wants
version = release = installed_version("zlclient")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
html_theme = "alabaster"
exclude_patterns = ["_build"]
