"""Long-running commands go on when other brokers have replaced all those that their clients know."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, suppress

import pytest
from confluent_kafka import Producer
from tests.support.exporting import exporting
from tests.support.http_target import http_target
from tests.support.results import make_score, put_scores
from tests.support.slow_network import SlowNetwork

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES
from traceweir.streams.tools.endpoint.kafka_writer import KafkaWriter
from traceweir.streams.tools.endpoint.receiver import WriteError
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.silence import UNKNOWN_AFTER_S, LastAnswer
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher")]

LOST_AFTER_S = 0.2


class Site:
    """A bootstrap address that leads to one broker after the other."""

    def __init__(self) -> None:
        self._broker = EmbeddedBroker().__enter__()
        self._network = SlowNetwork(_port(self._broker), 0)

    def __enter__(self) -> Site:
        self._network.__enter__()
        self.settings = Settings(kafka_bootstrap_servers=f"127.0.0.1:{self._network.port}", otlp_write_timeout_s=2.0)
        create_topics(self.settings, ALL_STAGES)
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.__exit__(None, None, None)
        self._network.__exit__(None, None, None)

    @property
    def servers(self) -> str:
        """The address of the broker itself."""
        return self._broker.bootstrap_servers

    def end(self) -> None:
        """Ends the broker; the address leads to no other one yet."""
        self._broker.__exit__(None, None, None)

    def replace(self) -> None:
        """Puts another broker, with another address and empty topics, in the place of this one."""
        former = self._broker
        self._broker = EmbeddedBroker().__enter__()
        create_topics(self.settings.model_copy(update={"kafka_bootstrap_servers": self.servers}), ALL_STAGES)
        self._network.target = _port(self._broker)
        former.__exit__(None, None, None)


def _port(broker: EmbeddedBroker) -> int:
    return int(broker.bootstrap_servers.rsplit(":", 1)[1])


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


async def test_the_endpoint_writes_to_the_brokers_that_replaced_its_own_and_says_so_until_then(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async with KafkaWriter(site.settings, lost_after_s=LOST_AFTER_S) as writer:
        await writer.write("spans", [b"before"])
        await asyncio.to_thread(site.end)
        while writer.problem is None:
            with suppress(WriteError):
                await writer.write("spans", [b"lost"])
            await asyncio.sleep(0)
        with pytest.raises(WriteError, match="Kafka"):
            await writer.write("spans", [b"lost"])
        await asyncio.to_thread(site.replace)
        written = False
        while not written:
            with suppress(WriteError):
                await writer.write("spans", [b"after"])
                written = True
            await asyncio.sleep(0)
        assert writer.problem is None
    assert "the client starts again from TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS" in caplog.text


async def test_the_endpoint_has_a_problem_long_before_its_client_starts_again(site: Site) -> None:
    seconds = [0.0]
    async with KafkaWriter(site.settings, last_answer=LastAnswer(lambda: seconds[0])) as writer:
        await writer.write("spans", [b"before"])
        assert writer.problem is None
        await asyncio.to_thread(site.end)
        seconds[0] += UNKNOWN_AFTER_S
        assert writer.problem == "no Kafka broker has answered for more than 15 s: check that the brokers run"


async def test_an_exporter_reads_from_the_brokers_that_replaced_its_own(site: Site) -> None:
    def put(name: str) -> str:
        score = make_score(name)
        put_scores(site.servers, [score])
        return score.result_id

    async with http_target() as target:
        before = put("before")
        async with exporting(site.settings, target.url, lost_after_s=LOST_AFTER_S):
            await target.until(lambda target: before in target.ids)
            await asyncio.to_thread(site.replace)
            after = put("after")
            await target.until(lambda target: after in target.ids)


async def test_who_follows_a_topic_reads_from_the_brokers_that_replaced_its_own(site: Site) -> None:
    topic = site.settings.topics.results
    async with (
        BoundedReader(site.settings, topic, RuntimeError, partitions=[0]) as reader,
        aclosing(reader.following(lambda _: None, silent_s=LOST_AFTER_S)) as following,  # type: ignore[type-var]
    ):
        reading = asyncio.ensure_future(anext(following))
        await asyncio.to_thread(site.replace)
        producer = Producer({"bootstrap.servers": site.servers, "log_level": 0})
        producer.produce(topic, b"after", partition=0)
        producer.flush(30)
        assert (await reading).value == b"after"
