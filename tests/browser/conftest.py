"""Starts Chromium once, and serves a dashboard with invented scores."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.alerts import make_alert, resolved, send_alerts
from tests.support.dashboard_site import HOSTILE, Site, served, session_id_of
from tests.support.eval_runs import write_evals
from tests.support.results import make_score
from tests.support.stores import open_store, send_labels

from traceweir.schemas.labels import Label, LabelSubject
from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.streams.board.dashboard.retention import Retention
from traceweir.streams.worker.config_topic import TopicState

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP dashboard.example 127.0.0.1",
    "--no-sandbox",  # root, as in a container, cannot start Chromium's sandbox
)
SESSIONS = 300
DIGEST = "0123456789abcdef" * 4
"""A digest as long as each is."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Yields a headless Chromium of the system."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: run `make test-browser`")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("needs Chromium: run `apt-get install chromium`")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """Yields a page of a fresh profile; an error of a script fails the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
    yield page
    context.close()
    assert not errors


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A dashboard with the scores of an agent."""
    folder = tmp_path_factory.mktemp("store")
    site = Site(
        open_store(folder / "store.duckdb"),
        content="full",
        views=folder / "views.json",
        evals=folder / "evals",
        retention=Retention(timedelta(hours=12), timedelta(days=90), timedelta(days=400)),
    )
    site.configs = TopicState()
    for number, threshold in ((1, 0.5), (2, 0.8)):
        site.configs.versions["*"][number] = PushedConfig(
            envelope=ENVELOPE,
            selector="*",
            version=number,
            digest=DIGEST,
            pushed_at=site.now,
            pushed_by="kim",
            config={"criteria": {"response_match_score": threshold}},
            comment="stricter",
        )
    site.add_sessions(SESSIONS)
    alerts = [
        make_alert(
            "tool_trajectory_avg_score",
            "invocation",
            by={"app_name": "rail", "labels.tenant": None, "user_id": HOSTILE},
            sessions=tuple(map(session_id_of, range(10))),
        ),
        resolved(make_alert("hallucinations_v1", "invocation", by={"environment": HOSTILE}, hours=5)),
    ]
    send_alerts(site.store, *alerts)
    send_labels(site.store, *_feedback(site))
    write_evals(folder / "evals")
    return site


def _feedback(site: Site) -> Iterator[Label]:
    """Yields what users say of some sessions, with a hostile note."""
    for number in range(10):
        about = LabelSubject(session_id=session_id_of(number), level="session")
        yield Label(
            label_id=f"thumb-{number}",
            subject=about,
            criterion="thumbs",
            verdict="pass" if number % 3 else "fail",
            annotator=HOSTILE,
            note=HOSTILE,
            kind="user",
            occurred_at=site.now,
        )


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Yields the address of the dashboard."""
    with served(site) as address:
        yield address


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[tuple[Site, str]]:
    """Yields a dashboard with one score, that a test can change, and its address."""
    site = Site(open_store(tmp_path / "store.duckdb"), content="full")
    site.add(make_score("first"))
    site.now += timedelta(minutes=1)
    with served(site) as address:
        yield site, address
