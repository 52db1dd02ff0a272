"""Tests that runs in exports of other tools are read, or are refused by the name of what they are."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, lines, read_traceweir
from tests.support.folding import folded
from tests.support.openai_chat import NOON, events_of

from traceweir.schemas.invocation import Invocation, TokenUsage
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import ClosingReason, Session
from traceweir.schemas.turns import turns_of
from traceweir.scorers.base import MissingInput, recorded_calls
from traceweir.streams.intake.formats.base import InputContext
from traceweir.streams.intake.formats.documents import read_documents
from traceweir.streams.intake.formats.recognition import read_recognized
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR


def runs(*documents: Document) -> list[Invocation]:
    found = read_traceweir(lines(*documents))
    assert [each.problem for each in found] == [None] * len(found)
    return [turn for each in found for turn in folded(events_of(each.records))]


def only(document: Document) -> Invocation:
    (found,) = runs(document)
    return found


def question(invocation: Invocation) -> str | None:
    return None if invocation.user_content is None else invocation.user_content.text


def knows_calls(invocation: Invocation) -> bool:
    try:
        recorded_calls(invocation)
    except MissingInput:
        return False
    return True


def observed(kind: str, number: int, **more: Any) -> Document:
    return {"id": f"o{number}", "traceId": "t1", "type": kind, "startTime": f"2026-01-01T00:00:0{number}Z", **more}


def langfuse(*observations: Any, **more: Any) -> Document:
    trace = {"id": "t1", "timestamp": "2026-01-01T00:00:00.000Z", "name": "agent", "sessionId": "chat", "userId": "u1"}
    return {**trace, "input": "Weather?", "output": "It rains.", "observations": list(observations), **more}


TOOL = observed("TOOL", 2, name="weather", input={"city": "Oslo"}, output={"sky": "rain"})
MODEL = observed("GENERATION", 1, name="chat", input=[{"role": "user", "content": "Weather?"}], output="...")
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}


def test_a_trace_of_langfuse_has_its_question_its_calls_and_its_answer() -> None:
    found = only(langfuse(TOOL, MODEL, observed("SPAN", 0, name="root")))

    assert (question(found), answer(found)) == ("Weather?", "It rains.")
    assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]
    assert [each.response for each in found.tool_responses] == ['{"sky":"rain"}']


def test_an_object_without_a_question_is_named_and_one_in_a_schema_is_the_answer() -> None:
    found = only(langfuse(MODEL, TOOL, input={"city": "Oslo", "days": 3}, output={"sky": "rain", "wind": 2}))

    assert (question(found) or None, answer(found)) == (None, '{"sky":"rain","wind":2}')
    assert [each for each in found.unread or () if "object" in each] == [
        "the question is no text: 1 part of type 'object without a question'"
    ]


@pytest.mark.parametrize(
    "output", [{"error": "rate limit", "code": 429}, {"messages": [{"role": "user", "content": "Weather?"}], "n": 1}]
)
def test_an_object_that_has_a_failure_or_no_message_of_the_agent_is_no_answer(output: Document) -> None:
    found = only(langfuse(MODEL, TOOL, output=output))

    assert answer(found) is None
    assert "the answer is no text: 1 part of type 'object without an answer'" in (found.unread or [])


def test_the_calls_that_models_asked_for_count_where_langfuse_has_no_tools() -> None:
    asked = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    first = observed("GENERATION", 1, input=[{"role": "user", "content": "Weather?"}], output=asked)
    second = observed("GENERATION", 2, input=[asked, result], output={"role": "assistant", "content": "It rains."})

    found = only(langfuse(second, first))

    assert [each.name for each in found.tool_uses] == ["weather"]
    assert [each.response for each in found.tool_responses] == ["rain"]
    assert answer(found) == "It rains."


@pytest.mark.parametrize(
    ("observations", "is_known"),
    [([MODEL], True), ([], True), ([observed("SPAN", 1, name="weather")], False), (["o1"], False)],
)
def test_calls_are_unknown_where_a_step_of_langfuse_can_be_one(observations: list[Any], is_known: bool) -> None:
    found = only(langfuse(*observations))

    assert (question(found), answer(found)) == ("Weather?", "It rains.")
    assert knows_calls(found) is is_known


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"args": ["Weather?"], "kwargs": {}}, "Weather?"),
        ({"args": [], "kwargs": {"question": "Weather?"}}, "Weather?"),
        ([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Weather?"}], "Weather?"),
        ({"messages": [{"role": "user", "content": "Weather?"}]}, "Weather?"),
    ],
)
def test_the_input_of_a_trace_of_langfuse_can_have_the_form_of_its_program(given: Any, said: str) -> None:
    assert question(only(langfuse(MODEL, input=given))) == said


def test_a_trace_that_langfuse_wrote_into_a_bucket_has_json_as_texts() -> None:
    asked = json.dumps({"messages": [{"role": "user", "content": "Weather?"}]})
    said = json.dumps({"role": "assistant", "content": "It rains."})
    stored = {
        "id": "t1",
        "timestamp": "2026-01-01 00:00:00.000",
        "project_id": "p",
        "session_id": "s",
        "bookmarked": False,
    }
    found = only({**stored, "input": asked, "output": said})
    assert (question(found), answer(found)) == ("Weather?", "It rains.")


def test_an_unknown_kind_of_observation_is_named() -> None:
    context = InputContext("f", NOON)
    text = lines(langfuse(TOOL, observed("RETRIEVER", 1, output=["d"])))

    (found,) = read_recognized(TRACEWEIR, read_documents(io.BytesIO(text.encode())), context)

    assert found.problem is None
    assert list(context.unread_keys.lines("f")) == ["f: key of a transcript 'observations' is not read (1 time)"]


def turn_of_chat(name: str, minute: int, question: Any, said: str, *observations: Any, **more: Any) -> Document:
    at = {"timestamp": f"2026-01-01T00:0{minute}:00.000Z", "latency": 2.5}
    return langfuse(*observations, id=name, input=question, output=said, **at, **more)


def test_traces_of_langfuse_with_one_session_id_are_one_session_in_order_of_time() -> None:
    history = [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "It rains."}]
    later = turn_of_chat("t2", 2, [*history, {"role": "user", "content": "Tomorrow?"}], "Sun.")
    first = turn_of_chat("t1", 1, "Weather?", "It rains.", TOOL)
    other = turn_of_chat("t3", 1, "Time?", "Noon.", sessionId="other")

    found = read_traceweir(lines(later, first, other, first))

    assert [{record.session_id for record in each.records} for each in found] == [{"chat"}, {"other"}]
    chat = folded(events_of(found[0].records))
    assert [(question(each), answer(each)) for each in chat] == [("Weather?", "It rains."), ("Tomorrow?", "Sun.")]
    assert [[call.name for call in each.tool_uses] for each in chat] == [["weather"], []]
    assert [each.unread for each in chat] == [None, None]
    assert [each.latency_seconds for each in chat] == [2.5, 2.5]


def test_the_order_of_traces_without_a_time_is_that_of_the_file_and_is_named() -> None:
    first = turn_of_chat("t1", 2, "Weather?", "It rains.")
    later = {**turn_of_chat("t2", 1, "Tomorrow?", "Sun."), "timestamp": None}

    turns = runs(first, later)

    assert [question(each) for each in turns] == ["Weather?", "Tomorrow?"]
    assert [any("the order of the turns is not known" in line for line in each.unread or ()) for each in turns] == [
        True,
        True,
    ]


def test_a_turn_of_which_nothing_tells_the_calls_says_so_and_the_others_keep_theirs() -> None:
    first = turn_of_chat("t1", 1, "Weather?", "It rains.", TOOL)
    later = turn_of_chat("t2", 2, "Tomorrow?", "Sun.", observed("SPAN", 1, name="weather"))

    turns = runs(first, later)

    assert [knows_calls(each) for each in turns] == [True, False]


def of_promptfoo(**more: Any) -> Document:
    result = {
        "prompt": {"raw": "Weather?", "label": "w"},
        "vars": {},
        "success": True,
        "score": 1,
        "gradingResult": {},
        "id": "r1",
    }
    return {**result, "provider": {"id": "openai:m"}, "response": {"output": "It rains."}, **more}


def test_the_results_of_promptfoo_are_rows() -> None:
    second = of_promptfoo(id="r2", response={"output": "Sun.", "tokenUsage": {"prompt": 3, "completion": 4}})
    results = {"version": 3, "results": [of_promptfoo(latencyMs=1500), second], "stats": {}}

    found = runs({"evalId": "eval-1", "results": results, "config": {}})

    assert [(question(each), answer(each)) for each in found] == [("Weather?", "It rains."), ("Weather?", "Sun.")]
    assert found[0].latency_seconds == 1.5
    assert found[1].reported_tokens is not None
    assert found[1].reported_tokens.output_tokens == 4
    assert not knows_calls(found[0])


def test_a_result_of_promptfoo_can_have_messages_calls_an_expectation_or_an_error() -> None:
    raw = json.dumps([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Weather?"}])
    asked = only(of_promptfoo(prompt={"raw": raw, "label": "w"}, response={"output": [CALL]}))
    failed = only(of_promptfoo(response={"error": "rate limit"}, success=False))
    test = {"assert": [{"type": "equals", "value": "It rains."}]}
    (document,) = read_traceweir(lines(of_promptfoo(testCase=test)))

    assert question(asked) == "Weather?"
    assert [(each.name, each.args) for each in asked.tool_uses] == [("weather", {"city": "Oslo"})]
    assert (question(failed), failed.error) == ("Weather?", "rate limit")
    assert reference_of(document.records).final_response is not None


def reference_of(records: Any) -> Reference:
    (event, *_) = events_of(records)
    session = Session(
        session_id="s",
        segment=0,
        revision=0,
        closed_because=ClosingReason.IDLE,
        first_record_at=event.occurred_at,
        last_record_at=event.occurred_at,
        events=[event],
        traces=[],
    )
    (turn,) = turns_of(session)
    assert turn.reference is not None
    return turn.reference


BRAINTRUST = {"id": "b1", "span_id": "s1", "root_span_id": "s1", "experiment_id": "e", "is_root": True, "scores": {}}


def test_a_row_of_braintrust_is_a_row_with_its_expectation() -> None:
    document = {**BRAINTRUST, "input": {"question": "Weather?"}, "output": "It rains.", "expected": "Rain."}
    (read,) = read_traceweir(lines(document))
    failed = only({**BRAINTRUST, "input": "Weather?", "output": None, "error": "boom"})

    found = only(document)

    assert (question(found), answer(found), knows_calls(found)) == ("Weather?", "It rains.", False)
    expected = reference_of(read.records).final_response
    assert expected is not None
    assert expected.text == "Rain."
    assert failed.error == "boom"


def test_tokens_and_times_of_braintrust_are_read() -> None:
    metrics = {"start": 1767225600.25, "end": 1767225602.75, "prompt_tokens": 3, "completion_tokens": 4, "tokens": 7}
    for output in ("It rains.", {"answer": "It rains."}, [{"role": "assistant", "content": "It rains."}]):
        found = only({**BRAINTRUST, "input": "Weather?", "output": output, "metrics": metrics})

        assert answer(found) == "It rains."
        assert found.token_usage == TokenUsage(input_tokens=3, output_tokens=4)
        assert found.latency_seconds == 2.5


@pytest.mark.parametrize("metrics", [None, {"start": 9, "end": 1}, {"start": "x", "end": None}, {"end": 1767225600}])
def test_metrics_of_braintrust_that_are_not_there_are_not_invented(metrics: Any) -> None:
    found = only({**BRAINTRUST, "input": "Weather?", "output": "It rains.", "metrics": metrics})

    assert (found.token_usage, found.latency_seconds) == (None, None)


def dify(number: int, query: str, said: str, **more: Any) -> Document:
    created = 1_767_225_600 + number
    return {"id": f"m{number}", "conversation_id": "c", "inputs": {}, "query": query, "answer": said} | {
        "created_at": created,
        "message_files": [],
        **more,
    }


def test_the_messages_of_dify_are_one_conversation() -> None:
    thought = {"id": "a1", "tool": "weather", "tool_input": '{"city": "Oslo"}', "observation": "rain", "thought": ""}
    listed = [dify(2, "And now?", "Sun."), dify(1, "Weather?", "It rains.", agent_thoughts=[thought])]

    found = runs({"limit": 20, "has_more": False, "data": listed})

    assert [(question(each), answer(each)) for each in found] == [("Weather?", "It rains."), ("And now?", "Sun.")]
    assert [(each.name, each.args) for each in found[0].tool_uses] == [("weather", {"city": "Oslo"})]
    assert [each.response for each in found[0].tool_responses] == ["rain"]
    assert question(only(dify(1, "Weather?", "It rains."))) == "Weather?"


def test_messages_of_several_conversations_of_dify_are_a_session_each() -> None:
    listed = [dify(1, "Weather?", "It rains."), dify(2, "Open?", "Yes.", conversation_id="d")]
    found = read_traceweir(lines({"data": listed}))
    assert [[question(turn) for turn in folded(events_of(each.records))] for each in found] == [["Weather?"], ["Open?"]]


def test_the_tools_of_a_thought_of_dify_have_each_their_own_input_and_result() -> None:
    inputs = {"weather": {"city": "Oslo"}, "news": {"topic": "rain"}}
    thoughts = [
        {
            "id": "a1",
            "tool": "weather",
            "tool_input": json.dumps({"weather": {"city": "Bergen"}}),
            "observation": "sun",
        },
        {
            "id": "a2",
            "tool": "news;weather;news",
            "tool_input": json.dumps(inputs),
            "observation": json.dumps({"weather": "rain", "news": "none"}),
        },
        {"id": "a3", "tool": "weather;news", "tool_input": "{", "observation": "which?"},
    ]
    found = only(dify(1, "Weather?", "It rains.", agent_thoughts=thoughts))
    assert [(each.name, each.args or {}) for each in found.tool_uses] == [
        ("weather", {"city": "Bergen"}),
        ("news", {}),
        ("weather", {"city": "Oslo"}),
        ("news", {"topic": "rain"}),
        ("weather", {}),
        ("news", {}),
    ]
    assert {each.id: each.response for each in found.tool_responses} == {"a1": "sun", "a2-1": "rain", "a2-2": "none"}


def test_what_dify_has_beside_the_texts_is_named() -> None:
    image = {"id": "f", "type": "image", "url": "https://example.com/a.png", "belongs_to": "user"}
    pieces = [{"content": "Rain is likely.", "dataset_name": "d"}]
    first = dify(1, "What is this?", "A", message_files=[image], retriever_resources=pieces, error="quota")
    context = InputContext("f", NOON)
    text = lines({"data": [first, dify(2, "And now?", "Sun.")]})
    (read,) = read_recognized(TRACEWEIR, read_documents(io.BytesIO(text.encode())), context)
    turn = folded(events_of(read.records))[0]
    assert "not all of the question is text: 1 part of type 'image'" in (turn.unread or ())
    assert any("because of 'error'" in each for each in turn.unread or ())
    assert any("'retriever_resources'" in each for each in context.unread_keys.lines("f"))


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"prompt": "Weather?", "chosen": "Rain.", "rejected": "Sun."}, "a pair of answers of a preference data set"),
        (
            {"messages": [{"role": "user", "content": "q"}], "chosen": {"role": "assistant"}, "rejected": {}},
            "a pair of answers of a preference data set",
        ),
        (MODEL, "an observation of Langfuse"),
        (
            {"id": "o1", "trace_id": "t1", "project_id": "p", "type": "GENERATION", "input": "[]", "output": "a"},
            "an observation of Langfuse",
        ),
        (
            {**BRAINTRUST, "is_root": False, "span_id": "s2", "input": "q", "output": "a"},
            "a step of a trace of Braintrust",
        ),
        (
            {"event": "message", "task_id": "t", "conversation_id": "c", "answer": "It"},
            "an event of a stream of Dify, which has no question",
        ),
    ],
)
def test_what_has_no_question_and_answer_of_its_own_is_refused_by_its_name(document: Document, kind: str) -> None:
    (found,) = read_traceweir(lines(document))

    assert not found.records
    assert f"looks like {kind}: " in str(found.problem)


def test_a_sample_of_inspect_is_its_messages_and_no_row_of_braintrust() -> None:
    asked = {"role": "user", "content": "Weather?", "source": "input"}
    call = {"id": "c1", "function": "weather", "arguments": {"city": "Oslo"}, "type": "function"}
    messages = [
        asked,
        {"role": "assistant", "content": "", "source": "generate", "tool_calls": [call]},
        {"role": "tool", "content": "rain", "tool_call_id": "c1", "function": "weather"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "Rain."}, {"type": "text", "text": "It rains."}],
        },
    ]
    output = {"model": "m", "choices": [{"message": messages[3], "stop_reason": "stop"}]}
    scores = {"match": {"value": "C"}}

    found = only(
        {
            "id": 1,
            "epoch": 1,
            "input": "Weather?",
            "target": "a",
            "messages": messages,
            "output": output,
            "scores": scores,
        }
    )

    assert (question(found), answer(found)) == ("Weather?", "It rains.")
    assert [(each.name, each.args) for each in found.tool_uses] == [("weather", {"city": "Oslo"})]
    assert [each.response for each in found.tool_responses] == ["rain"]
