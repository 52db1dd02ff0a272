"""Pages say who pushed a config, when, and what it changed against the version before."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.dashboard_site import HOSTILE, Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.board.dashboard.page.diff import MAX_WORDS
from traceweir.streams.scoring.configs.changes import changed_options
from traceweir.streams.scoring.configs.records import records_of
from traceweir.streams.worker.config_topic import TopicState

pytestmark = pytest.mark.slow

OLD: dict[str, Any] = {"criteria": {"response_match_score": 0.5}}
NEW: dict[str, Any] = {"criteria": {"response_match_score": 0.8}}


def version(number: int, digest: str | None, config: dict[str, Any] | None, **fields: Any) -> PushedConfig:
    at = NOW - timedelta(minutes=60 - number)
    known: dict[str, Any] = {"selector": "travel", "pushed_by": f"user-{number}", "pushed_at": at} | fields
    return PushedConfig(envelope=ENVELOPE, version=number, digest=digest, config=config, **known)


def topic(*pushed: PushedConfig) -> TopicState:
    state = TopicState()
    for each in pushed:
        if each.version == 0 and each.digest is not None:
            state.by_digest[each.digest] = each
            continue
        for offset, (key, value) in enumerate(records_of(each)):
            state.take(0, offset, key, value)
    return state


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    for number, digest in enumerate(("old-digest", "new-digest")):
        at = NOW - timedelta(minutes=30 - 15 * number)
        value = 0.9 - 0.8 * number
        site.add(*(_score(f"s{number}-{n}", digest, at, value) for n in range(30)))
    site.configs = topic(version(1, "old-digest", OLD), version(2, "new-digest", NEW, comment="stricter"))
    return site


def _score(name: str, digest: str, at: Any, value: float) -> Any:
    verdict: dict[str, Any] = {"value": value, "threshold": 0.5, "status": "PASSED" if value >= 0.5 else "FAILED"}
    times = {"occurred_at": at, "evaluated_at": at, "started_at": at}
    subject: dict[str, Any] = {"level": "session", "invocation_id": None, "result_id": name}
    return make_score(name, config_digest=digest, **verdict, **times, **subject)


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:4180", headers={"accept": "text/html"}
    ) as found:
        yield found


async def test_the_mark_of_a_config_and_what_got_worse_name_who_pushed_it(client: httpx.AsyncClient) -> None:
    page = (await client.get("/")).text

    (chart,) = [json.loads(unescape(each)) for each in re.findall(r'data-chart="([^"]*lines[^"]*)"', page)]
    assert [each["label"] for each in chart["marks"]] == ["config old-dige by user-1", "config new-dige by user-2"]
    worse = page[page.index("What got worse") : page.index('class="kpis"')]
    assert '<a href="/config?digest=new-digest">' in worse
    assert "pushed by <bdi>user-2</bdi>" in worse


async def test_the_page_of_a_config_has_its_pushes_and_what_each_changed(client: httpx.AsyncClient) -> None:
    page = (await client.get("/config?digest=new-digest")).text

    assert re.search(r"Version 2 for <bdi>app travel</bdi>.*Against version 1 of <bdi>user-1</bdi>", page, re.DOTALL)
    assert ("<b><bdi>user-2</bdi></b>" in page, "stricter" in page) == (True, True)
    assert "criteria.response_match_score</bdi></dt>" in page
    assert "0.<del>5</del><ins>8</ins>" in page
    assert "its statuses are by another threshold" in page
    assert "The first version for these sessions" in (await client.get("/config?digest=old-digest")).text


async def test_a_config_that_was_pushed_again_has_each_push(site: Site, client: httpx.AsyncClient) -> None:
    site.configs = topic(version(1, "old", OLD), version(2, "new", NEW), version(3, "old", OLD))
    page = (await client.get("/config?digest=old")).text
    assert re.findall(r"<h2>Version (\d)", page) == ["1", "3"]
    assert "Against version 2" in page


async def test_a_document_with_another_digest_of_another_traceweir_is_the_same_push(
    site: Site, client: httpx.AsyncClient
) -> None:
    by_worker = version(0, "of-a-newer-worker", NEW, selector="*", pushed_by=None)
    site.configs = topic(version(1, "new-digest", NEW), by_worker)
    assert "<b><bdi>user-1</bdi></b>" in (await client.get("/config?digest=of-a-newer-worker")).text


@pytest.mark.parametrize(
    ("config", "sentence"), [(OLD, "the config file of a worker"), (None, "These are the default criteria")]
)
async def test_a_config_that_nobody_pushed_is_said(
    config: dict[str, Any] | None, sentence: str, site: Site, client: httpx.AsyncClient
) -> None:
    site.configs = topic(version(0, "filed", config, selector="*", pushed_by=None))
    assert sentence in (await client.get("/config?digest=filed")).text
    assert "has no config with this digest" in (await client.get("/config?digest=unknown")).text


async def test_the_config_of_a_challenger_names_the_version_that_has_it(site: Site, client: httpx.AsyncClient) -> None:
    challenged = OLD | {"challenger": {"name": "v2", "sample": 0.1, "budget": 5, "config": NEW}}
    site.configs = topic(version(1, "champion", challenged))
    page = (await client.get(f"/config?digest={read_plan(NEW).digest}")).text
    assert re.search(r"A part of version 1 .*pushed by <bdi>user-1</bdi>.*challenger v2", page, re.DOTALL)


async def test_hostile_configs_are_text(site: Site, client: httpx.AsyncClient) -> None:
    hostile = {HOSTILE: HOSTILE, "big": 10**400, "deep": [[HOSTILE]]}
    site.configs = topic(
        version(1, "old-digest", OLD, pushed_by=HOSTILE),
        version(2, "new-digest", hostile, pushed_by=HOSTILE, comment=HOSTILE, traceweir=HOSTILE, selector="travel"),
    )
    for address in ("/", "/config?digest=new-digest", "/config?digest=" + "%3Cscript%3E"):
        answer = await client.get(address)
        page = unescape(answer.text)
        assert answer.status_code == 200
        assert "<img" not in answer.text
        assert answer.text.count("<script") == 4
        assert chr(0x202E) not in page


async def test_a_change_after_the_words_that_are_compared_is_said(site: Site, client: httpx.AsyncClient) -> None:
    long = "word " * (MAX_WORDS + 1)
    site.configs = topic(version(1, "a", {"rules": long + "a"}), version(2, "b", {"rules": long + "b"}))
    assert f"the first {MAX_WORDS} words are compared" in (await client.get("/config?digest=b")).text


def test_a_long_value_that_differs_at_its_end_differs() -> None:
    (line,) = changed_options({"rules": "x" * 300 + "a"}, {"rules": "x" * 300 + "b"})
    assert line.endswith("another end")


async def test_a_first_version_is_compared_with_the_config_file_that_counted_before(
    site: Site, client: httpx.AsyncClient
) -> None:
    challenged = OLD | {
        "challenger": {"name": "v2", "sample": 0.1, "budget": 5, "config": {"criteria": {"response_match_score": 0.1}}}
    }
    before = NOW - timedelta(hours=2)
    by_worker: dict[str, Any] = {"selector": "*", "pushed_by": None, "pushed_at": before}
    site.configs = topic(
        version(0, "filed", challenged, **by_worker),
        version(
            0, "part", challenged["challenger"]["config"], **by_worker | {"pushed_at": before + timedelta(minutes=1)}
        ),
        version(0, "later", {"criteria": {}}, **by_worker | {"pushed_at": NOW}),
        version(1, "new-digest", NEW),
    )

    page = (await client.get("/config?digest=new-digest")).text

    assert "The first version for these sessions, against the config file of a worker, recorded" in page
    assert "0.<del>5</del><ins>8</ins>" in page
    assert "its statuses are by another threshold" in page


async def test_a_first_version_after_one_of_more_sessions_is_not_compared_with_a_file(
    site: Site, client: httpx.AsyncClient
) -> None:
    filed = version(0, "filed", OLD, selector="*", pushed_by=None, pushed_at=NOW - timedelta(hours=2))
    site.configs = topic(filed, version(1, "of-all", OLD, selector="*"), version(2, "new-digest", NEW))

    assert "The first version for these sessions</h3>" in (await client.get("/config?digest=new-digest")).text
