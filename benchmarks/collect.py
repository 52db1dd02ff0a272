"""Measures spans/s of the collect stage against decoding alone, in both encodings, and the memory of an open trace."""

import gc
import time
import tracemalloc
from collections.abc import Callable, MutableMapping
from functools import partial

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, TracesData

from benchmarks.growth import Record
from benchmarks.stages import topology_of_one_partition
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.stages.base import Stage
from traceweir.streams.base.topics import Topics
from traceweir.streams.intake.otlp.decoding import decode_spans

TOPICS = Topics.of()
SPANS_PER_TRACE = 10
TRACES_PER_REQUEST = 20
REQUESTS = 100


def run() -> None:
    """Prints spans per second and the ratio to decoding alone, then bytes per open trace."""
    for encoding, encode in ENCODINGS.items():
        requests = [encode(request_of(number)) for number in range(REQUESTS)]
        spans = REQUESTS * TRACES_PER_REQUEST * SPANS_PER_TRACE
        decoding = min(_cpu(partial(_decode, requests)) for _ in range(3))
        kept = min(_cpu(partial(_collect, requests, publish=False)) for _ in range(3))
        whole = min(_cpu(partial(_collect, requests, publish=True)) for _ in range(3))
        print(
            f"  {encoding}: decoding alone {spans / decoding:,.0f} spans/s; kept until complete {spans / kept:,.0f} "
            f"spans/s ({kept / decoding:.2f} of the CPU); published {spans / whole:,.0f} spans/s ({whole / decoding:.2f})"
        )
    requests = [_protobuf(request_of(number)) for number in range(REQUESTS)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    table: MutableMapping[bytes, bytes] = {}
    stage = _collect(requests, publish=False, table=table)
    table.clear()  # the rows are on disk in a worker
    gc.collect()
    size = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    traces = REQUESTS * TRACES_PER_REQUEST
    print(f"  an open trace of {SPANS_PER_TRACE} spans: {size / traces:,.0f} bytes of memory ({type(stage).__name__})")


def _cpu(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    work()
    return time.process_time() - started


def _decode(requests: list[bytes]) -> None:
    for each in requests:
        decode_spans(each)


def _collect(requests: list[bytes], *, publish: bool, table: MutableMapping[bytes, bytes] | None = None) -> Stage:
    """Passes the requests through a stage with a checkpoint after every ten, and returns the stage."""
    table = {} if table is None else table
    spec = topology_of_one_partition().spec("collect")
    stage = spec.new(0, table.get, lambda: None)
    now = utc_now().timestamp()
    stage.tick(now, {})
    for begin in range(0, len(requests), 10):
        batch = [
            Record(TOPICS.otlp_spans, 0, begin + place, round(now * 1000), b"", value)
            for place, value in enumerate(requests[begin : begin + 10])
        ]
        stage.apply(TOPICS.otlp_spans, batch)
        _checkpoint(stage, table)
    if publish:
        stage.tick(now + 100, {})
        while _checkpoint(stage, table):
            pass
    return stage


def _checkpoint(stage: Stage, table: MutableMapping[bytes, bytes]) -> int:
    cut = stage.cut()
    for key, row in cut.rows:
        if row is None:
            table.pop(key, None)
        else:
            table[key] = row
    return len(cut.outputs)


def request_of(number: int, traces: int = TRACES_PER_REQUEST, begin_ns: int = 1_767_225_600_000_000_000) -> TracesData:
    """Returns a request with the spans of whole traces, which begin at a time in nanoseconds since 1970."""
    first = number * traces
    spans = [
        _span(trace, place, begin_ns) for trace in range(first, first + traces) for place in range(SPANS_PER_TRACE)
    ]
    return TracesData(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])


def _span(trace: int, place: int, begin_ns: int) -> Span:
    """Returns the agent's span at place 0, else that of a model or a tool, with contents of 200 bytes."""
    text = "the quick brown fox jumps over the lazy dog " * 5
    operation = ("invoke_agent", "chat", "execute_tool")[min(place, 1 + place % 2)]
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.agent.name": "planner",
        "gen_ai.conversation.id": f"session-{trace}",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.tool.name": f"tool_{place}",
        "gen_ai.tool.call.arguments": orjson.dumps({"query": text}).decode(),
        "input.value": text,
        "output.value": text,
    }
    begin = begin_ns + place
    return Span(
        trace_id=(trace + 1).to_bytes(16, "big"),
        span_id=(trace * 100 + place + 1).to_bytes(8, "big"),
        parent_span_id=b"" if place == 0 else (trace * 100 + 1).to_bytes(8, "big"),
        name=operation,
        start_time_unix_nano=begin,
        end_time_unix_nano=begin + 1_000,
        attributes=[KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in attributes.items()],
    )


def _protobuf(request: TracesData) -> bytes:
    return bytes(request.SerializeToString())


def _json(request: TracesData) -> bytes:
    """Returns the request as the Collector writes it: ids are hexadecimal."""
    document = MessageToDict(request)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for found, span in zip(scope["spans"], request.resource_spans[0].scope_spans[0].spans, strict=True):
                found["traceId"], found["spanId"] = span.trace_id.hex(), span.span_id.hex()
                if span.parent_span_id:
                    found["parentSpanId"] = span.parent_span_id.hex()
    return orjson.dumps(document)


ENCODINGS: dict[str, Callable[[TracesData], bytes]] = {"protobuf": _protobuf, "JSON": _json}


if __name__ == "__main__":
    run()
