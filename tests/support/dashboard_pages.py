"""What tests of the pages share: the addresses of the pages, and what a page has."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
from tests.support.dashboard_site import HOSTILE, Site, session_id_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

TOKEN = "a-token-of-20-letters"
SESSION = f"/session?session_id={session_id_of(0)}"
COMPARISON = "/compare?first_agent_version=2.3.1&second_agent_version=2.4.0"
VIEWS = (
    "/",
    "/sessions",
    SESSION,
    "/metrics",
    "/metric?metric=tool_trajectory_avg_score",
    "/not-scored",
    "/dead-letters",
    COMPARISON,
)

Open = Callable[..., httpx.AsyncClient]
"""Gives a browser without scripts, for a site."""


class Tags(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def commands(page: str) -> list[str]:
    """Returns the commands that a page shows."""
    return [unescape(each) for each in re.findall(r'<pre class="command"><code>(.*?)</code></pre>', page, re.DOTALL)]


def judged_site(tmp_path: Path, **changes: Any) -> Site:
    """Returns a site with three verdicts of one judge, one of another, and one score whose judge is not known."""
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    verdicts = [("openai/one", 1.0), ("openai/one", 1.0), ("openai/one", 0.0), (f"two{HOSTILE}", 0.0), (None, 1.0)]
    site.add(
        *[
            make_score(f"s{number}", "safety_v1", value, judge=judge, agent_version=str(number % 2), **changes)
            for number, (judge, value) in enumerate(verdicts)
        ]
    )
    return site
