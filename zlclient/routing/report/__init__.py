"""The report on a rollout: the same facts as JSON and as one HTML file that needs nothing else.

found = summarise(rollout, store, now)
render_html(found)      # under 150 KB, no script, no external request, light and dark
as_json(found)
"""

from __future__ import annotations

from .page import render_html
from .summary import Summary, as_json, summarise

__all__ = ["Summary", "as_json", "render_html", "summarise"]
