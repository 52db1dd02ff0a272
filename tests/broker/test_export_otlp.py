"""Every score reaches an OpenTelemetry backend at least once, whatever the backend answers and whenever the exporter ends."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import time
from collections.abc import Callable, Set
from contextlib import AbstractContextManager

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.support.exporting import LIMIT_S, Clock, export_process, exporter_settings, exporting
from tests.support.http_target import HttpTarget, Request, Said, http_target
from tests.support.results import make_score, put_scores

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.export.errors import ExportError
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher")]


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    return exporter_settings(embedded_broker)


def put(settings: Settings, *names: str) -> set[str]:
    """Writes a score for each session, and returns their result ids."""
    scores = [make_score(name) for name in names]
    put_scores(settings.kafka_bootstrap_servers, scores)
    return {score.result_id for score in scores}


def sessions(number: int) -> list[str]:
    return [f"session-{each}" for each in range(number)]


async def test_each_score_arrives_and_a_second_start_sends_only_what_is_new(settings: Settings) -> None:
    first = put(settings, *sessions(40))
    async with http_target() as target:
        async with exporting(settings, target.url):
            await target.until(lambda target: set(target.ids) == first)
        target.accepted.clear()
        second = put(settings, "later")
        async with exporting(settings, target.url):
            await target.until(lambda target: bool(target.accepted))

    assert set(target.ids) == second
    assert {request.path for request in target.arrived} == {"/v1/logs"}


async def test_the_offsets_move_only_after_the_acknowledgement(settings: Settings) -> None:
    ids = put(settings, "a", "b", "c")
    async with http_target() as target:
        target.held.clear()
        async with exporting(settings, target.url, group="g", stop_within_s=0.0):
            await target.until(lambda target: bool(target.arrived))
        assert target.accepted == []
        target.held.set()
        async with exporting(settings, target.url, group="g"):
            await target.until(lambda target: set(target.ids) == ids)


async def test_a_backend_that_is_away_at_first_gets_every_score_when_it_is_back(settings: Settings) -> None:
    ids = put(settings, *sessions(20))
    refusals = iter([503, 429, 502, 504, 500] * 3)

    def answer(request: Request) -> Said:
        return Said(next(refusals, 200))

    async with http_target(answer) as target, exporting(settings, target.url) as relay:
        await target.until(lambda target: set(target.ids) == ids)
    assert relay.counts["read"] == 20


async def test_a_score_that_the_backend_refuses_costs_no_neighbour_and_is_named(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    ids = put(settings, *sessions(30))
    bad = make_score("session-7").result_id

    def answer(request: Request) -> Said:
        return (
            Said(400, body=b"odd")
            if any(bad.encode() in event.SerializeToString() for event in request.events)
            else Said()
        )

    async with http_target(answer) as target, exporting(settings, target.url):
        await target.until(lambda target: set(target.ids) == ids - {bad})
    (line,) = [message for message in caplog.messages if bad in message]
    assert "traceweir.results[" in line
    assert "the target answered 400: odd" in line


async def test_a_score_that_the_backend_answers_with_500_waits_and_arrives_when_it_has_recovered(
    settings: Settings,
) -> None:
    ids = put(settings, *sessions(30))
    bad, failures = (
        make_score("session-7").result_id,
        iter(range(60)),
    )  # five attempts for each half, and for each retry

    def answer(request: Request) -> Said:
        has_bad = any(bad.encode() in event.SerializeToString() for event in request.events)
        return Said(500 if has_bad and next(failures, None) is not None else 200)

    async with http_target(answer) as target, exporting(settings, target.url, now=Clock(600)) as relay:
        await target.until(lambda target: set(target.ids) == ids)
    assert target.ids[-1] == bad
    assert (relay.counts["waited"], relay.counts["given_up"]) == (1, 0)


async def test_records_that_are_no_scores_are_counted_and_passed(settings: Settings) -> None:
    forged = [b"", b"{", b"\xff", b"[" * 100_000, b'{"value": NaN}', b"null"]
    too_large = make_score("t").wire().replace(b'"revision":0', b'"revision":99999999999999999999')
    put_scores(settings.kafka_bootstrap_servers, [*forged, too_large])
    ids = put(settings, *sessions(20))  # some on each partition, behind the others
    async with http_target() as target, exporting(settings, target.url) as relay:
        await target.until(lambda target: set(target.ids) == ids)

    assert relay.counts["read"] == 27
    assert relay.counts["unreadable"] == len(forged)


async def test_two_exporters_of_a_group_share_the_partitions_and_lose_nothing_when_one_leaves(
    settings: Settings,
) -> None:
    async with http_target() as target, exporting(settings, target.url):
        async with exporting(settings, target.url):
            ids = put(settings, *sessions(200))
            await target.until(lambda target: len(set(target.ids)) > 0)
        await target.until(lambda target: set(target.ids) == ids)


async def test_only_new_leaves_out_what_is_there_and_nothing_that_comes_before_the_next_start(
    settings: Settings,
) -> None:
    put(settings, *sessions(5))
    async with http_target() as target:
        async with exporting(settings, target.url, only_new=True):
            await asyncio.to_thread(wait_for_offsets, settings)
        between = put(settings, "between")
        async with exporting(settings, target.url, only_new=True):
            await target.until(lambda target: bool(target.accepted))
    assert set(target.ids) == between


def wait_for_offsets(settings: Settings) -> None:
    """Waits until the group has committed an offset of each partition."""
    places = [TopicPartition("traceweir.results", number) for number in range(settings.partitions)]
    client = Consumer({"bootstrap.servers": settings.kafka_bootstrap_servers, "group.id": "export"})
    deadline = time.monotonic() + LIMIT_S
    while any(place.offset < 0 for place in client.committed(places, LIMIT_S)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.close()


async def test_a_missing_topic_ends_the_start_with_the_command_that_makes_it(embedded_broker: EmbeddedBroker) -> None:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers, topic_prefix="none.")
    with pytest.raises(ExportError, match=r"'none.results' does not exist: run `traceweir topics create`"):
        async with exporting(settings, "http://127.0.0.1:9"):
            await asyncio.sleep(0)


def process(settings: Settings, url: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return export_process(
        settings,
        *("otlp", "--group", "killed"),
        OTEL_EXPORTER_OTLP_ENDPOINT=url,
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_process_killed_at_a_random_point_has_sent_every_score_after_its_next_start(
    settings: Settings, seed: int
) -> None:
    ids = put(settings, *sessions(3_000))
    drawn = random.Random(seed)
    async with http_target() as target:
        for _ in range(2):
            with process(settings, target.url) as running:
                await target.until(arrivals(len(target.arrived) + drawn.randrange(3)))
                if drawn.random() < 0.5:  # killed before an acknowledgement, else at any point
                    target.held.clear()
                await target.until(arrivals(len(target.arrived) + 1, ids))
                running.kill()
            target.held.set()
        with process(settings, target.url) as running:
            await target.until(lambda target: set(target.ids) == ids)
            running.send_signal(signal.SIGTERM)
            _, log = await asyncio.to_thread(running.communicate, timeout=LIMIT_S)
    assert running.returncode == 0, log.decode()


def arrivals(number: int, ids: Set[str] = frozenset("never")) -> Callable[[HttpTarget], bool]:
    """Returns a condition: that so many requests have arrived, or all of these scores."""
    return lambda target: len(target.arrived) >= number or set(target.ids) == ids
