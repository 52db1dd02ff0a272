"""Every selected score reaches a webhook at least once, in the order of its session, and no other session waits."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable

import aiohttp
import pytest
from confluent_kafka import Producer
from standardwebhooks import Webhook
from tests.support.alerts import make_alert, resolved
from tests.support.dlq import Dlq
from tests.support.exporting import LIMIT_S, SECRET, Clock, export_process, exporter_settings, webhook_exporting
from tests.support.http_target import HttpTarget, Request, Said, http_target
from tests.support.metrics import samples
from tests.support.results import make_score, put_scores

from traceweir.schemas.alert import Alert
from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.tools.export.webhook_event import EventType
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher")]


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    return exporter_settings(embedded_broker)


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
        async with webhook_exporting(settings, target.url):
            await target.until(accepted(2))
        assert [told(request)[1] for request in target.accepted] == ["gate", "bad"]
        put(settings, make_score(metric="none", value=None), make_score(metric="bad", value=None))
        async with webhook_exporting(settings, target.url, events=["not_evaluated"], metrics=["bad"]):
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
        webhook_exporting(settings, target.url, now=Clock(60)),
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

    async with http_target(answer) as target, webhook_exporting(settings, target.url):
        await target.until(accepted(2))
    assert [told(request)[2] for request in target.accepted] == [0, 2]
    (line,) = [message for message in caplog.messages if "422" in message]
    assert "\n" not in line
    assert "is a dead letter: the target answered 422" in line


async def test_a_receiver_that_refuses_the_exporter_ends_it_with_a_sentence_and_costs_no_event(
    settings: Settings,
) -> None:
    put(settings, *(make_score(f"s{number}") for number in range(5)))
    async with http_target(lambda request: Said(410)) as refusing:
        with pytest.raises(ExportError, match=r"answered 410; check TRACEWEIR_WEBHOOK_URL.*where it stood"):
            async with webhook_exporting(settings, refusing.url) as exporter:
                await exporter.ended.wait()
    async with http_target() as target, webhook_exporting(settings, target.url):
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


async def test_the_pages_of_the_command_say_when_the_receiver_takes_nothing_and_count_what_it_took(
    settings: Settings,
) -> None:
    put(settings, make_score("a"))
    status = 200
    async with http_target(lambda request: Said(status)) as target:
        variables = {"TRACEWEIR_WEBHOOK_URL": target.url, "TRACEWEIR_WEBHOOK_SECRET": SECRET}
        with export_process(settings, "webhook", "--port", "0", **variables) as running:
            assert running.stderr is not None
            lines = iter(running.stderr.readline, b"")
            line = await asyncio.to_thread(lambda: next(line for line in lines if b"health: http" in line))
            page = re.findall(r"http://[^/]+", line.decode())[0]
            await target.until(accepted(1))
            ready = await answered(page, "/readyz", 200)
            status = 503
            put(settings, make_score("b"))
            waiting = await answered(page, "/readyz", 503)
            healthy = await answered(page, "/healthz", 200)
            metrics = samples(await answered(page, "/metrics", 200))
            running.send_signal(signal.SIGTERM)
            _, log = await asyncio.to_thread(running.communicate, timeout=LIMIT_S)
    assert (running.returncode, b"Traceback" in log) == (0, False), log.decode()
    assert json.loads(ready) == {"ready": True, "phase": "ready", "partitions": [0, 1, 2, 3], "waiting": 0}
    (problem,) = json.loads(waiting)["problems"]
    assert problem.startswith("the target takes nothing now: the target answered 503")
    assert json.loads(healthy) == {"healthy": True, "problems": []}
    group = "traceweir.export-webhook"
    assert metrics["export_scores_total", "sent", group] == 1
    assert metrics["export_ready", group] == 0
    assert metrics["dead_letters_total", "export", "given_up"] == 0


async def answered(page: str, path: str, status: int) -> bytes:
    """Returns the page once it has this status."""
    async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession() as session:
        while True:
            async with session.get(page + path) as answer:
                if answer.status == status:
                    return await answer.read()


class Receiver:
    """Answers 500 to the events of the session `bad`, so many times."""

    def __init__(self, failures: int = 1_000_000) -> None:
        self.failures = failures

    def __call__(self, request: Request) -> Said:
        if told(request)[0] != "bad" or self.failures <= 0:
            return Said()
        self.failures -= 1
        return Said(500, body=b"a bad deploy")


def failed(number: int) -> Callable[[HttpTarget], bool]:
    return lambda target: len(target.arrived) - len(target.accepted) >= number


async def test_an_event_that_is_answered_with_500_arrives_when_the_receiver_has_recovered(settings: Settings) -> None:
    """The others arrive before it, over the one connection, and the later events of its session after it."""
    late = next(name for name in map(str, range(100)) if partition_of(name.encode(), 4) == partition_of(b"bad", 4))
    put(settings, *(make_score(session) for session in ("a", "bad", "b")))
    put(settings, *(make_score("bad", revision=revision) for revision in (1, 2)))
    receiver, clock = Receiver(failures=12), Clock(600)
    async with (
        http_target(receiver) as target,
        webhook_exporting(settings, target.url, now=clock, connections=1) as exporter,
    ):
        await target.until(failed(10))
        # While time stands still, nothing is sent again.
        clock.step_s = 0
        put(settings, make_score("bad", revision=3), make_score(late))
        await target.until(accepted(3))
        clock.step_s = 600
        await target.until(accepted(7))

    arrived = [told(request) for request in target.accepted]
    assert sorted(session for session, _, _ in arrived[:3]) == sorted(["a", "b", late])
    assert [revision for session, _, revision in arrived if session == "bad"] == [0, 1, 2, 3]
    assert {told(request)[2] for request in target.arrived if request not in target.accepted} == {0}
    assert exporter.relay.counts["waited"] == 4
    assert exporter.relay.waiting == 0


async def test_an_event_that_waits_survives_a_crash_and_the_others_are_not_sent_again(settings: Settings) -> None:
    put(settings, *(make_score(session) for session in ("a", "bad", "b")))
    receiver, clock = Receiver(), Clock(600)
    async with http_target(receiver) as target:
        async with webhook_exporting(settings, target.url, now=clock) as exporter:
            await target.until(failed(3))
            exporter.crash()
        receiver.failures = 0
        async with webhook_exporting(settings, target.url, now=clock):
            await target.until(accepted(3))
    assert sorted(told(request)[0] for request in target.accepted) == ["a", "b", "bad"]


async def test_an_event_that_is_given_up_is_a_dead_letter_and_a_replay_sends_it(
    settings: Settings, capfdbinary: pytest.CaptureFixture[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """After three days; the exporter that runs notices the replay."""
    put(settings, make_score("s"), make_score("s", revision=1))
    refused, clock = {0}, Clock(6 * 3600)
    dlq = Dlq(settings.kafka_bootstrap_servers, "traceweir.", capfdbinary)

    def answer(request: Request) -> Said:
        return Said(500, body=b"a bad deploy") if told(request)[2] in refused else Said()

    async with http_target(answer) as target, webhook_exporting(settings, target.url, now=clock) as exporter:
        await target.until(accepted(1))
        listed = await asyncio.to_thread(dlq, "list", "--stage", "export", "--json")
        refused.clear()
        ended = await asyncio.to_thread(dlq, "replay", "--reason", "given_up")
        await target.until(accepted(2))

    (letter,) = listed.lines
    assert (letter["reason"], letter["topic"], letter["state"]) == ("given_up", "traceweir.results", "open")
    assert letter["detail"] == "not taken for 259200 s; the last attempt: the target answered 500: a bad deploy"
    assert (ended.code, ended.out) == (0, b"1 dead letter sent: 1 to traceweir.export-waiting\n")
    assert [told(request)[2] for request in target.accepted] == [1, 0]
    assert exporter.relay.counts["given_up"] == 1
    assert clock.passed_s >= 3 * 86_400


async def test_a_record_of_others_on_the_topic_of_what_waits_is_left_out(settings: Settings) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    score = make_score("forged").wire()
    for key in (
        None,
        b"",
        b"\xff@1@2",
        b"hook@1@x",
        b"hook@01@2",
        b"hook@" + b"9" * 5_000 + b"@2",
        b"other@1@2",
        b"hook",
    ):
        producer.produce("traceweir.export-waiting", score, key, 0)
    producer.produce("traceweir.export-waiting", b"no score", b"hook@1@2", 0)
    assert producer.flush(30) == 0
    put(settings, make_score("a"))
    async with http_target() as target, webhook_exporting(settings, target.url):
        await target.until(accepted(1))
    assert [told(request)[0] for request in target.accepted] == ["a"]


async def test_other_sessions_go_on_while_more_waits_than_memory_holds(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two scores of eight that wait are in memory, and the others follow from the topic in their order."""
    monkeypatch.setattr("traceweir.streams.tools.export.waiting.MAX_LOADED", 2)
    monkeypatch.setattr("traceweir.streams.tools.export.waiting.SESSIONS_AT_LEAST", 1)
    put(settings, *(make_score("bad", revision=revision) for revision in range(8)))
    put(settings, *(make_score(f"s{number}") for number in range(5)))
    receiver = Receiver()
    async with http_target(receiver) as target, webhook_exporting(settings, target.url, now=Clock(600)) as exporter:
        await target.until(accepted(5))
        put(settings, *(make_score(f"t{number}") for number in range(5)))
        await target.until(accepted(10))
        assert exporter.relay.waiting == 8
        receiver.failures = 0
        await target.until(accepted(18))
    arrived = [told(request) for request in target.accepted]
    assert {session for session, _, _ in arrived[:10]} == {f"{name}{number}" for name in "st" for number in range(5)}
    assert [revision for session, _, revision in arrived if session == "bad"] == list(range(8))


async def test_a_session_that_begins_to_wait_is_sent_while_others_in_their_pauses_fill_the_memory(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.tools.export.waiting.MAX_LOADED", 4)
    monkeypatch.setattr("traceweir.streams.tools.export.waiting.SESSIONS_AT_LEAST", 1)
    put(settings, *(make_score("bad", revision=revision) for revision in range(8)))
    receiver = Receiver()
    fails_once = {"new"}

    def answer(request: Request) -> Said:
        session = told(request)[0]
        if session in fails_once:
            fails_once.discard(session)
            return Said(500)
        return receiver(request)

    clock = Clock(600)
    async with http_target(answer) as target, webhook_exporting(settings, target.url, now=clock) as exporter:
        await target.until(failed(3))
        assert (exporter.relay.waiting, exporter.relay.waiting_in_memory) == (8, 4)
        put(settings, make_score("new"))
        await target.until(accepted(1))
        receiver.failures = 0
        await target.until(accepted(9))
    assert [told(request)[0] for request in target.accepted] == ["new", *["bad"] * 8]
    assert [told(request)[2] for request in target.accepted[1:]] == list(range(8))


async def test_a_replay_of_more_scores_than_memory_holds_is_sent_whole(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr("traceweir.streams.tools.export.waiting.MAX_LOADED", 2)
    monkeypatch.setattr("traceweir.streams.tools.export.waiting.SESSIONS_AT_LEAST", 1)
    monkeypatch.setattr("traceweir.streams.tools.export.waiting_topic.MAX_REPLAYED", 1)
    put(settings, *(make_score("s", revision=revision) for revision in range(20)), make_score("t"))
    dlq, refuses = Dlq(settings.kafka_bootstrap_servers, "traceweir.", capfdbinary), asyncio.Event()
    refuses.set()

    def answer(request: Request) -> Said:
        return Said(422 if refuses.is_set() and told(request)[0] == "s" else 200)

    async with http_target(answer) as target:
        async with webhook_exporting(settings, target.url):
            await target.until(lambda target: len(target.arrived) == 21)
        refuses.clear()
        async with webhook_exporting(settings, target.url):
            ended = await asyncio.to_thread(dlq, "replay", "--stage", "export")
            await target.until(accepted(21))
    assert ended.out == b"20 dead letters sent: 20 to traceweir.export-waiting\n"
    assert [told(request)[2] for request in target.accepted[1:]] == list(range(20))


def put_alerts(settings: Settings, *alerts: Alert) -> None:
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    for alert in alerts:
        key = alert.alert_id.encode()
        producer.produce("traceweir.alerts", alert.wire(), key, partition_of(key, 4))
    assert producer.flush(30) == 0


def alert_of(request: Request) -> tuple[str, str, str]:
    """Returns metric, type and verdict of the event of an alert whose signature is right."""
    event = Webhook(SECRET).verify(request.body, dict(request.headers))
    return event["data"]["stream"]["metric"], event["type"].rpartition(".")[2], event["data"]["verdict"]


async def test_alerts_are_sent_in_their_order_and_wait_survive_a_crash_and_are_replayed_as_scores_are(
    settings: Settings, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The receiver refuses one record for good, and has an error of its own for another alert until the crash."""
    bad, good = make_alert("bad"), make_alert("good")
    again = good.model_copy(update={"verdict": "judge"})
    put_alerts(settings, bad, resolved(bad), good, again, resolved(again))
    put(settings, make_score())
    refused, failing = {("good", "raised", "judge")}, {"bad"}

    def answer(request: Request) -> Said:
        event = alert_of(request)
        return Said(422) if event in refused else Said(500) if event[0] in failing else Said()

    dlq, clock = Dlq(settings.kafka_bootstrap_servers, "traceweir.", capfdbinary), Clock(600)
    events: list[EventType] = ["alert_raised", "alert_resolved"]
    async with http_target(answer) as target:
        async with webhook_exporting(settings, target.url, events=events, now=clock) as exporter:
            await target.until(lambda each: len(each.accepted) >= 2 and len(each.arrived) >= 5)
            exporter.crash()
        failing.clear()
        refused.clear()
        async with webhook_exporting(settings, target.url, events=events, now=clock):
            await target.until(accepted(4))
            listed = await asyncio.to_thread(dlq, "list", "--stage", "export", "--json")
            ended = await asyncio.to_thread(dlq, "replay", "--stage", "export")
            await target.until(accepted(5))
    arrived = [alert_of(request) for request in target.accepted]
    assert arrived[:2] == [("good", "raised", "unknown"), ("good", "resolved", "judge")]
    assert arrived[2:] == [
        ("bad", "raised", "unknown"),
        ("bad", "resolved", "unknown"),
        ("good", "raised", "judge"),
    ]
    (letter,) = listed.lines
    assert (letter["reason"], letter["topic"]) == ("refused", "traceweir.alerts")
    assert (ended.code, ended.out) == (0, b"1 dead letter sent: 1 to traceweir.export-waiting\n")


async def test_the_command_reads_alerts_in_a_group_of_its_own(settings: Settings) -> None:
    put_alerts(settings, make_alert())
    put(settings, make_score())
    async with http_target() as target:
        variables = {"TRACEWEIR_WEBHOOK_URL": target.url, "TRACEWEIR_WEBHOOK_SECRET": SECRET}
        with export_process(settings, "webhook", "--event", "alert_raised", **variables) as running:
            await target.until(accepted(1))
            running.send_signal(signal.SIGTERM)
            _, log = await asyncio.to_thread(running.communicate, timeout=LIMIT_S)
    assert (running.returncode, b"consumer group traceweir.export-webhook-alerts" in log) == (0, True), log.decode()
    assert [alert_of(request)[1] for request in target.accepted] == ["raised"]


@pytest.mark.parametrize("first", ["failed", "alert_raised"])
async def test_a_group_that_sends_one_topic_does_not_send_the_other(first: EventType, settings: Settings) -> None:
    topics: dict[EventType, str] = {"failed": "traceweir.results", "alert_raised": "traceweir.alerts"}
    (other,) = topics.keys() - {first}
    put(settings, make_score("a"))
    put_alerts(settings, make_alert())
    async with http_target() as target:
        async with webhook_exporting(settings, target.url, events=[first]):
            await target.until(accepted(1))
        refusal = f"group 'hook' sends the topic {topics[first]}, .*: name another --group for {topics[other]}"
        with pytest.raises(ExportError, match=refusal):
            async with webhook_exporting(settings, target.url, events=[other]) as refused:
                await refused.ended.wait()
        async with webhook_exporting(settings, target.url, events=[other], group="another"):
            await target.until(accepted(2))
        put(settings, make_score("b"))
        put_alerts(settings, make_alert("b"))
        async with webhook_exporting(settings, target.url, events=[first]):
            await target.until(accepted(3))
    assert len(target.arrived) == 3
