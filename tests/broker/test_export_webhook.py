"""Every selected score reaches a webhook at least once, in the order of its session, and no other session waits."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

import pytest
from standardwebhooks import Webhook
from tests.support.exporting import at_once, export_process
from tests.support.http_target import HttpTarget, Request, Said, http_target
from tests.support.results import make_score, put_scores

from traceweir.schemas.score import Score
from traceweir.streams.clock import utc_now
from traceweir.streams.export.http_post import HttpPost
from traceweir.streams.export.problems import Problems
from traceweir.streams.export.relay import Relay
from traceweir.streams.export.webhook_event import EventType
from traceweir.streams.export.webhook_target import WebhookTarget
from traceweir.streams.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.kafka.topic_admin import create_topics
from traceweir.streams.settings import Settings

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher")]

LIMIT_S = 60.0
SECRET = "c2VjcmV0" * 4


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(settings)
    return settings


@asynccontextmanager
async def exporting(
    settings: Settings,
    url: str,
    *,
    events: Collection[EventType] = ("decision", "failed"),
    metrics: Collection[str] = (),
) -> AsyncIterator[Relay]:
    """Runs an exporter within the block, and then stops it in order."""
    stop = asyncio.Event()
    async with HttpPost(f"{url}/hook", timeout_s=10.0, connections=4) as post:
        target = WebhookTarget(
            post,
            [SECRET],
            events=events,
            metrics=metrics,
            content="redacted",
            version="1",
            problems=Problems("traceweir.results", lambda: 0.0),
            now=utc_now,
            connections=4,
            sleep=at_once,
        )
        relay = Relay(settings, target, group="hook")
        running = asyncio.create_task(relay.run(stop, 10.0))
        try:
            yield relay
        finally:
            stop.set()
            await asyncio.wait_for(running, LIMIT_S)


def put(settings: Settings, *scores: Score) -> None:
    put_scores(settings.kafka_bootstrap_servers, scores)


def told(request: Request) -> tuple[str, str, int]:
    """Returns session, metric and revision of an event whose signature is right."""
    data = Webhook(SECRET).verify(request.body, dict(request.headers))["data"]
    return data["session_id"], data["metric"], data["revision"]


def accepted(number: int) -> Callable[[HttpTarget], bool]:
    return lambda target: len(target.accepted) >= number


async def test_decisions_and_failed_scores_are_sent_and_signed_and_others_are_left_out(settings: Settings) -> None:
    put(
        settings,
        make_score(metric="gate", value=1.0),
        make_score(metric="good", value=0.9),
        make_score(metric="bad", value=0.1),
        make_score(metric="none", value=None),
    )
    async with http_target() as target:
        async with exporting(settings, target.url):
            await target.until(accepted(2))
        assert [told(request)[1] for request in target.accepted] == ["gate", "bad"]
        put(settings, make_score(metric="none", value=None), make_score(metric="bad", value=None))
        async with exporting(settings, target.url, events=["not_evaluated"], metrics=["bad"]):
            await target.until(accepted(3))
    assert [told(request)[1] for request in target.accepted[2:]] == ["bad"]
    assert {request.path for request in target.arrived} == {"/hook"}


async def test_the_order_of_a_session_is_kept_when_requests_fail_and_are_repeated(settings: Settings) -> None:
    """Every third request fails, and the repetition has the id of the first attempt."""
    scores = [make_score(f"s{session}", revision=revision) for revision in range(6) for session in range(12)]
    put(settings, *scores)
    count = iter(range(10_000))
    async with (
        http_target(lambda request: Said(503 if next(count) % 3 == 0 else 204)) as target,
        exporting(settings, target.url),
    ):
        await target.until(accepted(len(scores)))
    for session in range(12):
        revisions = [told(request)[2] for request in target.accepted if told(request)[0] == f"s{session}"]
        assert revisions == list(range(6))
    assert len({request.headers["webhook-id"] for request in target.arrived}) == len(scores) < len(target.arrived)


async def test_an_event_that_the_receiver_refuses_is_named_and_the_next_one_of_its_session_arrives(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    put(settings, *(make_score("s", revision=revision) for revision in range(3)))

    def answer(request: Request) -> Said:
        return Said(422, body=b"no\nsuch field") if told(request)[2] == 1 else Said()

    async with http_target(answer) as target, exporting(settings, target.url):
        await target.until(accepted(2))
    assert [told(request)[2] for request in target.accepted] == [0, 2]
    (line,) = [message for message in caplog.messages if "422" in message]
    assert "\n" not in line


async def test_offsets_move_after_the_acknowledgement_only(settings: Settings) -> None:
    """A target that answers nothing costs a repetition at the next start."""
    put(settings, *(make_score(f"s{number}") for number in range(5)))
    async with http_target(lambda request: Said(401)) as refusing, exporting(settings, refusing.url):
        await refusing.until(lambda target: len(target.arrived) >= 5)
    async with http_target() as target, exporting(settings, target.url):
        await target.until(accepted(5))


async def test_the_command_sends_until_sigterm_and_shows_neither_address_nor_secret(settings: Settings) -> None:
    put(settings, *(make_score(f"s{number}") for number in range(5)))
    async with http_target() as target:
        url = f"{target.url}/token-of-the-address"
        with export_process(
            settings, "webhook", "--event", "failed", TRACEWEIR_WEBHOOK_URL=url, TRACEWEIR_WEBHOOK_SECRET=SECRET
        ) as running:
            await target.until(accepted(5))
            running.send_signal(signal.SIGTERM)
            _, log = await asyncio.to_thread(running.communicate, timeout=LIMIT_S)
    assert (running.returncode, b"sent=5" in log) == (0, True), log.decode()
    assert SECRET.encode() not in log
    assert b"token-of-the-address" not in log
    assert {json.loads(request.body)["type"] for request in target.accepted} == {"traceweir.score.failed"}
