"""A view is a name for an address, kept in a file for everyone who opens the dashboard."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import httpx
import pytest
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard import saved_views
from traceweir.streams.board.dashboard.saved_views import SavedView, SavedViews, ViewError

pytestmark = pytest.mark.slow

HEADERS = {"accept": "text/html", "origin": "http://127.0.0.1:4180"}


def visit(site: Site) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(site.application())
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=HEADERS)


async def test_a_page_is_saved_under_a_name_opened_by_it_and_removed(tmp_path: Path) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, views=tmp_path / "new" / "views.json")
    address = "/sessions?metric=safety_v1&status=FAILED&text=a%20%26b"
    async with visit(site) as client:
        saved = await client.post("/views", data={"name": "  unsafe\n answers ", "address": address})
        page = (await client.get("/metrics")).text
        removed = await client.post("/views/remove", data={"name": "unsafe answers", "address": "/metrics"})
        after = (await client.get("/metrics")).text

    assert (saved.status_code, saved.headers["location"]) == (303, address)
    assert f'<a href="{address}"><bdi>unsafe answers</bdi></a>' in unescape(page)
    assert removed.headers["location"] == "/metrics"
    assert "unsafe answers" not in after


async def test_the_name_of_a_view_is_inert(tmp_path: Path) -> None:
    views = SavedViews(tmp_path / "views.json")
    views.save(HOSTILE.replace(chr(0x202E), "")[:100], "/")
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, views=tmp_path / "views.json")
    async with visit(site) as client:
        page = (await client.get("/")).text

    assert "&lt;script&gt;" in page
    assert "<script>document" not in page


@pytest.mark.parametrize(
    "address",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "sessions", "/a\nb", "/" + "x" * 5_000, ""],
)
async def test_an_address_of_another_site_is_not_saved(address: str, tmp_path: Path) -> None:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, views=tmp_path / "views.json")
    async with visit(site) as client:
        answer = await client.post("/views", data={"name": "x", "address": address})

    assert answer.status_code == 422
    assert not (tmp_path / "views.json").exists()


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\u202eb", "a\x1b[0m"])
def test_a_name_that_cannot_be_read_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ViewError, match="1 to 100 characters"):
        SavedViews(tmp_path / "views.json").save(name, "/")


def test_a_view_with_the_name_of_another_replaces_it(tmp_path: Path) -> None:
    views = SavedViews(tmp_path / "views.json")
    for address in ("/sessions", "/metrics"):
        views.save("mine", address)
    views.save("A", "/compare")

    assert views.present() == [SavedView(name="A", address="/compare"), SavedView(name="mine", address="/metrics")]


def test_there_is_a_largest_number_of_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_views, "MAX_VIEWS", 1)
    views = SavedViews(tmp_path / "views.json")
    views.save("one", "/")

    views.save("one", "/metrics")
    with pytest.raises(ViewError, match="remove one"):
        views.save("two", "/")


async def test_a_file_of_something_else_is_left_as_it_is_and_named(tmp_path: Path) -> None:
    file = tmp_path / "views.json"
    file.write_text('{"criteria": {}}')
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, views=file)
    async with visit(site) as client:
        page = await client.get("/")
        saved = await client.post("/views", data={"name": "x", "address": "/"})

    assert (page.status_code, saved.status_code) == (200, 422)
    assert "is no file of saved views" in page.text
    assert file.read_text() == '{"criteria": {}}'


async def test_a_forged_view_of_another_site_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "views.json"
    file.write_text('[{"name": "bad", "address": "https://evil.example/"}]')

    assert SavedViews(file).present() == []
