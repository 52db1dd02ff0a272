"""Generates the load: many interleaved sessions of ten events and one trace, with about 300 bytes per record."""

import random
import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import orjson
from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from pydantic import JsonValue

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.stages.partitioner import partition_of
from traceweir.streams.base.topics import Topics
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT

RECORDS_A_SESSION = 11
CONFIG: dict[str, JsonValue] = {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}}


def record(session_id: str, number: int, now: datetime, *, calls: int = 6) -> tuple[bool, bytes]:
    """Returns a record of a session by its number, and whether the record is the trace.

    The records of a session are, in order: start, calls, answer, model call, trace, end.
    """
    at = now.isoformat()
    base = {
        "event_id": f"{session_id}/{number}",
        "session_id": session_id,
        "invocation_id": f"{session_id}-1",
        "app_name": "benchmark",
        "occurred_at": at,
    }
    if number == 0:
        made = {"name": "lookup_order", "args": {"order": session_id, "pad": "x" * 30}}
        expected = {"final_response": {"parts": [{"text": "Your order is on its way."}]}, "tool_uses": [made] * 3}
        question = {"parts": [{"text": "Where is my order?"}]}
        return False, orjson.dumps(
            {"type": "invocation.started", "user_content": question, "reference": expected, **base}
        )
    if number <= calls:
        call = {"call_id": f"c{(number + 1) // 2}", "name": "lookup_order", **base}
        if number % 2:
            return False, orjson.dumps(
                {"type": "tool.called", "args": {"order": session_id, "pad": "x" * 30}, "note": "x" * 40, **call}
            )
        return False, orjson.dumps({"type": "tool.returned", "response": {"ok": True, "pad": "x" * 80}, **call})
    if number == calls + 1:
        answer = {
            "parts": [
                {
                    "text": "Your order ships today and should be with you on Friday; we have sent the number of the parcel by mail."
                }
            ]
        }
        return False, orjson.dumps({"type": "invocation.completed", "final_response": answer, **base})
    if number == calls + 2:
        model = {"type": "model.called", "model": "some-model", "input_tokens": 900, "output_tokens": 80}
        return False, orjson.dumps({**model, "note": "x" * 60, **base})
    if number == calls + 3:
        return True, _trace(session_id, now)
    return False, orjson.dumps({"type": "session.ended", "note": "x" * 100, **base})


def interleaved(sessions: int, open_at_a_time: int, seed: int = 1) -> Iterator[tuple[str, int]]:
    """Yields session id and record number of all sessions, drawn at random from the open sessions."""
    rnd, begun = random.Random(seed), min(sessions, open_at_a_time)
    live = [[index, 0] for index in range(begun)]
    while live:
        place = rnd.randrange(len(live))
        session = live[place]
        yield f"session-{session[0]}", session[1]
        session[1] += 1
        if session[1] == RECORDS_A_SESSION:
            if begun < sessions:
                live[place] = [begun, 0]
                begun += 1
            else:
                live[place] = live[-1]
                live.pop()


def fill(
    bootstrap_servers: str, topics: Topics, sessions: int, open_at_a_time: int = 2_000, partitions: int = 4
) -> int:
    """Writes the load to `traces` and `invocations`, on home partitions; returns the number of records.

    Raises:
        RuntimeError: The topics do not contain all records.
    """
    producer = Producer(
        {
            **IDEMPOTENT,
            "bootstrap.servers": bootstrap_servers,
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for topic in (topics.traces, topics.invocations):  # records for a partition unknown to the producer would be lost
        while len(producer.list_topics(topic, 10).topics[topic].partitions) < partitions:
            time.sleep(0.1)
    now, count = utc_now() - timedelta(seconds=60), 0
    for session_id, number in interleaved(sessions, open_at_a_time):
        is_trace, value = record(session_id, number, now)
        produce(producer, topics, session_id, is_trace, value, partitions)
        count += 1
    producer.flush(60)
    # A worker would wait without end for a record that the broker lost.
    if (written := _written_to(bootstrap_servers, topics, partitions)) != count:
        raise RuntimeError(f"the load has {written} records, not {count}; run it again, on new topics")
    return count


def _written_to(bootstrap_servers: str, topics: Topics, partitions: int) -> int:
    places = [
        TopicPartition(topic, number) for topic in (topics.traces, topics.invocations) for number in range(partitions)
    ]
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    ends = admin.list_offsets({place: OffsetSpec.latest() for place in places})
    return sum(end.result().offset for end in ends.values())


def produce(producer: Producer, topics: Topics, session_id: str, is_trace: bool, value: bytes, partitions: int) -> None:
    """Sends one record to its session's home partition."""
    key = session_id.encode()
    while True:
        try:
            producer.produce(
                topics.traces if is_trace else topics.invocations,
                value,
                key,
                partition_of(key, partitions),
                on_delivery=_written,
            )
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _written(error: object, record: Message) -> None:
    if error is not None:
        raise RuntimeError(f"a record of the load was not written to {record.topic()}: {error}")


def _trace(session_id: str, now: datetime) -> bytes:
    return orjson.dumps(
        {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": f"kp:trace:{session_id}",
            "metadata": {
                "created_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "task_domain": f"domain-{sum(session_id.encode()) % 8}",
                "success": True,
                "quality_score": 0,
                "visibility": "network",
                "privacy_level": "aggregated",
                "session_id": session_id,
            },
            "task": {"objective": "Where is my order?"},
            "steps": [
                {"step_id": 0, "type": "thought"},
                {"step_id": 1, "type": "tool_call", "tool": {"name": "lookup"}},
            ],
            "outcome": {"result_summary": "found", "confidence": 0.9},
        }
    )
