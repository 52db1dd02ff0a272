"""The pushes of a chaos round on the embedded broker: what the round writes itself refuses none of them."""

from __future__ import annotations

import asyncio

import pytest
from tests.chaos.pusher import ConfigPusher
from tests.support.ledger import PARTITIONS

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.config_topic import read_topic
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("config")]

RECORDS = 50
"""So many that each kind is among them."""


def test_no_record_that_is_no_config_refuses_the_pushes_of_a_round(embedded_broker: EmbeddedBroker) -> None:
    settings = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers, partitions=PARTITIONS)
    create_topics(settings)
    with ConfigPusher(settings, {"criteria": {}, "gate": {}}, ("agent", "shop"), seed=1) as pusher:
        for _ in range(RECORDS):
            pusher.write_refused()
    assert asyncio.run(read_topic(settings)).newer
    pusher.push_the_last()
    assert not pusher.counters
    assert list(asyncio.run(read_topic(settings)).current) == ["*"]
