"""Generates OTLP requests as a Collector's Kafka exporter writes them, and computes what they give offline."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Literal

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData
from tests.support.collect import offline
from tests.support.ledger import PARTITIONS, Refused, Sending

Document = dict[str, Any]
Encoding = Literal["protobuf", "json"]

WITHOUT_ROOT = 0.1
"""The share of traces whose root span never comes."""
REPEATED = 0.08
"""The share of requests that are sent again, on a random partition."""
_QUESTION = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is my order?"}]}])
_ANSWER = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "It arrives on Monday."}]}])


class SpanLedger:
    """Emits the spans of many traces, interleaved at random, in requests that cut the traces anywhere.

    A request is protobuf or JSON, holds spans of one to three services, and goes to a random partition. Some requests
    are sent again at once or later.
    """

    def __init__(self, seed: int, live: int = 30) -> None:
        self.sent: Counter[str] = Counter()
        """Number of requests and spans by kind."""
        self.traces: set[str] = set()
        """The ids of all traces."""
        self.refused: list[Refused] = []
        """The records, not of this ledger, that must become dead letters."""
        self._random = random.Random(f"spans {seed}")
        self._seed, self._live, self._made = seed, live, 0
        self._waiting: list[list[Span | LogRecord]] = []
        self._again: list[Sending] = []
        self._requests: list[bytes] = []
        self._logs: list[bytes] = []

    def records(self, count: int, now: float) -> list[Sending]:
        """Returns the next requests; `now` is in seconds since 1970."""
        found: list[Sending] = []
        while len(found) < count:
            while len(self._waiting) < self._live:
                self._waiting.append(self._trace(now))
            found += self._next()
        return found

    def rest(self, now: float) -> list[Sending]:
        """Returns all remaining requests, so that every trace is complete."""
        found: list[Sending] = []
        while self._waiting:
            found += self._next()
        return [*found, *self._again]

    def documents(self) -> list[Document]:
        """Returns the events and reasoning traces that the same requests give offline."""
        return offline(self._requests, self._logs)

    # A request

    def _next(self) -> list[Sending]:
        rnd = self._random
        chosen: dict[int, list[Span]] = defaultdict(list)
        logs: list[LogRecord] = []
        for _ in range(rnd.randint(1, 3)):
            if not self._waiting:
                break
            place = rnd.randrange(len(self._waiting))
            trace = self._waiting[place]
            for _ in range(min(len(trace), rnd.randint(1, 4))):
                part = trace.pop(0)
                if isinstance(part, LogRecord):
                    logs.append(part)
                else:
                    chosen[rnd.randrange(3)].append(part)
            if not trace:
                self._waiting.pop(place)
        encoding: Encoding = rnd.choice(("protobuf", "json"))
        found: list[Sending] = []
        if chosen:
            value = encoded(_traces_data(chosen), encoding)
            self._requests.append(value)
            found.append(Sending("otlp_spans", rnd.randrange(PARTITIONS), None, value))
        if logs:
            value = encoded(_logs_data(logs), encoding)
            self._logs.append(value)
            found.append(Sending("otlp_logs", rnd.randrange(PARTITIONS), None, value))
        self.sent[encoding] += len(found)
        for each in list(found):
            if rnd.random() < REPEATED:
                self.sent["repeated"] += 1
                again = each._replace(partition=rnd.randrange(PARTITIONS))
                if rnd.random() < 0.5:
                    found.append(again)
                else:
                    self._again.append(again)
        if self._again and rnd.random() < REPEATED:
            found.append(self._again.pop(0))
        return found

    # A trace

    def _trace(self, now: float) -> list[Span | LogRecord]:
        """Returns the spans and log records of a trace in the order in which they are sent: inner spans first."""
        rnd = self._random
        self._made += 1
        trace_id = rnd.randbytes(16)
        self.traces.add(trace_id.hex())
        begin_ns = int(now * 1e9)
        session = {"gen_ai.conversation.id": f"s{self._seed}-{self._made}"} if rnd.random() < 0.8 else {}

        def span(number: int, parent: int | None, name: str, attributes: dict[str, str]) -> Span:
            start = begin_ns + number * 1_000_000
            return Span(
                trace_id=trace_id,
                span_id=_span_id(trace_id, number),
                parent_span_id=b"" if parent is None else _span_id(trace_id, parent),
                name=name,
                kind=Span.SPAN_KIND_INTERNAL,
                start_time_unix_nano=start,
                end_time_unix_nano=start + (900_000_000 if parent is None else 500_000),
                attributes=[KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in attributes.items()],
            )

        root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": rnd.choice(("planner", "seller"))}
        root |= {"input.value": f"question {self._made}", "output.value": f"answer {self._made}"} | session
        inner: list[Span | LogRecord] = []
        for number in range(1, 1 + rnd.randint(0, 6)):
            if rnd.random() < 0.6:
                call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": rnd.choice(("look_up", "order"))}
                call |= {"gen_ai.tool.call.arguments": json.dumps({"n": rnd.randrange(3)})}
                call |= {"gen_ai.tool.call.result": json.dumps({"text": "ok " * rnd.choice((1, 1, 1, 2_000))})}
                inner.append(span(number, 0, "tool", call))
                continue
            chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "model-1"}
            if rnd.random() < 0.5:
                inner.append(span(number, 0, "chat", chat | {"gen_ai.output.messages": _ANSWER}))
                continue
            inner.append(span(number, 0, "chat", chat))
            inner.append(_log(trace_id, number, begin_ns + number * 1_000_000))
        rnd.shuffle(inner)
        self.sent["joined"] += len(inner)
        # A trace without any span would have a log record alone, from which no event can be read.
        if rnd.random() < WITHOUT_ROOT and any(isinstance(each, Span) for each in inner):
            return inner
        self.sent["joined"] += 1
        return [*inner, span(0, None, "agent", root)]


def encoded(data: TracesData | LogsData, encoding: Encoding) -> bytes:
    """Returns a request in one of the encodings of the Collector's Kafka exporter."""
    if encoding == "protobuf":
        return bytes(data.SerializeToString())
    return json.dumps(_with_hexadecimal_ids(MessageToDict(data))).encode()


def _with_hexadecimal_ids(found: Any) -> Any:
    """Returns a document of protobuf's JSON as OTLP's JSON, in which ids are hexadecimal in place of base64."""
    if isinstance(found, list):
        return [_with_hexadecimal_ids(each) for each in found]
    if not isinstance(found, dict):
        return found
    ids = {"traceId", "spanId", "parentSpanId"}
    return {
        name: base64.b64decode(value).hex() if name in ids else _with_hexadecimal_ids(value)
        for name, value in found.items()
    }


def _traces_data(chosen: dict[int, list[Span]]) -> TracesData:
    return TracesData(
        resource_spans=[
            ResourceSpans(resource=_service(number), scope_spans=[ScopeSpans(spans=spans)])
            for number, spans in chosen.items()
        ]
    )


def _logs_data(logs: list[LogRecord]) -> LogsData:
    scopes = [ScopeLogs(log_records=logs)]
    return LogsData(resource_logs=[ResourceLogs(resource=_service(0), scope_logs=scopes)])


def _log(trace_id: bytes, number: int, at_ns: int) -> LogRecord:
    attributes = {"gen_ai.input.messages": _QUESTION, "gen_ai.output.messages": _ANSWER}
    return LogRecord(
        trace_id=trace_id,
        span_id=_span_id(trace_id, number),
        time_unix_nano=at_ns,
        event_name="gen_ai.client.inference.operation.details",
        attributes=[KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in attributes.items()],
    )


def _service(number: int) -> Resource:
    return Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=f"service-{number}"))])


def _span_id(trace_id: bytes, number: int) -> bytes:
    return trace_id[:6] + (number + 1).to_bytes(2, "big")


def documents_by_session(documents: list[Document]) -> Iterator[tuple[str, Document]]:
    """Yields each document with its session."""
    for each in documents:
        yield each.get("session_id") or each["metadata"]["session_id"], each
