"""Tests a judge that no connection reaches, and the warning about a judge that does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from tests.support.judge_errors import error_message
from tests.support.judged import KEY, Pauses, judging, question
from tests.support.openai_server import busy, openai_server, refusing_address

from traceweir.schemas.judge_config import Retries
from traceweir.streams.scoring.judges.client import Access

pytestmark = [
    pytest.mark.xdist_group("litellm"),
    pytest.mark.slow,
]  # loading litellm takes seconds, so one process runs these tests

FEW = Retries(attempts=3, initial_s=1.0, jitter_s=0.0)


@pytest.fixture
def refusing() -> Iterator[str]:
    with refusing_address() as address:
        yield f"{address}/v1"


async def test_a_refused_connection_has_retries_of_its_own_and_opens_the_breaker(refusing: str) -> None:
    pauses = Pauses()
    judge = judging(refusing, config={"retries": {"jitter_s": 0}}, sleep=pauses, unreachable=FEW).session()
    whys = [await error_message(judge.ask(question(str(number)))) for number in range(3)]
    assert pauses.taken == [1, 2]
    address = refusing.removesuffix("/v1")
    assert whys[0] == f"openai/stub: no connection to {address}: the connection was refused"
    assert ["not asked" in why for why in whys] == [False, True, True]


async def test_a_refused_connection_has_the_usual_retries_without_others(refusing: str) -> None:
    pauses = Pauses()
    config = {"retries": {"attempts": 3, "jitter_s": 0}, "breaker": {"failures": 100}}
    await error_message(judging(refusing, config=config, sleep=pauses).session().ask(question()))
    assert pauses.taken == [5, 10]


async def test_other_failures_have_the_usual_retries() -> None:
    pauses = Pauses()
    async with openai_server(busy(None, 500), busy(None, 500)) as server:
        config = {"retries": {"attempts": 3, "jitter_s": 0}}
        await judging(server.url, config=config, sleep=pauses, unreachable=FEW).session().ask(question())
    assert pauses.taken == [5, 10]


async def test_an_outage_of_a_judge_that_has_answered_has_the_usual_retries() -> None:
    pauses = Pauses()
    async with openai_server() as server:
        config = {"retries": {"attempts": 3, "jitter_s": 0}}
        judge = judging(server.url, config=config, sleep=pauses, unreachable=FEW).session()
        await judge.ask(question("1"))
    whys = [await error_message(judge.ask(question(str(number)))) for number in (2, 3)]
    assert pauses.taken == [5, 10, 5, 10]
    assert not any("not asked" in why for why in whys)


async def test_an_unknown_host_is_unreachable() -> None:
    pauses = Pauses()
    judge = judging("http://judge.invalid/v1", sleep=pauses, unreachable=FEW).session()
    assert "no connection to http://judge.invalid: " in await error_message(judge.ask(question()))
    assert pauses.taken == [1, 2]


def test_the_shown_address_has_no_path_and_no_query() -> None:
    assert Access("https://judge.example:8443/v1/s3cret?key=t0ken").address == "https://judge.example:8443"
    assert Access().address == "the address of its provider"


class Warned(logging.Handler):
    """Sets an event when a warning is logged, and keeps the messages."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []
        self.is_set = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "does not answer" in record.getMessage():
            self.messages.append(record.getMessage())
            self.is_set.set()


@pytest.fixture
def warned() -> Iterator[Warned]:
    handler, log = Warned(), logging.getLogger("traceweir.streams.scoring.judges")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


async def test_a_judge_that_does_not_answer_is_named_once_with_what_waits(warned: Warned) -> None:
    async with openai_server() as server:
        server.gate = asyncio.Event()
        judge = judging(server.url, no_answer_s=0.5).session()
        metrics = ["kindness", "safety_v1", "safety_v1"]
        asking = [asyncio.create_task(judge.ask(question(str(at), metric=each))) for at, each in enumerate(metrics)]
        await warned.is_set.wait()
        server.gate.set()
        await asyncio.gather(*asking)
    (message,) = warned.messages
    address = server.url.removesuffix("/v1")
    assert message.startswith(f"the judge openai/stub at {address} does not answer (for ")
    assert "Criteria that wait for it: kindness, safety_v1. " in message
    assert "60 s (judge.timeout_s)" in message
    assert KEY not in message


async def test_a_judge_that_answers_is_not_warned_of(warned: Warned) -> None:
    async with openai_server(*[busy("0")] * 3) as server:
        await judging(server.url).session().ask(question())
    assert warned.messages == []


async def test_a_question_without_an_answer_is_a_warning_with_the_last_failure(warned: Warned, refusing: str) -> None:
    judge = judging(refusing, sleep=Pauses(), unreachable=FEW).session()
    await error_message(judge.ask(question("1")))
    await error_message(judge.ask(question("2")))
    (message,) = warned.messages
    assert "(a question has failed). Criteria that wait for it: m. " in message
    assert "Last failure: openai/stub: no connection to" in message
