"""Chat transcripts: which events and which trace one gives, and what a broken one is told."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest

from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.invocation import FunctionCall, FunctionResponse
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import turns_of
from traceweir.streams.formats.base import AgentRecord, DocumentRecords, InputContext
from traceweir.streams.formats.documents import InputError, read_documents
from traceweir.streams.formats.openai_chat import OPENAI_CHAT, transcript_events
from traceweir.streams.formats.traceweir_json import TRACEWEIR, wire_record

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def says(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content} | more


def calls(*uses: tuple[str, str, Any], content: str | None = None) -> dict[str, Any]:
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in uses]
    return says(content, tool_calls=made)


def answers(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content} | more


BOOKING = [
    {"role": "system", "content": "Be kind."},
    user("A table for two, please."),
    calls(("c1", "find_table", '{"seats": 2}'), content="Let me look."),
    answers("c1", "Error: the calendar is locked"),
    calls(("c2", "find_table", '{"seats": 2, "retry": true}')),
    answers("c2", '{"table": 7}'),
    says("Table 7 is yours."),
    user("Thanks!"),
    says("See you."),
]


def convert(
    messages: list[Any], *, index: int = 1, source: str = "chats.json", base_time: datetime = NOON, **more: Any
) -> list[AgentRecord]:
    # Through JSON and back: nothing of the document is shared with what the conversion was given.
    document = orjson.loads(orjson.dumps({"messages": messages} | more))
    return transcript_events(document, index, source, base_time)


def events_of(records: list[AgentRecord]) -> list[InvocationEvent]:
    return [EVENT.validate_json(record.value) for record in records if record.kind == "event"]


def trace_of(records: list[AgentRecord]) -> ReasoningTrace:
    (trace,) = [ReasoningTrace.model_validate_json(record.value) for record in records if record.kind == "trace"]
    return trace


def session_of(records: list[AgentRecord]) -> Session:
    return Session(
        session_id=records[0].session_id or "",
        segment=0,
        revision=0,
        closed_because="session.ended",
        first_record_at=NOON,
        last_record_at=NOON,
        events=events_of(records),
        traces=[trace_of(records)],
    )


def steps_of(messages: list[Any]) -> list[tuple[str, str | None, str | None]]:
    steps = trace_of(convert(messages)).steps
    return [(step.type, step.content, step.tool.name if step.tool else None) for step in steps]


def test_a_transcript_gives_its_events_then_its_trace_then_the_end_of_its_session() -> None:
    records = convert(BOOKING)

    assert [(event.type, event.invocation_id) for event in events_of(records)] == [
        ("invocation.started", "turn-1"),
        ("response.intermediate", "turn-1"),
        ("tool.called", "turn-1"),
        ("tool.returned", "turn-1"),
        ("tool.called", "turn-1"),
        ("tool.returned", "turn-1"),
        ("invocation.completed", "turn-1"),
        ("invocation.started", "turn-2"),
        ("invocation.completed", "turn-2"),
        ("session.ended", ""),
    ]
    assert [record.kind for record in records[-2:]] == ["trace", "event"]
    assert {record.session_id for record in records} == {records[0].session_id}


def test_each_user_message_becomes_an_invocation_with_its_tools_and_its_answer() -> None:
    first, second = [turn.invocation for turn in turns_of(session_of(convert(BOOKING)))]

    assert first.user_content is not None
    assert first.user_content.text == "A table for two, please."
    assert first.tool_uses == [
        FunctionCall(id="c1", name="find_table", args={"seats": 2}),
        FunctionCall(id="c2", name="find_table", args={"seats": 2, "retry": True}),
    ]
    assert first.intermediate_data is not None
    assert getattr(first.intermediate_data, "tool_responses") == [  # noqa: B009  # one of two kinds
        FunctionResponse(id="c1", name="find_table", response={"error": "Error: the calendar is locked"}),
        FunctionResponse(id="c2", name="find_table", response='{"table": 7}'),
    ]
    assert first.final_response is not None
    assert first.final_response.text == "Table 7 is yours."
    assert second.user_content is not None
    assert second.user_content.text == "Thanks!"
    assert second.final_response is not None
    assert second.final_response.text == "See you."


def test_the_trace_tells_thoughts_calls_observations_and_recoveries() -> None:
    assert steps_of(BOOKING) == [
        ("thought", "Let me look.", None),
        ("tool_call", None, "find_table"),
        ("observation", "Error: the calendar is locked", None),
        ("error_recovery", None, "find_table"),
        ("observation", '{"table": 7}', None),
        ("thought", "Table 7 is yours.", None),
        ("thought", "See you.", None),
    ]


def test_the_trace_says_who_when_and_for_whom() -> None:
    records = convert(BOOKING)
    trace = trace_of(records)

    assert trace.id.startswith("kp:trace:")
    assert [step.step_id for step in trace.steps] == list(range(7))
    assert trace.steps[3].input == {"seats": 2, "retry": True}
    assert trace.task.objective == "A table for two, please."
    assert (trace.outcome.result_summary, trace.outcome.confidence) == ("See you.", 1.0)
    about = trace.metadata
    assert (about.framework, about.task_domain, about.success) == ("openai-chat", "general", True)
    assert (about.visibility, about.privacy_level, about.quality_score) == ("network", "aggregated", 0)
    assert about.session_id == records[0].session_id
    assert about.created_at.startswith("2026-03-01T12:00:00.0")


def test_traj_is_read_like_messages() -> None:
    records = transcript_events(orjson.loads(orjson.dumps({"traj": BOOKING})), 1, "f", NOON)
    assert trace_of(records).steps == trace_of(convert(BOOKING)).steps


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ("", ""),
        ([], ""),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        (
            [{"type": "text", "text": "look:"}, {"type": "image_url", "image_url": {"url": "data:"}}],
            "look:\n[image_url]",
        ),
        (["bare"], "bare"),
    ],
)
def test_content_is_a_string_null_or_parts(content: Any, text: str) -> None:
    started = events_of(convert([user(content), says("ok")]))[0]
    assert started.type == "invocation.started"
    assert started.user_content is not None
    assert started.user_content.text == text


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"a": [1, null]}', {"a": [1, None]}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ("[1]", {"arguments": "[1]"}),
        ('{"a": ', {"arguments": '{"a": '}),
        ('{"a": NaN}', {"arguments": '{"a": NaN}'}),
        ("7", {"arguments": "7"}),
        ([1], {"arguments": "[1]"}),
    ],
)
def test_arguments_that_are_no_json_object_are_kept_as_text(arguments: Any, kept: dict[str, Any]) -> None:
    records = convert([user("go"), calls(("c", "t", arguments))])

    called = events_of(records)[1]
    assert called.type == "tool.called"
    assert called.args == kept
    assert trace_of(records).steps[0].input == kept


@pytest.mark.parametrize(
    ("content", "more", "failed"),
    [
        ("Error: no seats", {}, True),
        ("  ERROR", {}, True),
        ('{"error": "no seats"}', {}, True),
        ('{"error": {"code": 1}}', {}, True),
        ('{"error": null, "table": 7}', {}, False),
        ('{"error": false}', {}, False),
        ('{"error": ""}', {}, False),
        ('{"note": "error"}', {}, False),
        ('["error"]', {}, False),
        ('{"error": ', {}, False),
        ("No error found", {}, False),
        ("", {}, False),
        ("sorry", {"is_error": True}, True),
        ("sorry", {"is_error": False}, False),
        ("sorry", {"status": "error"}, True),
        ("sorry", {"status": "success"}, False),
        ([{"type": "text", "text": "error: no seats"}], {}, True),
    ],
)
def test_the_call_after_a_tool_error_is_a_recovery(content: Any, more: dict[str, Any], failed: bool) -> None:
    records = convert([user("go"), calls(("c1", "t", "{}")), answers("c1", content, **more), calls(("c2", "u", "{}"))])

    returned = events_of(records)[2]
    assert returned.type == "tool.returned"
    assert (returned.error is not None, returned.response is None) == (failed, failed)
    assert trace_of(records).steps[2].type == ("error_recovery" if failed else "tool_call")


def test_of_the_calls_after_an_error_only_the_next_is_a_recovery() -> None:
    failing = [user("go"), calls(("c1", "t", "{}")), answers("c1", "Error: x")]
    after = [says("hm"), user("try again"), calls(("c2", "t", "{}"), ("c3", "u", "{}")), answers("c2", "ok")]

    types = [kind for kind, _, _ in steps_of([*failing, *after, calls(("c4", "t", "{}"))])]

    assert types == ["tool_call", "observation", "thought", "error_recovery", "tool_call", "observation", "tool_call"]


def test_parallel_calls_are_answered_by_id_not_by_place() -> None:
    messages = [user("go"), calls(("a", "first", "{}"), ("b", "second", "{}")), answers("b", "2"), answers("a", "1")]
    returned = [event for event in events_of(convert(messages)) if event.type == "tool.returned"]
    assert [(event.call_id, event.name, event.response) for event in returned] == [
        ("b", "second", "2"),
        ("a", "first", "1"),
    ]


def test_the_older_function_calls_are_understood() -> None:
    messages = [
        user("go"),
        says(None, function_call={"name": "t", "arguments": '{"a": 1}'}),
        {"role": "function", "name": "t", "content": "done"},
    ]
    records = convert(messages)

    assert [event.type for event in events_of(records)][1:3] == ["tool.called", "tool.returned"]
    assert steps_of(messages) == [("tool_call", None, "t"), ("observation", "done", None)]
    assert trace_of(records).steps[0].input == {"a": 1}


def test_a_refusal_is_what_the_agent_said() -> None:
    assert steps_of([user("go"), says(None, refusal="No.")]) == [("thought", "No.", None)]


def test_the_last_text_of_a_turn_is_its_answer_even_when_a_call_came_with_it() -> None:
    records = convert([user("go"), says("First."), calls(("c", "t", "{}"), content="Last."), answers("c", "done")])
    (turn,) = turns_of(session_of(records))
    assert turn.invocation.final_response is not None
    assert turn.invocation.final_response.text == "Last."
    types = [event.type for event in events_of(records)]
    assert types[1:] == [
        "response.intermediate",
        "tool.called",
        "tool.returned",
        "invocation.completed",
        "session.ended",
    ]


def test_a_turn_without_an_answer_is_not_completed() -> None:
    records = convert([user("go"), says("ok"), user("and?")])
    types = [event.type for event in events_of(records)]
    assert types == ["invocation.started", "invocation.completed", "invocation.started", "session.ended"]


def test_an_agent_that_speaks_first_has_an_invocation_without_a_question() -> None:
    records = convert([says("Hello?"), user("Hi."), says("Good.")])
    greeting, talk = turns_of(session_of(records))
    assert (greeting.invocation.invocation_id, greeting.invocation.user_content) == ("turn-0", None)
    assert talk.invocation.invocation_id == "turn-1"
    assert trace_of(records).task.objective == "Hi."


@pytest.mark.parametrize(
    ("messages", "objective"),
    [([user(" "), says("Hello?")], "Hello?"), ([calls(("c", "t", "{}"))], "(no objective)")],
)
def test_a_transcript_without_a_question_still_has_an_objective(messages: list[Any], objective: str) -> None:
    assert trace_of(convert(messages)).task.objective == objective


@pytest.mark.parametrize("place", ["top", "metadata"])
def test_success_confidence_and_domain_are_the_transcripts_own(place: str) -> None:
    said = {"success": False, "confidence": 0.25, "task_domain": "dining"}
    trace = trace_of(convert(BOOKING, **(said if place == "top" else {"metadata": said})))
    assert (trace.metadata.success, trace.outcome.confidence, trace.metadata.task_domain) == (False, 0.25, "dining")


def test_rewards_and_labels_change_nothing() -> None:
    labels: dict[str, Any] = {
        "reward": 0.0,
        "info": {"reward": 0.0, "success": False},
        "label": "bad",
        "score": 0,
        "passed": False,
    }
    assert convert(BOOKING, **labels) == convert(BOOKING)


def test_times_rise_from_the_base_time_by_a_millisecond_an_event() -> None:
    moments = [event.occurred_at for event in events_of(convert(BOOKING))]
    assert all((later - earlier).total_seconds() in (0.001, 0.002) for earlier, later in pairwise(moments))
    assert 0 <= (moments[0] - NOON).total_seconds() < 0.01


@pytest.mark.parametrize("created_at", ["0001-01-01T00:00:00Z", "9999-12-30T23:59:59.999Z"])
def test_a_transcript_at_an_end_of_the_calendar_is_one_like_others(created_at: str) -> None:
    records = convert(BOOKING, created_at=created_at)
    assert events_of(records)[0].occurred_at - datetime.fromisoformat(created_at) == timedelta(milliseconds=1)
    assert trace_of(records).created_at.year in (1, 9999)


@pytest.mark.parametrize("created", [1772366400, 1772366400.0, "2026-03-01T12:00:00Z", "2026-03-01T21:00:00+09:00"])
@pytest.mark.parametrize("name", ["created", "created_at"])
def test_a_transcript_that_says_when_it_was_made_is_believed(name: str, created: Any) -> None:
    told = convert(BOOKING, base_time=datetime(2020, 1, 1, tzinfo=UTC), **{name: created})
    assert events_of(told)[0].occurred_at == events_of(convert(BOOKING))[0].occurred_at


def test_the_same_file_gives_the_same_records_over_any_path() -> None:
    assert convert(BOOKING, source="chats.json") == convert(BOOKING, source="/data/in/chats.json")


def test_ids_do_not_depend_on_the_base_time() -> None:
    earlier, later = (convert(BOOKING, base_time=time) for time in (NOON, datetime(2030, 1, 1, tzinfo=UTC)))
    assert [event.event_id for event in events_of(earlier)] == [event.event_id for event in events_of(later)]
    assert trace_of(earlier).id == trace_of(later).id


@pytest.mark.parametrize(
    "other",
    [{"index": 2}, {"source": "other.json"}, {"task_id": 1}, {"trial": 1}, {"session_id": "s"}],
    ids=lambda other: next(iter(other)),
)
def test_another_transcript_has_another_session_and_other_ids(other: dict[str, Any]) -> None:
    common: dict[str, Any] = {"task_id": 0, "trial": 0}
    changed: dict[str, Any] = common | other
    one, two = convert(BOOKING, **common), convert(BOOKING, **changed)
    assert one[0].session_id != two[0].session_id
    assert not {event.event_id for event in events_of(one)} & {event.event_id for event in events_of(two)}
    assert trace_of(one).id != trace_of(two).id


def test_no_two_events_of_a_transcript_share_an_id() -> None:
    again = [user("go"), says("ok"), user("go"), says("ok")]
    ids = [event.event_id for event in events_of(convert(again))]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", ["session_id", "id", "conversation_id"])
def test_the_transcripts_own_id_is_its_session(name: str) -> None:
    for given in ("7", 7):
        own: dict[str, Any] = {name: given}
        assert convert(BOOKING, **own)[0].session_id == "7"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "neither 'messages' nor 'traj'"),
        ({"messages": []}, "messages is a list of 0"),
        ({"traj": "x"}, "traj is 'x'"),
        ({"messages": ["x"]}, "messages[0] is 'x'"),
        ({"messages": [user("a"), {"role": "robot", "content": "b"}]}, "messages[1].role is 'robot'; known roles: "),
        ({"messages": [{"content": "b"}]}, "messages[0].role is missing"),
        ({"messages": [user(7)]}, "messages[0].content is 7"),
        ({"messages": [user([7])]}, "messages[0].content[0] is 7"),
        ({"messages": [says(None, tool_calls={})], "x": 1}, "holds no message of an assistant"),
        ({"messages": [says(None, tool_calls={"a": 1})]}, "messages[0].tool_calls is an object with 'a'"),
        ({"messages": [says(None, tool_calls=[7])]}, "messages[0].tool_calls[0] is 7"),
        ({"messages": [says(None, tool_calls=[{"id": "c"}])]}, "messages[0].tool_calls[0].function is missing"),
        ({"messages": [says(None, function_call={"arguments": "{}"})]}, "messages[0].function_call is an object"),
        ({"messages": [user("anyone?")]}, "nothing to score"),
        ({"messages": [says("a")], "confidence": 1.5}, "outcome.confidence"),
        ({"messages": [says("a")], "success": "yes"}, "metadata.success"),
        ({"messages": [says("a")], "task_domain": ""}, "metadata.task_domain"),
        ({"messages": [says("a")], "created_at": "yesterday"}, "created_at must be seconds since 1970"),
        ({"messages": [says("a")], "created_at": "2026-03-01T12:00:00"}, "with its zone"),
        ({"messages": [says("a")], "created": 1e15}, "created must be seconds since 1970"),
        ({"messages": [says("a")], "created": True}, "created must be seconds since 1970"),
        ({"messages": [says("a")], "created_at": "0001-01-01T00:00:00+14:00"}, "created_at must be seconds since 1970"),
        ({"messages": [says("a")], "created_at": "9999-12-31T23:59:59-14:00"}, "created_at must be seconds since 1970"),
        ({"messages": [says("a")], "created_at": "9999-12-31T23:59:59.999Z"}, "last day of the calendar, 9999-12-31"),
        ({"messages": [says("a")], "created": 253402300799}, "created is on the last day of the calendar"),
        ({"messages": [says("a")], "session_id": ["s"]}, "session_id must be a string"),
        ({"messages": [says("a")], "session_id": "s" * 1025}, "session_id"),
    ],
)
def test_a_transcript_that_makes_no_sense_is_told_where_and_why(document: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        transcript_events(orjson.loads(orjson.dumps(document)), 3, "chats.json", NOON)
    assert str(error.value).startswith("chats.json: document 3: ")
    assert said in str(error.value)


def read_chats(*documents: Any) -> list[DocumentRecords]:
    content = b"\n".join(d if isinstance(d, bytes) else orjson.dumps(d) for d in documents)
    return list(OPENAI_CHAT.read(read_documents(io.BytesIO(content)), InputContext("chats.jsonl")))


def test_a_broken_transcript_does_not_stop_the_next() -> None:
    late = {"messages": BOOKING, "created_at": "9999-12-31T23:59:59.999Z"}
    found = read_chats(late, b"nonsense", b"[1]", {"messages": BOOKING})

    problems = [str(each.problem) for each in found if each.problem is not None]
    assert [problem.split(":")[1] for problem in problems] == [" document 1", " document 2", " document 3"]
    assert [len(each.records) for each in found] == [0, 0, 0, 11]


def test_two_transcripts_that_claim_one_session_are_not_mixed() -> None:
    one, other = {"id": "s", "messages": BOOKING}, {"id": "s", "messages": [user("go"), says("ok")]}

    first, second, again = read_chats(one, other, one)

    assert (first.problem, again.problem) == (None, None)
    assert second.records == []
    assert "session id 's' is that of document 1" in str(second.problem)
    assert again.records == first.records


def test_the_domain_of_a_transcript_that_names_none_is_an_option() -> None:
    documents = read_documents(io.BytesIO(orjson.dumps({"messages": BOOKING})))
    (found,) = OPENAI_CHAT.read(documents, InputContext("f", task_domain="dining"))
    assert trace_of(found.records).metadata.task_domain == "dining"


@pytest.mark.parametrize(
    ("raw", "kind", "session_id"),
    [
        (b'{"type": "session.ended", "session_id": "s1"}', "event", "s1"),
        (b'{"@type": "ReasoningTrace", "id": "kp:trace:1", "metadata": {"session_id": "s1"}}', "trace", "s1"),
        (b'{"@type": "ReasoningTrace", "id": "kp:trace:1", "metadata": {"session_id": null}}', "trace", "kp:trace:1"),
        (b'{"@type": "ReasoningTrace", "metadata": 7}', "trace", None),
        (b'{"type": "session.ended", "session_id": 7}', "event", None),
        (b'{"type": "session.ended", "session_id": ""}', "event", None),
        (b"{}", "event", None),
        (b"7", "event", None),
        (b"\xff", "event", None),
    ],
)
def test_a_document_on_the_wire_is_a_record_as_it_stands(raw: bytes, kind: str, session_id: str | None) -> None:
    assert wire_record(raw) == (kind, session_id, raw)
    (found,) = TRACEWEIR.read(read_documents(io.BytesIO(raw)), InputContext("f"))
    assert (found.records, found.problem) == ([wire_record(raw)], None)
