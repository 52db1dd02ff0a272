"""Collect: bad input becomes dead letters and costs no neighbour, and all state has a bound."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.collect import (
    TOPICS,
    advance_to,
    agent_trace,
    collect_only,
    complete,
    offline,
    published,
    request,
    span,
    trace_id,
)

from traceweir.schemas.base import MAX_IDENTIFIER_CHARS
from traceweir.schemas.dead_letter import ORIGIN, PREFIX, last_header
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES
from traceweir.streams.intake.otlp.slices import span_slices
from traceweir.streams.pipeline.collect.collecting_rules import CollectingRules
from traceweir.streams.pipeline.collect.open_trace import OpenTrace
from traceweir.streams.pipeline.collect.publication import Publication
from traceweir.streams.pipeline.collect.published import Published
from traceweir.streams.pipeline.collect.span_rows import IDENTITY_BYTES, SPAN, Entry, published_key
from traceweir.streams.testing import START_S, Flow
from traceweir.streams.tools.dead_letters.reader import FoundDeadLetter, LetterId
from traceweir.streams.tools.dead_letters.replay import resend


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (None, "empty", "no value"),
        (b"", "empty", "is empty"),
        (b"not OTLP", "invalid", "is not OTLP"),
        (request(span(1, 1))[:-3], "invalid", "perhaps it was cut"),
        (b'{"resourceLogs": []}', "invalid", "resourceLogs"),
    ],
)
@pytest.mark.parametrize("topic", [TOPICS.otlp_spans, TOPICS.spans])
async def test_a_record_that_is_no_request_is_a_dead_letter_and_its_neighbours_are_used(
    value: bytes | None, reason: str, detail: str, topic: str
) -> None:
    flow = collect_only()
    for each in (request(*agent_trace(1)), value, request(*agent_trace(2))):
        flow.send(topic, each)
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1)), request(*agent_trace(2))])
    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.stage, letter.topic, letter.offset, letter.value) == (
        reason,
        "collect",
        topic,
        1,
        value,
    )
    assert detail in letter.detail


async def test_a_request_of_spans_on_the_topic_of_logs_is_a_dead_letter() -> None:
    flow = collect_only()
    flow.send(TOPICS.otlp_logs, request(*agent_trace(1)))
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert "log records are expected here" in letter.detail


async def test_an_unusable_span_costs_only_itself() -> None:
    flow = collect_only()
    bad = span(1, 7, 0)
    bad.trace_id = bytes(16)
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1), bad))
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1))])
    (letter,) = flow.dead_letters()
    assert letter.reason == "invalid"
    assert "the trace id consists of zeros" in letter.detail


async def test_a_span_that_is_damaged_inside_is_one_dead_letter_that_can_be_replayed() -> None:
    flow = collect_only()
    bad = span(1, 7, 0)
    bad.status.code = 9  # type: ignore[assignment]  # protobuf keeps unknown numbers
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1), bad))
    await complete(flow)
    flow.send(TOPICS.otlp_spans, request(span(1, 8, 0)))
    await complete(flow)

    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.topic, letter.value) == ("invalid", TOPICS.otlp_spans, request(bad))
    assert "the status is 9" in letter.detail
    output = resend(FoundDeadLetter(LetterId(0, 0), 0, letter, replayed=False), flow.topics, 1)
    assert (output.topic, output.value) == (TOPICS.otlp_spans, request(bad))
    assert [each["name"] for each in published(flow) if each.get("type") == "tool.called"][-1] == "tool_8"


async def test_a_forwarded_record_that_is_damaged_is_replayed_to_its_first_topic() -> None:
    flow = collect_only()
    flow.send(TOPICS.spans, b"damaged", headers=[(ORIGIN, TOPICS.otlp_logs.encode())])
    await flow.settle()

    (letter,) = flow.dead_letters()
    assert resend(FoundDeadLetter(LetterId(0, 0), 0, letter, replayed=False), flow.topics, 1).topic == TOPICS.otlp_logs


async def test_a_record_from_the_future_is_a_dead_letter() -> None:
    flow = collect_only()
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1)), at=301)
    await flow.settle()

    assert [letter.reason for letter in flow.dead_letters()] == ["future_timestamp"]


async def test_a_span_that_fits_no_record_is_a_dead_letter() -> None:
    flow = collect_only(partitions=4)
    large = span(1, 7, 0, more={"gen_ai.tool.call.result": "x" * 900_000})
    flow.send(TOPICS.otlp_spans, request(*agent_trace(1), large))
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(1))])
    (letter,) = flow.dead_letters()
    assert "it can have at most 900000" in letter.detail


@pytest.mark.parametrize("limit", [{"trace_max_spans": 3}, {"trace_max_bytes": 1_500}])
async def test_spans_over_the_limit_of_a_trace_are_left_out_counted_and_said(limit: dict[str, int]) -> None:
    flow = collect_only(**limit)
    spans = agent_trace(1)
    flow.send(TOPICS.otlp_spans, request(spans[-1], *spans[:-1]))
    flow.send(TOPICS.otlp_spans, request(*(span(1, number, 0) for number in range(3, 9))))
    flow.send(TOPICS.otlp_spans, request(*agent_trace(2)))
    await complete(flow)

    counters = flow.counters("collect")
    assert counters["spans"] + counters["over_trace_limit"] == 12
    assert counters["over_trace_limit"] >= 4
    (letter,) = flow.dead_letters()
    assert letter.reason == "too_large"
    assert (
        f"trace {trace_id(1).hex()}: {counters['over_trace_limit']} spans or log records are left out" in letter.detail
    )
    assert {each["session_id"] for each in published(flow) if "session_id" in each} == {"s"}


async def test_spans_over_the_limit_do_not_keep_a_trace_open() -> None:
    """Otherwise a sender that repeats new spans every minute, and no root span, keeps the trace for ever."""
    flow = collect_only(trace_max_spans=2)
    for number in range(1, 8):
        flow.send(TOPICS.otlp_spans, request(span(1, number, 0)))
        await advance_to(flow, 40 * number)

    assert flow.counters("collect")["over_trace_limit"] == 5
    assert flow.counters("collect")["published"] == 1


async def test_one_more_open_trace_publishes_the_one_that_is_due_first() -> None:
    flow = collect_only(partition_max_traces=2)
    for number in (1, 2, 3):
        flow.send(TOPICS.otlp_spans, request(*agent_trace(number)), at=number / 10 - 1)
    await flow.settle()

    assert published(flow) == offline([request(*agent_trace(1))])
    assert flow.counters("collect")["trace_limit"] == 1
    await complete(flow)
    assert published(flow) == offline([request(*agent_trace(number)) for number in (1, 2, 3)])
    assert flow.counters("collect")["forgotten_early"] == 1


@pytest.mark.slow
async def test_a_checkpoint_publishes_at_most_500_traces() -> None:
    flow = collect_only()
    for number in range(1_100):
        flow.send(TOPICS.otlp_spans, request(span(number, 0)))
    await flow.settle()
    flow.pass_time(20)
    shares = []
    while outputs := flow.checkpoint():
        shares.append(sum(output.topic == TOPICS.traces for output in outputs))
    assert shares == [500, 500, 100]


async def test_an_event_that_fits_no_record_is_a_dead_letter_and_its_neighbours_are_published() -> None:
    flow = collect_only(trace_max_bytes=16_000_000)
    large = span(1, 1, 0, more={"gen_ai.tool.call.result": "\x01" * 400_000})  # six bytes each in JSON
    flow.send(TOPICS.otlp_spans, request(large, span(1, 0, session="s")))
    await complete(flow)

    letters = flow.dead_letters()
    assert {letter.reason for letter in letters} == {"too_large"}
    assert TOPICS.invocations in {letter.topic for letter in letters}
    types = [message.json["type"] for message in flow.read(TOPICS.invocations)]
    assert types[0] == "invocation.started"
    assert types[-1] == "invocation.completed"
    assert "tool.returned" not in types


@pytest.mark.parametrize("crash", [False, True])
async def test_a_trace_whose_publication_raises_is_set_aside_and_its_neighbours_are_published(
    monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    of = Publication.of.__func__  # type: ignore[attr-defined]

    def raising(cls: type[Publication], trace: object, *arguments: object) -> Publication:
        if trace.id == trace_id(1):  # type: ignore[attr-defined]
            raise KeyError("nobody expected this")
        return of(cls, trace, *arguments)  # type: ignore[no-any-return]

    monkeypatch.setattr(Publication, "of", classmethod(raising))
    flow = collect_only()
    for number in (1, 2):
        flow.send(TOPICS.otlp_spans, request(*agent_trace(number)))
    await flow.settle()
    if crash:
        flow.crash()
    await complete(flow)

    assert published(flow) == offline([request(*agent_trace(2))])
    (letter,) = flow.dead_letters()
    assert (letter.reason, letter.topic) == ("poison", TOPICS.otlp_spans)
    assert letter.detail.startswith("the stage collect raised KeyError")
    assert offline([letter.value or b""]) == offline([request(*agent_trace(1))])
    assert [key for key in flow.rows(b"collect/") if trace_id(1) in key] == []


async def test_a_trace_that_is_set_aside_is_divided_into_letters_that_fit_their_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def raising(*_: object, **__: object) -> None:
        raise KeyError("nobody expected this")

    flow = collect_only()
    flow.limits.learn({TOPICS.dead_letters: 100_000})
    spans = [*agent_trace(1), *(span(1, number, 0, more={"text": "x" * 40_000}) for number in range(5, 9))]
    flow.send(TOPICS.otlp_spans, request(*spans))
    with monkeypatch.context() as patched:
        patched.setattr(Publication, "of", raising)
        await complete(flow)

    letters = flow.dead_letters()
    assert len(letters) > 1
    # Each is whole, and all together are the trace.
    assert offline([letter.value or b"" for letter in letters]) == offline([request(*spans)])


async def test_the_worst_times_and_parents_cost_no_neighbour() -> None:
    flow = Flow(stages=("collect", "assemble", "score", "gate"))
    cycle = [span(1, 1, 2), span(1, 2, 1)]
    first, last = span(2, 0), span(3, 0)
    first.start_time_unix_nano = first.end_time_unix_nano = 0
    last.end_time_unix_nano = 2**63 - 1
    never = span(4, 0)
    never.start_time_unix_nano = 2**64 - 1
    flow.send(TOPICS.otlp_spans, request(*cycle, first, last, never, *agent_trace(5)), at=0)
    await complete(flow)
    await flow.finish()

    assert "s" in {each["session_id"] for each in flow.sessions()}
    assert {letter.reason for letter in flow.dead_letters()} <= {"invalid", "future_timestamp", "late"}
    assert any("at most 9223372036854775807" in letter.detail for letter in flow.dead_letters())


async def test_the_timestamp_of_early_publications_is_not_in_the_future() -> None:
    flow = collect_only(partition_max_traces=1)
    for number in (1, 2):
        flow.send(TOPICS.otlp_spans, request(*agent_trace(number)), at=0)
    await flow.settle()

    assert {message.timestamp for message in flow.read(TOPICS.invocations)} == {round(START_S * 1000)}


async def test_a_trace_with_more_documents_than_a_row_remembers_publishes_the_first_and_says_so() -> None:
    trace = OpenTrace(trace_id(1))
    whole = request(*agent_trace(1))
    for each in span_slices(whole).slices:
        trace.add(Entry(SPAN, each.span_id.encode()[:8], each.data))
    rules = CollectingRules.of(Settings())
    everything = Publication.of(trace, lambda key: None, rules, 0)

    found = Publication.of(trace, lambda key: None, replace(rules, max_documents=3), 0)

    assert found.documents == everything.documents[:3]
    assert len(found.published.identities) == 3
    *_, letter = found.outputs(TOPICS, 0, 1, 1)
    assert letter.topic == TOPICS.dead_letters
    detail = last_header(letter.headers, PREFIX + "detail") or ""
    assert detail.startswith(f"{len(everything.documents) - 3} events and reasoning traces of one trace are left out")
    assert last_header(letter.headers, PREFIX + "reason") == "too_large"
    assert letter.value == everything.documents[3].value


async def test_events_that_are_left_out_replace_nothing() -> None:
    trace, rows = OpenTrace(trace_id(1)), dict[bytes, bytes]()
    model = span(1, 2, 0, more={"gen_ai.operation.name": "chat", "output.value": "yes"})
    root, *inner = span_slices(request(span(1, 0), span(1, 1, 0), model)).slices
    rules = CollectingRules.of(Settings())

    def publish(max_documents: int) -> Publication:
        return Publication.of(trace, rows.get, replace(rules, max_documents=max_documents), 0)

    for each in inner:
        trace.add(Entry(SPAN, each.span_id.encode()[:8], each.data))
    first = publish(rules.max_documents).published
    rows[published_key(trace.id)], trace.published_parts = first.pack(), trace.count
    trace.add(Entry(SPAN, root.span_id.encode()[:8], root.data))

    assert publish(rules.max_documents).replaced == 3
    assert publish(len(first.identities) + 1).replaced == 1
    assert publish(len(first.identities)).replaced == 0


def test_the_row_of_the_most_documents_fits_a_record() -> None:
    rules = CollectingRules.of(Settings(trace_max_spans=10**9, trace_max_bytes=10**12))
    identities = frozenset(number.to_bytes(IDENTITY_BYTES, "big") for number in range(rules.max_documents))

    assert len(Published("\U0001f600" * MAX_IDENTIFIER_CHARS, identities).pack()) < MAX_OUTPUT_BYTES
