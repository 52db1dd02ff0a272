"""Contains requests of spans for tests of the collect stage, and what the same spans give offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from traceweir.streams.base.topics import Topics
from traceweir.streams.intake.otlp.decoding import decode_logs, decode_spans
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span as ReadSpan
from traceweir.streams.testing import START_S, Flow

TOPICS = Topics.of()
_SERVICE = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value="shop"))])


def trace_id(number: int) -> bytes:
    """Returns the id of a test's trace."""
    return (number + 1).to_bytes(16, "big")


def span(
    trace: int,
    number: int,
    parent: int | None = None,
    *,
    session: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Span:
    """Returns the span of an agent if it has no parent, else that of a tool call; `more` are further attributes."""
    begin = round(START_S * 1e9) + number * 1_000_000
    if parent is None:
        own = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "planner",
            "input.value": f"question {trace}",
            "output.value": f"answer {trace}",
        }
    else:
        own = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": f"tool_{number}",
            "gen_ai.tool.call.arguments": '{"n": 1}',
            "gen_ai.tool.call.result": '{"ok": true}',
        }
    own |= more or {}
    if session is not None:
        own["gen_ai.conversation.id"] = session
    return Span(
        trace_id=trace_id(trace),
        span_id=(trace * 1_000 + number + 1).to_bytes(8, "big"),
        parent_span_id=b"" if parent is None else (trace * 1_000 + parent + 1).to_bytes(8, "big"),
        name=f"span {number}",
        start_time_unix_nano=begin,
        end_time_unix_nano=begin + (900_000_000 if parent is None else 500_000),
        attributes=[KeyValue(key=key, value=AnyValue(string_value=found)) for key, found in own.items()],
    )


def agent_trace(number: int, *, session: str | None = "s", tools: int = 2) -> list[Span]:
    """Returns the spans of an agent that called tools, the root span last, as SDKs export them."""
    inner = [span(number, each, 0) for each in range(1, tools + 1)]
    return [*inner, span(number, 0, session=session)]


def request(*spans: Span) -> bytes:
    """Returns an OTLP request with these spans."""
    return bytes(
        TracesData(
            resource_spans=[ResourceSpans(resource=_SERVICE, scope_spans=[ScopeSpans(spans=list(spans))])]
        ).SerializeToString()
    )


def log_request(*logs: LogRecord) -> bytes:
    """Returns an OTLP request with these log records."""
    return bytes(
        LogsData(
            resource_logs=[ResourceLogs(resource=_SERVICE, scope_logs=[ScopeLogs(log_records=list(logs))])]
        ).SerializeToString()
    )


def collect_only(**options: Any) -> Flow:
    """Returns a flow with the collect stage alone."""
    return Flow(stages=("collect",), **options)


async def advance_to(flow: Flow, at: float) -> None:
    """Reads all records, sets the clock to `at` seconds after the start, and runs the stages."""
    await flow.settle()
    flow.pass_time(START_S + at - flow.now)
    await flow.settle()


async def complete(flow: Flow) -> None:
    """Runs the stages until each trace is published. After a restart the watermark is held back for a while."""
    await flow.settle()
    for _ in range(3):
        flow.pass_time(100)
        await flow.settle()


def published(flow: Flow) -> list[dict[str, Any]]:
    """Returns the events and the reasoning traces that the stage has written, in an order of their own."""
    found = [*flow.read(flow.topics.invocations), *flow.read(flow.topics.traces)]
    return ordered(message.json for message in found)


def offline(requests: Iterable[bytes], logs: Sequence[bytes] = ()) -> list[dict[str, Any]]:
    """Returns the events and the reasoning traces of requests that are read at once."""
    spans: dict[tuple[str, str], ReadSpan] = {}
    for each in requests:
        for found in decode_spans(each).spans:
            spans.setdefault((found.trace_id, found.span_id), found)
    for each in logs:
        for trace, span_id, event in decode_logs(each).logs:
            if (trace, span_id) in spans:
                spans[trace, span_id].events.append(event)
    documents: list[dict[str, Any]] = []
    for trace in {key[0] for key in spans}:
        records = read_trace([found for (each, _), found in spans.items() if each == trace])
        documents += [*records.events, *records.traces]
    return ordered(documents)


def ordered(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns documents as they are in JSON, sorted."""
    return sorted((orjson.loads(orjson.dumps(each)) for each in documents), key=orjson.dumps)
