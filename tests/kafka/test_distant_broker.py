"""Workers take over partitions from a broker in another region, where each answer takes a second."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.exporting import exporting
from tests.support.http_target import http_target
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.results import make_score, put_scores
from tests.support.short_sessions import closed, send
from tests.support.workers import Fleet

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.record_reader import RecordReader
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

PREFIX, SESSIONS = "distant.", 60
DELAY_S = 0.5
"""Time that each byte is under way in each direction, in seconds."""
WITHIN_S = 240.0
DEFAULTS = {"TRACEWEIR_SESSION_TIMEOUT_S": "10", "TRACEWEIR_HEARTBEAT_INTERVAL_S": "1"}
"""The defaults of the product, in place of those of other tests."""


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    with KafkaCluster(home, distant=True) as cluster:
        assert (
            create_topics(Settings(kafka_bootstrap_servers=cluster.bootstrap_servers, topic_prefix=PREFIX)).wrong == ()
        )
        yield cluster


def test_workers_far_from_their_broker_take_over_partitions_and_stay_in_their_group(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text("{}")
    names = [f"chat-{number}" for number in range(SESSIONS)]
    send(cluster.bootstrap_servers, PREFIX, names)
    for network in cluster.networks:
        network.delay_s = DELAY_S
    with Fleet(cluster.distant_servers, PREFIX, tmp_path, config, variables=DEFAULTS) as fleet:
        workers = [fleet.start("a"), fleet.start("b")]
        found = closed(cluster.bootstrap_servers, PREFIX, names, within_s=WITHIN_S)
        logs = "".join(worker.log.read_text() for worker in workers)
        assert found == sorted(names), logs
        assert [worker.process.poll() for worker in workers] == [None, None]
    assert "member_id was not recognized" not in logs


@pytest.mark.usefixtures("restored_fetcher")
async def test_an_exporter_far_from_its_broker_stays_in_its_group(
    cluster: KafkaCluster, caplog: pytest.LogCaptureFixture
) -> None:
    near = Settings(kafka_bootstrap_servers=cluster.bootstrap_servers, topic_prefix=PREFIX)
    scores = [make_score(f"chat-{number}") for number in range(SESSIONS)]
    # Kafka removes records with an old timestamp.
    put_scores(near.kafka_bootstrap_servers, scores, at=utc_now(), topic=near.topics.results)
    for network in cluster.networks:
        network.delay_s = DELAY_S
    distant = near.model_copy(update={"kafka_bootstrap_servers": cluster.distant_servers})
    async with http_target() as target, exporting(distant, target.url):
        await target.until(lambda target: len(set(target.ids)) == SESSIONS, WITHIN_S)

    assert len(target.ids) == SESSIONS
    assert "UnknownMemberId" not in caplog.text
    assert "failed on partition assignment" not in caplog.text


async def test_a_record_is_read_again_from_a_distant_broker(cluster: KafkaCluster) -> None:
    near = Settings(kafka_bootstrap_servers=cluster.bootstrap_servers, topic_prefix=PREFIX)
    scores = [make_score("chat")]
    put_scores(near.kafka_bootstrap_servers, scores, at=utc_now(), topic=near.topics.results)
    for network in cluster.networks:
        network.delay_s = DELAY_S
    async with RecordReader({"bootstrap_servers": cluster.distant_servers}) as reader:
        found = [await reader.read(near.topics.results, partition, 0) for partition in range(near.partitions)]
    assert [json.loads(record.value)["session_id"] for record in found if record is not None] == ["chat"]
