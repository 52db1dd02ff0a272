"""What every test of a page needs: a browser, and a site with sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta

import httpx
import pytest
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

from traceweir.schemas.dead_letter import DeadLetter


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site with 60 sessions and a dead letter, for tests that write nothing."""
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    site.add_sessions(60)
    letter = DeadLetter("not_json", HOSTILE, "assemble", "traceweir.traces", 1, 7, None, b"{")
    site.store.write(batch_of("dead-letters", FakeRecord(b"{", headers=letter.wire_headers())))
    # A time range does not contain its end.
    site.now += timedelta(minutes=1)
    return site


@pytest.fixture
async def visit() -> AsyncIterator[Open]:
    """Returns a function that gives a browser without scripts, for a site."""
    async with AsyncExitStack() as stack:

        def connect(site: Site, **headers: str) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(site.application())
            headers = {"accept": "text/html"} | headers
            client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=headers)
            stack.push_async_callback(client.aclose)
            return client

        yield connect
