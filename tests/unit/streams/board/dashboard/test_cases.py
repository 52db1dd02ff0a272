"""A session of the store becomes a case of an eval set, as `traceweir evalset add` makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import orjson
import pytest
from tests.support.dashboard_site import Site, session_id_of
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store

from traceweir.streams.lab.evals.capture import add_case, eval_case
from traceweir.streams.lab.evals.recordings import read_recordings

pytestmark = pytest.mark.slow

HTML, HERE = {"accept": "text/html"}, {"origin": "http://127.0.0.1:4180"}
SESSION = session_id_of(0)

Open = Callable[..., httpx.AsyncClient]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW, evalset=tmp_path / "cases.evalset.json")
    site.add_sessions(3)
    return site


@pytest.fixture
async def visit() -> AsyncIterator[Open]:
    async with AsyncExitStack() as stack:

        def connect(site: Site, **headers: str) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(site.application())
            client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180", headers=headers)
            stack.push_async_callback(client.aclose)
            return client

        yield connect


async def test_the_page_adds_the_case_that_the_command_adds_once(site: Site, visit: Open, tmp_path: Path) -> None:
    browser = visit(site, **HTML, **HERE)
    assert 'action="/session/case"' in (await browser.get("/session", params={"session_id": SESSION})).text

    answer = await browser.post("/session/case", data={"session_id": SESSION})
    again = await browser.post("/session/case", data={"session_id": SESSION})

    assert answer.status_code == again.status_code == 303
    assert "The case is in" in (await browser.get(answer.headers["location"])).text
    assert "has this case already" in (await browser.get(again.headers["location"])).text
    assert site.evalset is not None
    (row,) = site.store.query("SELECT document FROM sessions WHERE session_id = $id", {"id": SESSION})
    recorded = tmp_path / "sessions.jsonl"
    recorded.write_text(row["document"])
    expected = tmp_path / "expected" / "cases.evalset.json"
    expected.parent.mkdir()
    add_case(expected, eval_case(read_recordings([str(recorded)])[SESSION][0], SESSION), replace=False)
    assert site.evalset.read_bytes() == expected.read_bytes()


async def test_a_case_with_other_content_is_left_as_it_is(site: Site, visit: Open) -> None:
    browser = visit(site, **HTML, **HERE)
    await browser.post("/session/case", data={"session_id": SESSION})
    assert site.evalset is not None
    document = orjson.loads(site.evalset.read_bytes())
    document["eval_cases"][0]["conversation"] = document["eval_cases"][0]["conversation"][:1] * 3
    site.evalset.write_bytes(orjson.dumps(document))

    answer = await browser.post("/session/case", data={"session_id": SESSION})

    assert "has a case with this id and other content" in (await browser.get(answer.headers["location"])).text
    assert orjson.loads(site.evalset.read_bytes()) == document


async def test_the_api_adds_a_case_and_tells_what_became_of_it(site: Site, visit: Open) -> None:
    api = visit(site)
    found = [(await api.post("/api/case", data={"session_id": SESSION})).json() for _ in range(2)]
    assert [(each["eval_id"], each["outcome"]) for each in found] == [(SESSION, "added"), (SESSION, "unchanged")]


@pytest.mark.parametrize(
    ("session_id", "status", "said"),
    [("nobody", 404, "the store has no session 'nobody'"), ("", 422, "session_id: "), ("x" * 2_000, 422, "at most")],
)
async def test_what_is_no_session_is_told(session_id: str, status: int, said: str, site: Site, visit: Open) -> None:
    answer = await visit(site).post("/api/case", data={"session_id": session_id})
    assert answer.status_code == status
    assert said in answer.json()["detail"]


async def test_a_file_that_is_no_eval_set_is_told_and_left_as_it_is(site: Site, visit: Open) -> None:
    assert site.evalset is not None
    site.evalset.write_text('{"criteria": {}}')
    answer = await visit(site).post("/api/case", data={"session_id": SESSION})
    assert answer.status_code == 422
    assert str(site.evalset) in answer.json()["detail"]
    assert site.evalset.read_text() == '{"criteria": {}}'


async def test_a_session_without_its_record_is_no_case(site: Site, visit: Open) -> None:
    site.store.remove_old({"sessions": NOW.replace(year=NOW.year + 1)})
    answer = await visit(site).post("/api/case", data={"session_id": SESSION})
    assert (answer.status_code, "and not its whole record" in answer.json()["detail"]) == (422, True)


async def test_a_session_without_its_first_segment_is_no_case(site: Site, visit: Open) -> None:
    (row,) = site.store.query("SELECT document FROM sessions WHERE session_id = $id", {"id": SESSION})
    later = orjson.loads(row["document"]) | {"session_id": "long", "segment": 1}
    site.store.write(batch_of("sessions", FakeRecord(orjson.dumps(later), 100)))
    answer = await visit(site).post("/api/case", data={"session_id": "long"})
    assert answer.status_code == 422
    assert "not its whole record; `traceweir evalset add` reads the topic" in answer.json()["detail"]


@pytest.mark.parametrize("hidden", [True, False])
async def test_without_an_eval_set_or_with_hidden_content_nothing_is_written(
    hidden: bool, site: Site, visit: Open, tmp_path: Path
) -> None:
    site.content, site.evalset = ("none", site.evalset) if hidden else ("redacted", None)
    page = (await visit(site, **HTML).get("/session", params={"session_id": SESSION})).text
    assert 'action="/session/case"' not in page
    assert "traceweir evalset add" in page
    answer = await visit(site).post("/api/case", data={"session_id": SESSION})
    assert answer.status_code == 422
    assert "TRACEWEIR_DASHBOARD_EVALSET" in answer.json()["detail"]
    assert not (tmp_path / "cases.evalset.json").exists()


async def test_a_page_of_another_site_adds_nothing(site: Site, visit: Open) -> None:
    answer = await visit(site, origin="http://evil.example").post("/session/case", data={"session_id": SESSION})
    assert answer.status_code == 403
    assert site.evalset is not None
    assert not site.evalset.exists()
