"""The dashboard names the challengers in effect, and compares each with the champion on the same sessions."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.dashboard_site import HOSTILE, SECRET, Site
from tests.support.results import make_score
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.schemas.pushed_config import ENVELOPE, PushedConfig
from traceweir.schemas.score import Score
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard import challengers
from traceweir.streams.board.dashboard.challengers import ChallengerInEffect, challengers_of
from traceweir.streams.board.dashboard.result_diff import NoDiffError
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState

pytestmark = pytest.mark.slow

CONFIG: dict[str, Any] = {"criteria": {"response_match_score": 0.8}}
CHAMPION: dict[str, Any] = {
    "criteria": {"response_match_score": 0.5},
    "challenger": {"name": "v2", "sample": 0.1, "budget": 5, "config": CONFIG},
}


def pushed(config: dict[str, Any] | None, selector: str = "*") -> PushedConfig:
    return PushedConfig(envelope=ENVELOPE, selector=selector, version=1, digest="d", config=config, pushed_at=NOW)


class Fake:
    """A challenger with scores that a test gives."""

    def __init__(self, scores: Sequence[Score] = (), problem: str | None = None) -> None:
        self._scores, self._problem = scores, problem
        self.in_effect: Sequence[ChallengerInEffect] = challengers_of([pushed(CHAMPION, "travel")])
        self.shadows: Sequence[str] = ("judge-b",)

    def scores(self, name: str) -> Sequence[Score]:
        assert name in {"v2", "judge-b"}
        if self._problem is not None:
            raise NoDiffError(self._problem)
        return self._scores


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(open_store(tmp_path / "store.duckdb"), now=NOW + timedelta(minutes=1))
    site.add(*(make_score(f"s{n}", value=0.9, rationale=f"before {SECRET}") for n in range(6)))
    site.challengers = Fake([make_score(f"s{n}", value=0.1, rationale=HOSTILE, result_id=f"{n}") for n in range(3)])
    return site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:4180", headers={"accept": "text/html"}
    ) as found:
        yield found


def test_the_challengers_of_usable_configs_are_in_effect() -> None:
    (found,) = challengers_of(
        [pushed(CHAMPION, "travel"), pushed(CONFIG), pushed(None), pushed(CHAMPION | {"criteria": {"unknown": 1}})]
    )
    assert (found.name, found.sample, found.budget_usd, found.sessions) == ("v2", 0.1, 5.0, "app travel")
    assert (found.config_digest, found.champion_digest) == (read_plan(CONFIG).digest, read_plan(CHAMPION).digest)


@pytest.mark.parametrize(
    ("selector", "name", "words"),
    [
        ("*", "v2", ["v2"]),
        ("travel@production", "v2", ["--app=travel", "--environment=production", "v2"]),
        ("*@a%27b%20%24%28c%29", "-v", ["--environment=a'b $(c)", "--", "-v"]),
    ],
)
def test_the_command_that_promotes_a_challenger_names_its_config(selector: str, name: str, words: list[str]) -> None:
    config = {**CHAMPION, "challenger": {**CHAMPION["challenger"], "name": name}}
    (found,) = challengers_of([pushed(config, selector)])

    assert found.promote_command is not None
    assert shlex.split(found.promote_command) == ["traceweir", "config", "promote", *words]


async def test_an_unexpected_error_is_said_once_and_the_next_look_finds_challengers_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = TopicState(current={"travel": pushed(CHAMPION, "travel")})
    refused = ConfigTopicError("this user lacks the right Read")
    answers: list[TopicState | Exception] = [state, ValueError("a"), ValueError("a"), refused, state]
    seen: list[int] = []

    async def read(settings: Settings) -> TopicState:
        seen.append(len(looked.in_effect))
        if not answers:
            raise asyncio.CancelledError
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(challengers, "read_topic", read)
    shadows = {f"traceweir.results.shadow.{name}" for name in ("v2", "judge-b", "of.another.program")}
    topics = {"traceweir.results", "traceweir.configs", *shadows}
    monkeypatch.setattr(challengers, "existing_topics", lambda settings: topics)
    monkeypatch.setattr(challengers, "FIRST_LOOK_AFTER_S", 0)
    monkeypatch.setattr(challengers, "LOOK_EVERY_S", 0)
    looked = challengers.PushedChallengers(Settings())
    with pytest.raises(asyncio.CancelledError):
        await looked.run()
    assert seen == [0, 1, 0, 0, 0, 1]
    assert looked.shadows == ["judge-b"]
    assert [record.args for record in caplog.records] == [("ValueError('a')",), ("this user lacks the right Read",)]


async def test_without_a_topic_of_configs_shadows_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challengers, "existing_topics", lambda settings: {"traceweir.results.shadow.v2"})
    looked = challengers.PushedChallengers(Settings())
    await looked.look()
    assert (looked.in_effect, looked.shadows) == ([], ["v2"])


@pytest.mark.parametrize("page", ["/", "/compare"])
async def test_pages_name_a_challenger_and_link_to_its_comparison(page: str, client: httpx.AsyncClient) -> None:
    text = (await client.get(page)).text
    assert '<a href="/challenger?name=v2">' in text
    assert "app travel" in text


async def test_a_shadow_has_a_page_and_its_differences_too(client: httpx.AsyncClient) -> None:
    assert '<a href="/challenger?name=judge-b">' in (await client.get("/compare")).text
    text = (await client.get("/challenger?name=judge-b")).text
    assert ("Shadow <b><bdi>judge-b" in text, "0.900 PASSED to 0.100 FAILED" in text) == (True, True)
    assert "config promote" not in text
    assert (await client.get("/api/shadows")).json() == [{"name": "judge-b"}]
    found = (await client.get("/api/challenger-diff?name=judge-b")).json()
    assert (found["challenger"]["name"], found["challenger"]["sessions"]) == ("judge-b", 3)


async def test_the_page_of_a_challenger_shows_both_on_the_same_sessions(client: httpx.AsyncClient) -> None:
    text = (await client.get("/challenger?name=v2")).text
    assert "0.900 PASSED to 0.100 FAILED" in text
    assert "traceweir config promote --app=travel v2" in text
    assert (SECRET in text, "<script>document" in text) == (False, False)


async def test_the_api_has_the_challengers_and_their_differences(client: httpx.AsyncClient) -> None:
    (listed,) = (await client.get("/api/challengers")).json()
    assert (listed["name"], listed["sample"]) == ("v2", 0.1)
    found = (await client.get("/api/challenger-diff?name=v2")).json()
    assert (found["base"]["name"], found["challenger"]["name"]) == ("results", "v2")
    assert (found["base"]["sessions"], found["challenger"]["sessions"]) == (3, 3)
    (metric,) = found["metrics"]
    assert (metric["pairing"], metric["pairs"], metric["verdicts"]["to_failed"]) == ("paired", 3, 3)


async def test_a_challenger_that_is_not_in_effect_is_not_found(client: httpx.AsyncClient) -> None:
    for page in ("/challenger?name=v3", "/api/challenger-diff?name=v3"):
        answer = await client.get(page)
        assert (answer.status_code, "no challenger" in answer.text) == (404, True)


async def test_scores_that_cannot_be_compared_say_why(site: Site) -> None:
    site.challengers = Fake(problem="topic 'traceweir.results.shadow.v2' does not exist")
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
        assert "does not exist" in (await client.get("/challenger?name=v2")).text
        assert (await client.get("/api/challenger-diff?name=v2")).status_code == 422
        site.challengers = Fake()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(site.application()), base_url="http://127.0.0.1:4180"
    ) as client:
        assert "has no results" in (await client.get("/challenger?name=v2")).text


async def test_without_a_challenger_pages_are_as_before(site: Site) -> None:
    site.challengers = Site(site.store).challengers
    transport = httpx.ASGITransport(site.application())
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180") as client:
        assert "hallenger" not in (await client.get("/")).text
        assert (await client.get("/api/challengers")).json() == []
