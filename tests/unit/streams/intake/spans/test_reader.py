"""A trace gives the same events for any order, repetition and shape of its spans."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import orjson
import pytest
from tests.support.otlp_recordings import load, names, traces_of

from traceweir.schemas.events import EVENT
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.intake.spans.reader import TraceRecords, read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent

TRACE = "0af7651916cd43dd8448eb211c80319c"
SECOND = 10**9


def span(number: int, parent: int = 0, **fields: Any) -> Span:
    defaults: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_id": f"{parent:016x}" if parent else "",
        "name": "step",
        "start_ns": number * SECOND,
        "end_ns": (number + 1) * SECOND,
        "attributes": {},
    }
    return Span(**(defaults | fields))


def agent(number: int = 1, parent: int = 0, attributes: dict[str, Any] | None = None) -> Span:
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk", **(attributes or {})}
    return span(number, parent, end_ns=90 * SECOND, attributes=told)


def chat(number: int, parent: int = 1, question: str = "Open?", answer: str = "Yes.", **attributes: Any) -> Span:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": question}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]),
        **attributes,
    }
    return span(number, parent, attributes=told)


def types(records: TraceRecords) -> list[str]:
    return [event["type"] for event in records.events]


@cache
def read_recording(name: str) -> dict[str, TraceRecords]:
    """Returns what is read of each trace of a recording, by the id of the trace."""
    return {trace_id: read_trace(spans) for trace_id, spans in traces_of(load(name).spans).items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_order_and_repetition_of_spans_change_nothing(name: str) -> None:
    chance = random.Random(name)
    for trace_id, spans in traces_of(load(name).spans).items():
        expected = read_recording(name)[trace_id]
        shuffled = [*spans, *chance.sample(spans, k=len(spans) // 2)]
        chance.shuffle(shuffled)
        assert read_trace(shuffled) == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_event_ids_are_unique_and_times_rise(name: str) -> None:
    for events in (records.events for records in read_recording(name).values()):
        assert [each for each, count in Counter(event["event_id"] for event in events).items() if count > 1] == []
        times = [event["occurred_at"] for event in events]
        assert times == sorted(set(times))


def test_invocations_that_name_the_same_call_have_event_ids_of_their_own() -> None:
    """The span above both is missing: one step has the model that asks for the call, the other one has the tool."""
    asked = {"type": "tool_call", "id": "call-1", "name": "look", "arguments": {"city": "Rome"}}
    told = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asked]}])}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "call-1"}
    first = replace(agent(1, 8), end_ns=5 * SECOND)
    second = replace(agent(11, 9), end_ns=15 * SECOND)
    spans = [first, chat(2, 1, **told), second, span(12, 11, attributes=tool)]
    events = read_trace(spans).events
    assert len([event for event in events if event["type"] == "tool.called"]) == 2
    assert [each for each, count in Counter(event["event_id"] for event in events).items() if count > 1] == []
    known = {event["event_id"] for event in read_trace(spans[:2]).events if event["type"] == "tool.called"}
    assert known <= {event["event_id"] for event in events}


def test_the_log_records_of_all_versions_of_a_span_are_kept() -> None:
    def log(role: str, text: str) -> SpanEvent:
        return SpanEvent(f"gen_ai.{role}", SECOND, {}, {"content": text})

    model = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    one = span(2, 1, attributes=model, events=[log("user.message", "Open?")])
    other = span(2, 1, attributes={**model, "gen_ai.usage.input_tokens": 3}, events=[log("choice", "Yes.")])
    records = read_trace([agent(), one, other])
    assert read_trace([other, one, agent()]) == records
    texts = {
        event["type"]: (event.get("user_content") or event.get("final_response") or {}).get("parts")
        for event in records.events
    }
    assert texts["invocation.started"] == [{"text": "Open?"}]
    assert texts["invocation.completed"] == [{"text": "Yes."}]


def test_a_late_span_keeps_the_ids_of_the_events_that_were_read_without_it() -> None:
    inner = [agent(2, 1), chat(3, 2)]
    before, after = read_trace(inner), read_trace([agent(1), *inner])
    assert (before.has_root, after.has_root) == (False, True)
    assert {event["event_id"] for event in before.events} <= {event["event_id"] for event in after.events}
    assert {event.get("invocation_id") for event in before.events} == {
        event.get("invocation_id") for event in after.events
    }


def test_a_trace_without_a_session_is_a_session_that_ends() -> None:
    records = read_trace([agent(), chat(2)])
    assert records.session_ids == (TRACE,)
    assert types(records)[-1] == "session.ended"


def test_the_session_of_the_outermost_span_wins_and_does_not_end() -> None:
    records = read_trace(
        [agent(1, 0, {"session.id": '"outer"'}), agent(2, 1, {"gen_ai.conversation.id": "inner"}), chat(3, 2)]
    )
    assert records.session_ids == ("outer",)
    assert "session.ended" not in types(records)


def test_several_outermost_agents_are_several_invocations() -> None:
    first = replace(agent(1, 9), end_ns=5 * SECOND)
    second = replace(agent(11, 9), span_id=f"{11:016x}")
    records = read_trace([span(9, name="POST /chat"), first, chat(2), second, chat(12, 11, "And on Sunday?", "No.")])
    questions = [
        event["user_content"]["parts"][0]["text"] for event in records.events if event["type"] == "invocation.started"
    ]
    assert questions == ["Open?", "And on Sunday?"]
    assert len(records.traces) == 2


def test_cyclic_parents_end() -> None:
    records = read_trace([replace(agent(1), parent_id=f"{2:016x}"), chat(2)])
    assert types(records)[0] == "invocation.started"
    assert not records.has_root


@pytest.mark.slow
def test_a_deep_trace_of_ten_thousand_spans_is_read() -> None:
    chain = [span(number, number - 1, name="step") for number in range(2, 10_000)]
    records = read_trace([agent(), *chain, chat(10_000, 9_999)])
    assert Counter(types(records))["model.called"] == 1


@pytest.mark.slow
def test_ten_thousand_tool_calls_are_read_once_each() -> None:
    tools = [
        span(number, 1, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"})
        for number in range(2, 10_000)
    ]
    assert Counter(types(read_trace([agent(), *tools])))["tool.called"] == 9_998


def test_own_spans_and_judge_calls_are_left_out() -> None:
    own = [replace(each, scope="traceweir") for each in (agent(), chat(2))]
    judge = span(5, 1, attributes={"openinference.span.kind": "EVALUATOR"})
    assert read_trace([*own, own[0]]) == TraceRecords(own_spans=2)
    assert read_trace([*own, chat(7)]).own_spans == 2
    of_a_service = [replace(each, resource={"service.name": "traceweir-agents"}) for each in (agent(), chat(2))]
    assert types(read_trace(of_a_service)) == types(read_trace([agent(), chat(2)]))
    with_judge = read_trace([agent(), chat(2), judge, chat(6, 5, "Rate this", "5")])
    assert Counter(types(with_judge))["model.called"] == 1


def test_the_visibility_is_private_unless_it_is_given() -> None:
    spans = [agent(), chat(2)]
    assert read_trace(spans).traces[0]["metadata"]["visibility"] == "private"
    assert read_trace(spans, visibility="network").traces[0]["metadata"]["visibility"] == "network"


@pytest.mark.parametrize(
    ("state", "probability"),
    [
        ("ot=th:8", 0.5),
        ("x=1,ot=rv:1;th:c", 0.25),
        ("ot=th:zz", None),
        ("ot=th:-8", None),
        ("ot=th:ffffffffffffff", None),
        ("", None),
    ],
)
def test_the_sampling_probability_is_kept(state: str, probability: float | None) -> None:
    event = read_trace([replace(agent(), trace_state=state), chat(2)]).events[0]
    assert event.get("sampling_probability") == probability


def test_the_dimensions_are_those_that_are_known() -> None:
    resource = {"service.name": "shop", "service.version": "2", "deployment.environment.name": "prod"}
    event = read_trace([replace(agent(1, 0, {"user.id": "u"}), resource=resource), chat(2)]).events[0]
    known = {
        "app_name": "shop",
        "agent_name": "desk",
        "agent_version": "2",
        "environment": "prod",
        "model": "m",
        "user_id": "u",
    }
    assert known.items() <= event.items()
    assert event["trace_context"] == {"trace_id": TRACE, "span_id": f"{1:016x}"}
    unnamed = read_trace([replace(agent(), resource={"service.name": "unknown_service:python"}), chat(2)]).events[0]
    assert "app_name" not in unnamed
    assert "user_id" not in unnamed


def test_the_labels_are_those_of_span_and_resource_and_the_tags() -> None:
    resource = {"traceweir.label.team": "search", "traceweir.label.tier": "gold"}
    told = {"traceweir.label.tier": 2, "tag.tags": ["beta", "x" * 257, 7], "langsmith.span.tags": "beta, slow"}
    event = read_trace([replace(agent(1, 0, told), resource=resource), chat(2)]).events[0]
    assert event["labels"] == {"team": "search", "tier": "2", "beta": "true", "slow": "true"}
    many = {f"traceweir.label.{number}": "x" for number in range(9)}
    event = read_trace([agent(1, 0, many), chat(2)]).events[0]
    assert list(event["labels"]) == [str(number) for number in range(8)]
    assert "labels" not in read_trace([agent(), chat(2)]).events[0]


def test_a_name_that_is_too_long_is_cut_so_that_no_event_is_lost() -> None:
    long = "x" * 400_000
    resource = {"service.name": long, "service.version": long, "deployment.environment": long}
    told = {"gen_ai.agent.name": long, "traceweir.label.team": long, "traceweir.label.tier": "gold", "user.id": long}
    models: dict[str, Any] = {"gen_ai.request.model": long, "gen_ai.response.model": long}
    asked = chat(2, **models)
    for document in read_trace([replace(agent(1, 0, told), resource=resource), asked]).events[:-1]:
        event = EVENT.validate_json(json.dumps(document))
        assert {event.app_name, event.agent_name, event.agent_version, event.environment, event.model} == {long[:256]}
        assert event.labels == {"tier": "gold"}
        assert event.user_id is None


HOSTILE: list[Any] = [
    "",
    "{",
    "[" * 5_000,
    '{"a":' * 3_000,
    "\ud800\x00",
    b"\xff",
    2**70,
    float("nan"),
    [[[]]],
    {"role": {}},
    True,
    None,
]


@cache
def keys_of_recordings() -> frozenset[str]:
    """Returns the names of the attributes of the first spans of each recording."""
    return frozenset(key for name in names() for each in load(name).spans[:40] for key in each.attributes)


@pytest.mark.slow
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: f"{type(value).__name__}-{str(value)[:6]!a}")
def test_values_of_every_type_at_every_place_give_valid_documents(value: Any) -> None:
    keys = keys_of_recordings()
    kinds: list[dict[str, Any]] = [
        {"openinference.span.kind": "AGENT"},
        {"openinference.span.kind": "LLM"},
        {"openinference.span.kind": "TOOL"},
        {"openinference.span.kind": "RETRIEVER"},
    ]
    spans = [
        span(number, min(number - 1, 1), attributes={**dict.fromkeys(keys, value), **kind}, start_ns=2**63 - 1)
        for number, kind in enumerate(kinds, 1)
    ]
    records = read_trace(spans)
    for event in records.events:
        EVENT.validate_json(json.dumps(event))
    for trace in records.traces:
        ReasoningTrace.model_validate_json(json.dumps(trace))


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_half_a_surrogate_pair_in_every_text_of_a_recording_can_still_be_written(name: str) -> None:
    def broken(value: Any) -> Any:
        if not isinstance(value, str) or value.isupper():  # the kinds of spans are in upper case
            return value
        return value.replace('": "', '": "\\ud83d') if value.startswith(("{", "[")) else f"{value} \ud83d"

    kinds = {
        "gen_ai.operation.name",
        "traceloop.span.kind",
        "langsmith.span.kind",
        "langfuse.observation.type",
        "haystack.component.type",
        "ai.operationId",
    }
    spans = [
        replace(
            each,
            name=each.name if each.name.startswith("haystack.") else broken(each.name),  # it is the kind there
            attributes={key: value if key in kinds else broken(value) for key, value in each.attributes.items()},
        )
        for each in load(name).spans
    ]
    found = [read_trace(trace) for trace in traces_of(spans).values()]
    assert any(each.events for each in found)
    for each in found:
        orjson.dumps([each.events, each.traces])  # raises for a text that has no UTF-8


def test_a_call_of_the_history_does_not_take_the_span_of_a_later_call() -> None:
    def part(day: str, call: str) -> dict[str, Any]:
        return {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": call, "name": "look", "arguments": {"day": day}}],
        }

    history = [{"role": "user", "parts": [{"type": "text", "content": "Open?"}]}, part("Sunday", "look_0")]
    content = {
        "gen_ai.input.messages": json.dumps(history),
        "gen_ai.output.messages": json.dumps([part("Monday", "c2")]),
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c2"}
    bare = [chat(2, 1, **content), span(3, 1, attributes=tool)]
    called = [event for event in read_trace(bare).events if event["type"] == "tool.called"]
    assert [(each.get("call_id"), each["args"]["day"]) for each in called] == [(None, "Sunday"), ("c2", "Monday")]


def test_the_steps_of_half_a_trace_are_one_invocation() -> None:
    """The spans above the steps have not come; the steps alone repeat the calls of each other's model."""
    chain = {"openinference.span.kind": "CHAIN"}
    steps = [span(2, 91, attributes=chain), chat(3, 2), span(4, 92, attributes=chain), chat(5, 4)]
    found = read_trace(steps)
    assert Counter(types(found))["invocation.started"] == 1
    assert len({event["invocation_id"] for event in found.events if "invocation_id" in event}) == 1

    found = read_trace([*steps, agent(1), chat(6, 1)])
    assert Counter(types(found))["invocation.started"] == 1
    assert Counter(types(found))["model.called"] == 3


def test_a_whole_number_of_more_than_64_bits_is_a_text() -> None:
    asked = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "pay",
        "gen_ai.tool.call.arguments": f'{{"amount": {10**30}, "fee": {2**64 - 1}, "gain": {-(2**63)}}}',
    }
    records = read_trace([agent(), span(2, 1, attributes=asked)])
    (called,) = [orjson.loads(orjson.dumps(event)) for event in records.events if event["type"] == "tool.called"]
    assert called["args"] == {"amount": str(10**30), "fee": 2**64 - 1, "gain": -(2**63)}
