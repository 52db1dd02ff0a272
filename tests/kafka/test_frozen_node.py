"""A worker stays in its group when the node that coordinates the group hangs, and other nodes replace it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.kafka import NEEDS_NODES, kafka_home
from tests.support.kafka_cluster import KafkaCluster
from tests.support.workers import Fleet

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = pytest.mark.kafka

PREFIX, PARTITIONS = "frozen.", [0, 1, 2, 3]
DEADLINE_S = 100
"""Below the time after which a watchdog would end the worker."""


def test_a_worker_takes_over_partitions_while_the_coordinator_of_its_group_is_frozen(tmp_path: Path) -> None:
    home = kafka_home() or pytest.skip(NEEDS_NODES)
    config = tmp_path / "config.json"
    config.write_text("{}")
    with KafkaCluster(home, nodes=3) as cluster:
        servers = cluster.bootstrap_servers
        settings = Settings(kafka_bootstrap_servers=servers, topic_prefix=PREFIX, replication_factor=3)
        assert create_topics(settings).wrong == ()
        with Fleet(servers, PREFIX, tmp_path, config) as fleet:
            stays, leaves = fleet.start("stays"), fleet.start("leaves")
            while not (stays.until_ready()["partitions"] and leaves.until_ready()["partitions"]):
                time.sleep(0.05)
            group = application_id(PREFIX, STAGES)
            admin = AdminClient({"bootstrap.servers": servers, "log_level": 0, "error_cb": lambda _: None})
            coordinator = cluster.pid(admin.describe_consumer_groups([group])[group].result().coordinator.id)
            os.kill(coordinator, signal.SIGSTOP)
            leaves.kill()
            try:
                deadline = time.monotonic() + DEADLINE_S
                while stays.until_ready(DEADLINE_S)["partitions"] != PARTITIONS:
                    assert time.monotonic() < deadline, stays.log.read_text()
                    time.sleep(0.1)
            finally:
                os.kill(coordinator, signal.SIGCONT)
        assert "Traceback" not in stays.log.read_text()
