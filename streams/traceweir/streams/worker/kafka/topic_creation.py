"""Keeps clients from creating topics by asking for them.

With `auto.create.topics.enable`, which is Kafka's default, a broker creates a topic when a client asks for it by name,
with the brokers' default number of partitions and cleanup policy. A topic that somebody deletes under a running client
would come back in this form. Since version 4 a request for metadata can say that it only asks; aiokafka always lets it
create, and has no option.
"""

from __future__ import annotations

from typing import Any

from aiokafka.protocol.metadata import MetadataRequest

from traceweir.streams.worker.kafka.clients import client_of, prepare_connections


def create_no_topics(user: Any) -> None:
    """Lets this aiokafka consumer or producer create no topics."""
    prepare_connections(client_of(user), _only_ask)


def _only_ask(connection: Any) -> None:
    send = connection.send

    def send_without_creation(request: Any, expect_response: bool = True) -> Any:
        if isinstance(request, MetadataRequest):
            request._allow_auto_topic_creation = False
        return send(request, expect_response)

    connection.send = send_without_creation
