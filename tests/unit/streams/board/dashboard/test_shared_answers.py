"""An answer is computed once for all who ask while the store is the same, and too much work is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from tests.support.dashboard_site import Site
from tests.support.scoring import NOW
from tests.support.stores import open_store

from traceweir.streams.board.dashboard import shared_answers
from traceweir.streams.board.dashboard.access import COOKIE, Tokens, cookie_value
from traceweir.streams.board.dashboard.application import create_application
from traceweir.streams.board.dashboard.context import Dashboard, DashboardOptions
from traceweir.streams.board.dashboard.feed import FeedState
from traceweir.streams.board.dashboard.live import Live
from traceweir.streams.board.dashboard.paced_state import PacedState
from traceweir.streams.board.dashboard.shared_answers import SharedAnswers
from traceweir.streams.board.dashboard.turns import AnswerTurns

Connect = Callable[[Any], httpx.AsyncClient]


class Work:
    """An application whose answers wait until they may be computed, but for changes, and that counts them."""

    def __init__(self, status: int = 200) -> None:
        self.computed: list[str] = []
        self.status = status
        self.may_end = asyncio.Event()
        self.begun = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "http.request"
        self.computed.append(scope["path"])
        self.begun.set()
        if scope["method"] == "GET":
            await self.may_end.wait()
        if self.error is not None:
            raise self.error
        body = f"{scope['path']} {len(self.computed)}".encode()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": body})


class Shown:
    """What the shared answers are told: the state of the store, and the time."""

    state = 0
    at_s = 0.0


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    clients = []

    def client(application: Any) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(application)
        clients.append(httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:4180"))
        return clients[-1]

    yield client
    for each in clients:
        await each.aclose()


def shared(work: Any, shown: Shown, turns: AnswerTurns | None = None) -> SharedAnswers:
    return SharedAnswers(work, lambda: shown.state, turns or AnswerTurns(), lambda: shown.at_s)


async def test_all_who_ask_for_one_state_share_one_computation(connect: Connect) -> None:
    work = Work()
    client = connect(shared(work, Shown()))
    asked = [asyncio.create_task(client.get("/")) for _ in range(50)]
    await work.begun.wait()
    work.may_end.set()

    assert {answer.text for answer in await asyncio.gather(*asked)} == {"/ 1"}
    assert (await client.get("/")).text == "/ 1"
    assert work.computed == ["/"]


async def test_another_state_address_or_time_is_computed_again(connect: Connect) -> None:
    work = Work()
    shown = Shown()
    work.may_end.set()
    client = connect(shared(work, shown))

    assert [(await client.get(path)).text for path in ("/", "/?span=7d", "/")] == ["/ 1", "/ 2", "/ 1"]
    shown.state = 1
    assert (await client.get("/")).text == "/ 3"
    shown.at_s = shared_answers.KEPT_S
    assert (await client.get("/")).text == "/ 3"
    shown.at_s = shared_answers.KEPT_S + 0.1
    assert (await client.get("/")).text == "/ 4"


async def test_an_address_is_computed_once_at_a_time_and_again_for_what_was_stored_meanwhile(connect: Connect) -> None:
    work = Work()
    shown = Shown()
    client = connect(shared(work, shown))
    early = asyncio.create_task(client.get("/"))
    await work.begun.wait()
    shown.state = 1
    late = asyncio.create_task(client.get("/"))
    await asyncio.sleep(0)
    work.may_end.set()

    assert {answer.text for answer in await asyncio.gather(early, late)} == {"/ 1"}
    assert (await client.get("/")).text == "/ 2"


async def test_an_answer_that_took_long_is_given_again_for_some_of_these_times(connect: Connect) -> None:
    work = Work()
    shown = Shown()
    client = connect(shared(work, shown))
    asked = asyncio.create_task(client.get("/"))
    await work.begun.wait()
    shown.at_s = 2.0
    work.may_end.set()
    await asked
    shown.state = 1

    shown.at_s = shared_answers.PAUSES * 2.0 - 0.1
    assert (await client.get("/")).text == "/ 1"
    shown.at_s += 0.1
    assert (await client.get("/")).text == "/ 2", "a computation of another state"


async def test_an_earlier_answer_is_given_while_a_new_one_takes_long(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_answers, "WAIT_S", 0)
    work = Work()
    shown = Shown()
    work.may_end.set()
    client = connect(shared(work, shown))
    await client.get("/")
    work.may_end.clear()
    shown.state = 1

    assert [(await client.get("/")).text for _ in range(3)] == ["/ 1"] * 3
    assert work.computed == ["/"] * 2
    shown.at_s = shared_answers.EARLIER_S + 0.1
    waiting = asyncio.create_task(client.get("/"))
    await asyncio.sleep(0)
    work.may_end.set()
    assert (await waiting).text == "/ 2"


async def test_a_new_answer_is_waited_for_before_an_earlier_one_is_given(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_answers, "WAIT_S", 60)
    work = Work()
    shown = Shown()
    work.may_end.set()
    client = connect(shared(work, shown))
    await client.get("/")
    shown.state = 1

    assert (await client.get("/")).text == "/ 2"


async def test_one_who_leaves_ends_nothing_for_the_others(connect: Connect) -> None:
    work = Work()
    client = connect(shared(work, Shown()))
    leaving = asyncio.create_task(client.get("/"))
    await work.begun.wait()
    staying = asyncio.create_task(client.get("/"))
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    work.may_end.set()

    assert ((await staying).text, work.computed) == ("/ 1", ["/"])


async def test_problems_and_other_pages_are_not_kept(connect: Connect) -> None:
    for work, path in ((Work(503), "/"), (Work(), "/session?session_id=a")):
        work.may_end.set()
        client = connect(shared(work, Shown()))
        await client.get(path)
        await client.get(path)
        assert len(work.computed) == 2


async def test_an_error_reaches_all_who_wait_and_the_next_one_tries_again(connect: Connect) -> None:
    work = Work()
    work.error = RuntimeError("broken")
    client = connect(shared(work, Shown()))
    asked = [asyncio.create_task(client.get("/")) for _ in range(3)]
    await work.begun.wait()
    work.may_end.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    work.error = None

    assert [str(each) for each in found] == ["broken"] * 3
    assert (await client.get("/")).text == "/ 2"


async def test_a_change_by_a_request_ends_what_is_kept(connect: Connect) -> None:
    work = Work()
    work.may_end.set()
    client = connect(shared(work, Shown()))
    await client.get("/")
    await client.post("/session/case")

    assert (await client.get("/")).text == "/ 3"


async def test_an_answer_that_was_begun_before_a_change_is_not_given_after_it(connect: Connect) -> None:
    work = Work()
    client = connect(shared(work, Shown()))
    early = asyncio.create_task(client.get("/"))
    await work.begun.wait()
    await client.post("/views")
    work.may_end.set()

    await client.get("/")
    await early
    await client.get("/")
    assert work.computed == ["/", "/views", "/"]


LABELS = ("/api/labels", "/api/v1/labels", "/api/feedback", "/api/v1/feedback")


@pytest.mark.parametrize("path", LABELS)
async def test_a_label_changes_no_answer_that_is_kept(path: str, connect: Connect) -> None:
    work = Work()
    work.may_end.set()
    client = connect(shared(work, Shown()))
    await client.get("/")
    await client.post(path)

    assert (await client.get("/")).text == "/ 1"


async def test_labels_that_wait_for_kafka_take_no_turn_of_a_page_and_are_few(connect: Connect) -> None:
    work = Work()
    waiting = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            await waiting.wait()
        await work(scope, receive, send)

    work.may_end.set()
    client = connect(SharedAnswers(slow, lambda: 0, AnswerTurns(at_once=1, most=0), taking=AnswerTurns(1, 1)))
    sent = [asyncio.create_task(client.post(path)) for path in LABELS[:2]]
    await asyncio.sleep(0)
    page = await asyncio.wait_for(client.get("/"), 10)
    refused = await client.post(LABELS[2])
    waiting.set()

    assert page.status_code == 200
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert [answer.status_code for answer in await asyncio.gather(*sent)] == [200, 200]


class Echo:
    """An application whose answer contains what it is told of who asks."""

    size = 0

    def __init__(self) -> None:
        self.computed = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.computed += 1
        body = f"{scope['headers']} {scope['client']}".encode().ljust(self.size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("path", sorted(shared_answers.SHARED))
async def test_a_shared_answer_is_computed_without_what_tells_who_asks(path: str, connect: Connect) -> None:
    client = connect(shared(Echo(), Shown()))
    asker = {
        "authorization": "Bearer a-token-of-one",
        "cookie": "traceweir_dashboard=of-one",
        "accept-language": "ko",
        "accept": "text/html",
        "host": "one.example",
        "x-forwarded-for": "192.0.2.1",
    }

    answer = await client.get(path, headers=asker)

    assert answer.text == "[(b'accept-encoding', b'gzip')] None"


async def test_kept_answers_are_few_and_small_together(connect: Connect) -> None:
    work = Echo()
    client = connect(shared(work, Shown()))

    async def is_kept(path: str) -> bool:
        before = work.computed
        await client.get(path)
        return work.computed == before

    for number in range(shared_answers.MAX_KEPT + 1):
        await client.get(f"/?n={number}")
    assert await is_kept(f"/?n={shared_answers.MAX_KEPT}")
    assert await is_kept("/?n=1")
    assert not await is_kept("/?n=0")
    work.size = shared_answers.MAX_KEPT_BYTES - 10
    fitting = shared_answers.MAX_TOGETHER_BYTES // work.size
    for number in range(fitting + 1):
        await client.get(f"/metrics?n={number}")
    assert not await is_kept("/metrics?n=0")
    assert await is_kept(f"/metrics?n={fitting}")
    work.size = shared_answers.MAX_KEPT_BYTES
    assert [await is_kept("/compare?n=1") for _ in range(2)] == [False, False]


@pytest.mark.parametrize("path", ["/api/v1/overview?metric=c", "/api/v1/session?session_id=c", "/sessions"])
async def test_a_request_without_room_is_told_when_to_try_again(path: str, connect: Connect) -> None:
    work = Work()
    client = connect(shared(work, Shown(), AnswerTurns(at_once=1, most=1)))
    asked = [asyncio.create_task(client.get(f"/api/v1/overview?metric={name}")) for name in "ab"]
    await work.begun.wait()
    refused = await client.get(path)
    work.may_end.set()
    free = await client.get("/api/v1/state")
    await asyncio.gather(*asked)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert "1 answers wait to be computed, which is the most: try again later" in refused.text
    assert free.status_code == 200
    assert (await client.get(path)).status_code == 200


class CountedStore:
    """A store that counts its questions."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.questions = 0

    def query(self, sql: str, parameters: Any = None) -> Any:
        self.questions += 1
        return self.store.query(sql, parameters)


@pytest.mark.slow
async def test_the_store_is_asked_once_for_all_viewers_of_a_page(
    connect: Connect, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow this machine is.
    monkeypatch.setattr(shared_answers, "WAIT_S", 60)
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    site.add_sessions(10)
    store = CountedStore(site.store)
    options = DashboardOptions(lambda: site.state, "full", lambda: NOW)
    dashboard = Dashboard(store, options, Live())
    client = connect(create_application(dashboard, Tokens(), lambda: site.state.stored_rows, lambda: 0.0))
    first = await client.get("/")
    of_one = store.questions
    found = await asyncio.gather(*(client.get("/") for _ in range(20)))

    assert of_one > 5
    assert {each.text for each in found} == {first.text}
    assert store.questions == of_one
    site.add_sessions(11)
    assert (await client.get("/")).text != first.text


@pytest.mark.slow
async def test_an_answer_that_is_kept_is_given_to_nobody_who_may_not_read_it(
    connect: Connect, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = Site(open_store(tmp_path_factory.mktemp("store") / "store.duckdb"), now=NOW)
    site.add_sessions(10)
    options = DashboardOptions(lambda: site.state, "full", lambda: NOW)
    tokens = Tokens(read="a-token-for-read", label="a-token-for-label")
    client = connect(create_application(Dashboard(site.store, options, Live()), tokens, lambda: 0, lambda: 0.0))

    async def asked(path: str, **headers: str) -> tuple[int, str]:
        answer = await client.get(path, headers=headers)
        assert "set-cookie" not in answer.headers
        return answer.status_code, answer.text

    for path in ("/", "/api/v1/overview", "/api/overview"):
        of_one = await asked(path, authorization="Bearer a-token-for-read")
        assert of_one[0] == 200
        assert await asked(path, authorization="Bearer a-token-for-label") == of_one
        cookie = f"{COOKIE}={cookie_value('a-token-for-read')}"
        assert await asked(path, cookie=cookie, **{"accept-language": "ko"}) == of_one
        for headers in ({}, {"authorization": "Bearer x"}, {"accept": "text/html"}, {"cookie": f"{COOKIE}=x"}):
            status, text = await asked(path, **headers)
            assert (status, "rail-agent" in text) == (401, False)


async def test_rows_are_told_of_at_once_then_together_and_never_late_by_a_state() -> None:
    told: list[int] = []
    last = asyncio.Event()
    state = FeedState()

    def note() -> None:
        told.append(paced.state().stored_rows)
        if told[-1] == 5:
            last.set()

    paced = PacedState(lambda: state, note, every_s=0.01)
    for rows in range(1, 6):
        state.stored_rows = rows
        paced.changed()

    assert (told, paced.state().stored_rows) == ([1], 1)
    await asyncio.wait_for(last.wait(), 10)
    assert told == [1, 5]


async def test_a_problem_is_shown_before_the_next_rows() -> None:
    state = FeedState()
    paced = PacedState(lambda: state, lambda: None, every_s=1_000)
    paced.changed()
    before = paced.key()
    state.problem = "no broker answers"

    assert paced.state().problem == "no broker answers"
    assert paced.key() != before


async def test_questions_about_the_store_are_noted_and_those_about_the_health_are_not(connect: Connect) -> None:
    noted = 0

    def note() -> None:
        nonlocal noted
        noted += 1

    work = Work()
    work.may_end.set()
    client = connect(SharedAnswers(work, lambda: 0, AnswerTurns(), asked=note))
    for path in ("/healthz", "/api/v1/state", "/api/v1/prometheus", "/login"):
        await client.get(path)
    assert noted == 0

    # The second answer is one that was kept.
    for path in ("/", "/", "/sessions"):
        await client.get(path)
    assert noted == 3
