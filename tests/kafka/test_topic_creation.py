"""On brokers that create a topic for each client that asks for it, Traceweir's clients do not let them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.exporting import exporting
from tests.support.http_target import http_target
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW
from tests.support.stores import open_store
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, STAGES
from traceweir.streams.board.dashboard.feed import Feed
from traceweir.streams.tools.endpoint.kafka_writer import KafkaWriter
from traceweir.streams.tools.endpoint.receiver import WriteError
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("restored_fetcher")]

WITHIN_S = 60.0
MISSED = "not found in cluster metadata"
"""What aiokafka logs when it has asked for a topic that does not exist and that the broker has not created."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, options={"auto.create.topics.enable": "true"}) as cluster:
        yield cluster


@pytest.fixture
def settings(cluster: KafkaCluster, prefix: str) -> Settings:
    settings = Settings(
        kafka_bootstrap_servers=cluster.bootstrap_servers,
        topic_prefix=prefix,
        otlp_spans_topic=f"{prefix}otlp_spans",
        otlp_logs_topic=f"{prefix}otlp_logs",
        otlp_write_timeout_s=1,
    )
    for stages in (STAGES, ALL_STAGES):
        assert create_topics(settings, stages).wrong == ()
    return settings


def exists(settings: Settings, topic: str) -> bool:
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    return topic in admin.list_topics(timeout=60).topics


def delete(settings: Settings, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": settings.kafka_bootstrap_servers, "log_level": 0})
    admin.delete_topics([topic])[topic].result(WITHIN_S)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_does_not_create_a_deleted_input(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    with Fleet(settings.kafka_bootstrap_servers, settings.topic_prefix, tmp_path, config) as fleet:
        worker = fleet.start("w")
        worker.until_ready()
        topic = settings.topics.invocations
        delete(settings, topic)
        wait_until(lambda: f"Topic {topic} {MISSED}" in worker.log.read_text() or worker.ended)
        assert not exists(settings, topic)


@asynccontextmanager
async def exporter(settings: Settings, folder: Path) -> AsyncIterator[str]:
    topic = settings.topics.results
    put_scores(settings.kafka_bootstrap_servers, [make_score("a")], topic=topic)
    async with http_target() as target:
        stack = AsyncExitStack()
        await stack.enter_async_context(exporting(settings, target.url, group=f"{settings.topic_prefix}export"))
        await target.until(lambda target: bool(target.ids))
        yield topic
        with suppress(Exception):  # an exporter can end without its topic
            await stack.aclose()


@asynccontextmanager
async def dashboard(settings: Settings, folder: Path) -> AsyncIterator[str]:
    topic = settings.topics.results
    put_scores(settings.kafka_bootstrap_servers, [make_score("a")], topic=topic)
    store, stored = open_store(folder / "store.duckdb"), asyncio.Event()
    feeding = asyncio.create_task(Feed(settings, store, keep={}, now=lambda: NOW, changed=stored.set).run())
    waiting = asyncio.create_task(stored.wait())
    done, _ = await asyncio.wait((waiting, feeding), timeout=WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
    assert waiting in done, feeding.exception() if feeding.done() else "no score was stored"
    yield topic
    feeding.cancel()
    await asyncio.gather(feeding, return_exceptions=True)


@asynccontextmanager
async def endpoint(settings: Settings, folder: Path) -> AsyncIterator[str]:
    async with KafkaWriter(settings) as writer:
        await writer.write("spans", [b"{}"])

        async def write() -> None:
            while True:
                with suppress(WriteError):
                    await writer.write("spans", [b"{}"])

        writing = asyncio.create_task(write())
        yield settings.topics.otlp_spans
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


@pytest.mark.parametrize("client", [exporter, dashboard, endpoint])
async def test_a_client_does_not_create_a_deleted_topic(
    client: Callable[[Settings, Path], AbstractAsyncContextManager[str]],
    settings: Settings,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with client(settings, tmp_path) as topic:
        delete(settings, topic)
        await asyncio.to_thread(wait_until, lambda: f"Topic {topic} {MISSED}" in caplog.text)
        assert not exists(settings, topic)
