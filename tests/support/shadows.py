"""Sends sessions to a live worker, and reads what it and shadows have written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.judge_retries import session
from tests.support.scoring import NOW

from traceweir.schemas.session import Session
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.testing import event, trace

PARTITIONS = 4
TOPICS = ("results", "network", "dead-letters", "candidates", "sessions", "strays")
"""The topics on which a shadow must write nothing."""


def send_sessions(servers: str, prefix: str, names: Sequence[str], app: str = "shop") -> None:
    """Sends a complete session for each name: an invocation with an answer, and a trace."""
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for number, name in enumerate(names):
        answered = event(
            "invocation.completed",
            name,
            number,
            app_name=app,
            **_texts(name),
        )
        producer.produce(f"{prefix}traces", json.dumps(trace(name, name)), name)
        for document in (answered, event("session.ended", name, number + 1, app_name=app)):
            producer.produce(f"{prefix}invocations", json.dumps(document), name)
    assert producer.flush(30) == 0


def write_closed_sessions(servers: str, prefix: str, names: Sequence[str], app: str = "shop", at_ms: int = 0) -> None:
    """Writes the sessions that a worker would close for these names to the topic `sessions`.

    Args:
        servers: The brokers.
        prefix: What the names of the topics begin with.
        names: The ids of the sessions.
        app: Their application.
        at_ms: The timestamp of the records in milliseconds since 1970; 0: now.
    """
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for name in names:
        document = closed_session(name, app)
        Session.model_validate_json(json.dumps(document))
        home = partition_of(name.encode(), PARTITIONS)
        producer.produce(f"{prefix}sessions", json.dumps(document), name, home, timestamp=at_ms)
    assert producer.flush(30) == 0


def closed_session(name: str, app: str = "shop") -> dict[str, Any]:
    """Returns the session of this name as a worker would close it: an invocation with an answer, and a trace."""
    answered = event(
        "invocation.completed",
        name,
        app_name=app,
        event_id=f"{name}-1",
        **_texts(name),
    )
    return session(name, events=[answered])


def _texts(name: str) -> dict[str, Any]:
    """Returns the answer of a session, and the answer that its reference has."""
    said, expected = ({"parts": [{"text": f"{name} ships {day}."}]} for day in ("today", "tomorrow"))
    return {"final_response": said, "reference": {"final_response": expected}}


def make_definition(**changes: Any) -> Definition:
    """Returns the definition of a shadow of all nine sessions of one partition."""
    fields: dict[str, Any] = {
        "name": "v2", "config": "{}", "config_digest": "d", "since": None, "until": None, "app": None, "sample": 1.0,
        "budget_usd": None, "sessions_id": "t", "begins": {0: 0}, "ends": {0: 9}, "created_at": NOW,
    }  # fmt: skip
    return Definition(**(fields | changes))


class Reader:
    """Reads whole topics of a prefix, committed records only."""

    def __init__(self, servers: str, prefix: str) -> None:
        self._servers, self._prefix = servers, prefix

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Returns the committed records of a topic that are JSON objects."""
        options = {
            "bootstrap.servers": self._servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        consumer = Consumer(options)
        try:
            known = consumer.list_topics(timeout=30).topics.get(self._prefix + topic)
            if known is None:
                return []
            consumer.assign([TopicPartition(self._prefix + topic, number, 0) for number in known.partitions])
            ended, found = 0, []
            while ended < len(known.partitions):
                message = consumer.poll(30)
                assert message is not None, f"{topic} was not read to its end"
                if message.error() is not None:
                    ended += 1
                elif message.value():
                    found.append(json.loads(message.value()))
            return found
        finally:
            consumer.close()

    def scores(self, topic: str = "results", metric: str | None = None) -> list[dict[str, Any]]:
        """Returns the scores on a topic, of one metric if it is given."""
        return [each for each in self.records(topic) if metric in (None, each["metric"])]

    def counts(self) -> dict[str, int]:
        """Returns the number of records of each topic on which a shadow must write nothing."""
        return {topic: len(self.records(topic)) for topic in TOPICS}
