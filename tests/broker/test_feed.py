"""The feed brings what is on the output topics into the store, each record once, through restarts and failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Producer
from tests.support.alerts import make_alert, resolved
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW
from tests.support.stores import FakeRecord, batch_of, open_store, scores_batch

from traceweir.streams.base.settings import Settings
from traceweir.streams.board.dashboard.feed import LOOK_EVERY_S, Feed, FeedState
from traceweir.streams.board.store.alerts import alert_page
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.errors import StoreError, StoreUnavailableError
from traceweir.streams.board.store.rows import Batch, SourcePartition
from traceweir.streams.board.store.tables import TableName
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.silence import UNKNOWN_AFTER_S, LastAnswer
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher")]

LIMIT_S = 60.0

Until = Callable[[Callable[[FeedState], bool]], Awaitable[None]]


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    return Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)


@asynccontextmanager
async def feeding(
    settings: Settings, store: DuckDBStore, last_answer: LastAnswer | None = None
) -> AsyncIterator[Until]:
    """Runs a feed; yields a function that waits until a condition of its state holds."""
    changed = asyncio.Event()
    keep: dict[TableName, timedelta] = {"results": timedelta(days=1)}
    feed = Feed(
        settings,
        store,
        keep=keep,
        keep_figures=timedelta(days=5),
        now=lambda: NOW,
        changed=changed.set,
        last_answer=last_answer,
    )

    async def until(holds: Callable[[FeedState], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not holds(feed.present()):
                waiting = asyncio.create_task(changed.wait())
                await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if running.done():
                    await running
                changed.clear()

    running = asyncio.create_task(feed.run())
    try:
        yield until
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def put_traces(servers: str, values: Mapping[str, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for trace_id, value in values.items():
        producer.produce("traceweir.network", value, trace_id, 0)
    assert producer.flush(30) == 0


def traces_batch(*trace_ids: str) -> Batch:
    """Returns a batch of accepted traces, after which offset 1 of partition 0 is next."""
    batch = batch_of("network", *(FakeRecord(b"{}", 0, trace_id.encode()) for trace_id in trace_ids))
    batch.offsets = {SourcePartition("traceweir.network", 0): 1}
    return batch


def traces(store: DuckDBStore) -> list[str]:
    return [row["trace_id"] for row in store.query("SELECT trace_id FROM network ORDER BY ALL")]


def started_over(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "from its beginning" in record.getMessage()]


async def test_scores_are_stored_once_through_a_restart(settings: Settings, tmp_path: Path) -> None:
    create_topics(settings)
    servers, file = settings.kafka_bootstrap_servers, tmp_path / "store.duckdb"
    put_scores(servers, [make_score("a"), make_score("b"), b"forged"])
    store = open_store(file)
    async with feeding(settings, store) as until:
        await until(lambda state: sum(store.offsets().values()) == 3)
    store.close()
    put_scores(servers, [make_score("c"), make_score("a", value=0.9, revision=1)])

    store = open_store(file)
    async with feeding(settings, store) as until:
        await until(lambda state: sum(store.offsets().values()) == 5)

    assert store.query("SELECT sum(n) AS n FROM rollup_changes") == [{"n": 3}]
    assert store.query("SELECT topic, n FROM unreadable_records") == [{"topic": "traceweir.results", "n": 1}]
    assert store.query("SELECT session_id, value FROM results ORDER BY ALL") == [
        {"session_id": "a", "value": 0.9},
        {"session_id": "b", "value": 0.5},
        {"session_id": "c", "value": 0.5},
    ]


async def test_an_alert_is_stored_and_its_end_replaces_it(settings: Settings, tmp_path: Path) -> None:
    create_topics(settings)
    store = open_store(tmp_path / "store.duckdb")
    alert = make_alert()
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    async with feeding(settings, store) as until:
        for each in (alert, resolved(alert)):
            producer.produce("traceweir.alerts", each.wire(), each.alert_id, 0)
            assert producer.flush(30) == 0
            await until(lambda state, each=each: alert_page(store).alerts == [each])  # type: ignore[misc]
    store.close()


async def test_nothing_is_known_of_a_broker_that_has_ended(tmp_path: Path) -> None:
    seconds = [0.0]
    with EmbeddedBroker() as broker:
        settings = Settings(kafka_bootstrap_servers=broker.bootstrap_servers)
        create_topics(settings)
        put_scores(broker.bootstrap_servers, [make_score("a")])
        last_answer = LastAnswer(lambda: seconds[0])
        async with feeding(settings, open_store(tmp_path / "store.duckdb"), last_answer) as until:
            await until(lambda state: state.stored_rows == 1)
            await asyncio.to_thread(broker.__exit__, None, None, None)
            seconds[0] += UNKNOWN_AFTER_S
            await until(lambda state: state.behind is None and "no Kafka broker" in (state.problem or ""))


async def test_a_feed_ends_although_no_broker_answers_its_request(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, never = threading.Event(), threading.Event()

    def unanswered(*_: object) -> list[str]:
        begun.set()
        never.wait()
        return []

    monkeypatch.setattr("traceweir.streams.board.dashboard.feed.check_partitions", unanswered)
    async with feeding(settings, open_store(tmp_path / "store.duckdb")):
        await asyncio.to_thread(begun.wait)
    await asyncio.get_running_loop().shutdown_default_executor()  # as `asyncio.run` does
    never.set()


async def test_a_withdrawn_trace_that_the_topic_does_not_name_is_removed_from_a_store_of_unknown_age(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_topics(settings)
    put_traces(settings.kafka_bootstrap_servers, {"kept": b"{}", "new": b"{}"})
    store = open_store(tmp_path / "store.duckdb")
    store.write(scores_batch(make_score("a")))
    store.write(traces_batch("withdrawn", "kept"))
    async with feeding(settings, store) as until:
        await until(lambda state: state.stored_rows == 2)

    assert store.current_at() == {"traceweir.network": NOW}
    assert traces(store) == ["kept", "new"]
    assert store.query("SELECT session_id FROM results") == [{"session_id": "a"}]
    (warning,) = started_over(caplog)
    assert warning == (
        "traceweir.network is read from its beginning, and its 2 stored traces are removed first: withdrawals can have left "
        "the topic before they were read, because it is unknown since when the store lacks withdrawals"
    )


async def test_a_store_reads_on_where_it_stood_a_short_time_ago(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_topics(settings)
    put_traces(settings.kafka_bootstrap_servers, {"kept": b"{}"})
    store = open_store(tmp_path / "store.duckdb")
    async with feeding(settings, store) as until:
        await until(lambda state: state.stored_rows == 1)
    async with feeding(settings, store) as until:
        put_traces(settings.kafka_bootstrap_servers, {"kept": None})
        await until(lambda state: state.stored_rows == 1)

    assert store.query("SELECT trace_id, accepted FROM network") == [{"trace_id": "kept", "accepted": False}]
    assert started_over(caplog) == []


async def test_a_running_feed_whose_clock_was_changed_reads_the_accepted_traces_again(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_topics(settings)
    put_traces(settings.kafka_bootstrap_servers, {"kept": b"{}"})
    store, clock, changed = open_store(tmp_path / "store.duckdb"), [NOW], asyncio.Event()
    feed = Feed(settings, store, keep={}, now=lambda: clock[0], changed=changed.set)
    running = asyncio.create_task(feed.run())
    await asyncio.wait_for(changed.wait(), LIMIT_S)
    clock[0] = NOW - timedelta(hours=1)

    async with asyncio.timeout(LIMIT_S):
        while store.current_at() != {"traceweir.network": clock[0]}:
            changed.clear()
            await changed.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert len(started_over(caplog)) == 1
    assert traces(store) == ["kept"]


async def test_a_running_feed_notices_that_a_topic_was_created_again(settings: Settings, tmp_path: Path) -> None:
    create_topics(settings)
    put_scores(settings.kafka_bootstrap_servers, [make_score("a")])
    store, clock, stored = open_store(tmp_path / "store.duckdb"), [NOW], asyncio.Event()
    running = asyncio.create_task(Feed(settings, store, keep={}, now=lambda: clock[0], changed=stored.set).run())
    await asyncio.wait_for(stored.wait(), LIMIT_S)
    # The topics of an embedded broker cannot be created again, so the store gets the id of another one.
    store.write(Batch(topic_ids={"traceweir.results": "former"}))
    clock[0] = NOW + timedelta(seconds=LOOK_EVERY_S)

    with pytest.raises(StoreError, match=r"traceweir.results was deleted and created again since the store read it"):
        await asyncio.wait_for(running, LIMIT_S)


async def test_old_results_and_figures_are_removed(settings: Settings, tmp_path: Path) -> None:
    create_topics(settings)
    store = open_store(tmp_path / "store.duckdb")
    store.write(scores_batch(*(make_score(f"{n} days", occurred_at=NOW - timedelta(days=n)) for n in (9, 3))))
    put_scores(settings.kafka_bootstrap_servers, [make_score("a")])
    async with feeding(settings, store) as until:
        await until(lambda state: state.stored_rows == 1)
        put_scores(settings.kafka_bootstrap_servers, [make_score("b")])
        await until(lambda state: state.stored_rows == 2)  # the removal after the batch before has ended

    assert store.query("SELECT session_id FROM results ORDER BY ALL") == [{"session_id": "a"}, {"session_id": "b"}]
    assert store.query("SELECT sum(n) AS n FROM rollup_changes") == [{"n": 3}]


async def test_missing_topics_are_a_problem_with_a_way_out_and_are_read_when_they_exist(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.board.dashboard.feed.RETRY_AFTER_S", (0.1,))
    store = open_store(tmp_path / "store.duckdb")
    async with feeding(settings, store) as until:
        await until(lambda state: "traceweir topics" in (state.problem or ""))
        create_topics(settings)
        put_scores(settings.kafka_bootstrap_servers, [make_score("a")])
        await until(lambda state: state.stored_rows == 1 and state.problem is None)


async def test_a_store_of_other_topics_is_refused(settings: Settings, tmp_path: Path) -> None:
    create_topics(settings)
    store = open_store(tmp_path / "store.duckdb")
    store.write(Batch(offsets={SourcePartition("traceweir.results", 1): 7}))
    store.write(traces_batch("kept"))

    with pytest.raises(StoreError, match=r"traceweir.results\[1\] up to offset 7, and the partition ends at 0"):
        await asyncio.wait_for(Feed(settings, store, keep={}, now=lambda: NOW).run(), LIMIT_S)
    assert traces(store) == ["kept"]


async def test_a_store_of_former_topics_is_refused_although_the_new_ones_are_longer(
    settings: Settings, tmp_path: Path
) -> None:
    with EmbeddedBroker() as former:
        before = Settings(kafka_bootstrap_servers=former.bootstrap_servers)
        create_topics(before)
        put_scores(former.bootstrap_servers, [make_score("a")])
        store = open_store(tmp_path / "store.duckdb")
        async with feeding(before, store) as until:
            await until(lambda state: state.stored_rows == 1)
        create_topics(settings)
        put_scores(settings.kafka_bootstrap_servers, [make_score(name) for name in "aaaa"])

        with pytest.raises(
            StoreError, match=r"traceweir.results was deleted and created again since the store read it"
        ):
            await asyncio.wait_for(Feed(settings, store, keep={}, now=lambda: NOW).run(), LIMIT_S)

    assert store.query("SELECT count(*) AS n FROM results") == [{"n": 1}]


async def test_a_batch_that_the_store_refuses_is_read_again_and_the_problem_stays_until_it_is_stored(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.board.dashboard.feed.RETRY_AFTER_S", (0.1,))
    create_topics(settings)
    put_scores(settings.kafka_bootstrap_servers, [make_score("a"), make_score("b")])
    store, refusals = open_store(tmp_path / "store.duckdb"), iter(range(3))
    told: list[tuple[str | None, int]] = []
    write = store.write

    def refusing_at_first(batch: Batch) -> None:
        if batch.rows and next(refusals, None) is not None:
            raise StoreUnavailableError("the disk is full")
        write(batch)

    def tell() -> None:
        told.append((feed.state.problem, feed.state.stored_rows))
        if feed.state.stored_rows == 2 and feed.state.problem is None:
            caught_up.set()

    waited = set()
    getmany = AIOKafkaConsumer.getmany

    async def nothing_at_first(consumer: AIOKafkaConsumer, **options: Any) -> Any:
        if consumer not in waited:
            waited.add(consumer)
            return {}
        return await getmany(consumer, **options)

    monkeypatch.setattr(AIOKafkaConsumer, "getmany", nothing_at_first)
    caught_up = asyncio.Event()
    monkeypatch.setattr(store, "write", refusing_at_first)
    feed = Feed(settings, store, keep={}, now=lambda: NOW, changed=tell)
    running = asyncio.create_task(feed.run())
    await asyncio.wait_for(caught_up.wait(), LIMIT_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert next(refusals, None) is None
    assert told[0] == ("the disk is full", 0)
    assert all(problem is not None or rows for problem, rows in told)
    assert feed.state.behind == 0
