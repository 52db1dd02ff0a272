"""Measures what traceweir-client costs the agent's thread, beside a bare confluent-kafka producer."""

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer
from traceweir.client import Dimensions, QueueLimits, Recorder

from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker

TOOL_CALLS = 4_000
ROUNDS = 5
ARGS = {"origin": "ICN", "destination": "LHR", "date": "2026-03-02", "passengers": 2, "text": "a window seat " * 8}
RESULT = {"flights": [{"number": 12, "leaves": "09:40", "price": 812.5}, {"number": 14, "leaves": "13:05"}]}


def run() -> None:
    """Prints microseconds an event in the agent's thread, and the ratio to encoding and producing the same bytes."""
    with EmbeddedBroker() as broker:
        servers = broker.bootstrap_servers
        pairs = [(_recorded(servers), _produced(servers)) for _ in range(ROUNDS)]
    recorded, produced = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"  recorder: {recorded:.1f} us of the thread's CPU an event; {recorded / produced:.1f} times json and produce"
    )


def _recorded(servers: str) -> float:
    recorder = Recorder(servers, Dimensions(app_name="desk"), queue=QueueLimits(1_000_000, 10**9))
    with recorder.session(), recorder.invocation("When does it leave?") as turn:
        used = _thread_cpu(lambda: _call_tool(recorder))
        turn.answer = "At 09:40."
    assert recorder.close(60)
    counts = recorder.counts
    assert counts.dropped == 0, counts
    return used / (2 * TOOL_CALLS) * 1e6


def _call_tool(recorder: Recorder) -> None:
    with recorder.tool("find_flight", ARGS) as call:
        call.result = RESULT


def _produced(servers: str) -> float:
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000})
    envelope: dict[str, Any] = {"event_id": "e" * 32, "session_id": "s", "invocation_id": "i", "app_name": "desk"}

    def send() -> None:
        for body in ({"type": "tool.called", "args": ARGS}, {"type": "tool.returned", "response": RESULT}):
            producer.produce("bare", json.dumps(envelope | body).encode(), b"s")

    used = _thread_cpu(send)
    producer.flush(60)
    return used / (2 * TOOL_CALLS) * 1e6


def _thread_cpu(work: Callable[[], object]) -> float:
    started = time.thread_time()
    for _ in range(TOOL_CALLS):
        work()
    return time.thread_time() - started
