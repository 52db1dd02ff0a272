"""The list of sessions finds and pages through all of them, as the API does."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.support.dashboard_pages import Open
from tests.support.dashboard_site import SECRET, Site, session_id_of
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard.content import Content

pytestmark = pytest.mark.slow


async def test_a_search_finds_only_what_the_page_may_show(site: Site, visit: Open) -> None:
    async def found(content: Content, text: str) -> int:
        page = (await visit(replace(site, content=content)).get("/sessions", params={"text": text, "span": "30d"})).text
        return page.count('href="/session?')

    assert await found("full", SECRET.upper()) == 50
    assert await found("redacted", SECRET) == 0
    assert await found("redacted", "busan") == 50
    assert await found("none", "busan") == 0
    assert await found("redacted", session_id_of(3)) == await found("none", session_id_of(3)) == 1


async def test_sessions_are_found_by_the_range_of_a_metric(site: Site, visit: Open) -> None:
    query = {"metric": "trace_value", "least": "0.2", "most": "0.4", "span": "7d"}
    page = (await visit(site).get("/sessions", params=query)).text
    values = [float(each) for each in re.findall(r"trace value (0\.\d+)<", page)]

    assert values
    assert all(0.2 <= each <= 0.4 for each in values)


@pytest.mark.parametrize("query", ["", "&status=FAILED", "&text=busan"])
async def test_the_link_to_older_sessions_reaches_every_session_once(query: str, site: Site, visit: Open) -> None:
    client, found, link = visit(site), [], f"/sessions?span=7d&agent_name=rail-agent{query}"
    for _ in range(9):
        page = (await client.get(link)).text
        found += re.findall(r'<a class="mono" href="/session\?[^"]*session_id=([^"&]*)"', page)
        older = re.search(r'rel="next" href="([^"]*)"', page)
        if older is None:
            break
        link = older[1].replace("&amp;", "&")
        assert "agent_name=rail-agent" in link

    assert len(found) == len(set(found))
    if "FAILED" not in query:
        assert found == [session_id_of(number) for number in range(60)]


async def test_the_api_links_older_sessions_with_the_same_parameters(site: Site, visit: Open) -> None:
    client, found, link = visit(site), [], "/api/sessions?limit=25&agent_name=rail-agent&since=2026-01-01T00:00:00Z"
    for _ in range(9):
        answer = await client.get(link)
        found += [each["session_id"] for each in answer.json()]
        if "link" not in answer.headers:
            break
        link = answer.links["next"]["url"]
        assert "limit=25&agent_name=rail-agent&since=" in link

    assert found == [session_id_of(number) for number in range(60)]


async def test_a_session_id_with_any_characters_is_a_place_in_the_list(
    tmp_path_factory: pytest.TempPathFactory, visit: Open
) -> None:
    names = [f" {at} &,\u20ac\x01'>; rel=prev" + "x" * 990 for at in range(3)]
    site = Site(open_store(tmp_path_factory.mktemp("names") / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(each, value=0.1) for each in names))
    client, found, link = visit(site), [], "/api/sessions?limit=1&status=FAILED"
    for _ in range(4):
        answer = await client.get(link)
        found += [each["session_id"] for each in answer.json()]
        if "link" not in answer.headers:
            break
        link = answer.links["next"]["url"]
        assert (await client.get(link.replace("/api/sessions?limit=1&", "/sessions?"))).status_code == 200

    assert found == names
