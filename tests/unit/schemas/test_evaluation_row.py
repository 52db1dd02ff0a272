"""Tests that a row in an `invocation.recorded` event becomes an invocation and its reference."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError
from tests.support.mlflow import documents, expectation, mlflow_run, mlflow_span, mlflow_trace, usage
from tests.support.scoring import NOW, make_session

from traceweir.schemas import evaluation_row
from traceweir.schemas.base import explain
from traceweir.schemas.events import EVENT, InvocationEvent
from traceweir.schemas.invocation import Content, Invocation, RetrievedChunk, TokenUsage
from traceweir.schemas.reference import Reference
from traceweir.schemas.row_texts import request_text, response_text
from traceweir.schemas.turns import Turn, turns_of

TRACE = mlflow_trace(
    mlflow_span("root", "AGENT", None, {"choices": [{"message": {"content": "from the trace"}}]}),
    mlflow_span("find", "RETRIEVER", "root", documents("from the trace")),
    mlflow_span("model", "LLM", "root", usage(3, 4)),
    execution_duration_ms=1500,
)


def event(second: int = 0, **fields: Any) -> InvocationEvent:
    moment = (NOW + timedelta(seconds=second)).isoformat()
    document = {"type": "invocation.recorded", "session_id": "s", "occurred_at": moment, **fields}
    return EVENT.validate_json(json.dumps(document))


def turn(**row: Any) -> Turn:
    [found] = turns_of(make_session("s", events=[event(row={"request": "q", **row})]))
    return found


def refusal(**fields: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        event(**fields)
    return explain(refused.value)


def test_a_row_becomes_an_invocation_and_its_reference() -> None:
    found = turn(
        request_id="r1",
        response="a",
        expected_response="b",
        expected_retrieved_context=[{"doc_uri": "d1"}, None, "d2"],
        retrieved_context=[{"doc_uri": "d2", "content": "c"}],
    )
    assert found.invocation == Invocation(
        invocation_id="r1",
        user_content=Content.of("q"),
        final_response=Content.of("a", "model"),
        retrieved_context=[RetrievedChunk(doc_uri="d2", content="c")],
    )
    assert found.reference == Reference(
        final_response=Content.of("b", "model"),
        retrieved_context=[RetrievedChunk(doc_uri="d1"), RetrievedChunk(doc_uri="d2")],
    )


def test_data_missing_in_the_row_is_read_from_its_trace() -> None:
    invocation = turn(trace=TRACE).invocation
    assert invocation.final_response == Content.of("from the trace", "model")
    assert invocation.retrieved_context == [RetrievedChunk(doc_uri="from the trace", content="of from the trace")]
    assert invocation.token_usage == TokenUsage(input_tokens=3, output_tokens=4)
    assert invocation.latency_seconds == 1.5


def asked_and_answered(**row: Any) -> tuple[Content | None, Content | None]:
    [found] = turns_of(make_session("s", events=[event(row=row)]))
    return found.invocation.user_content, found.invocation.final_response


@pytest.mark.parametrize("request_", [{}, {"request": None}, {"inputs": None}])
def test_a_row_with_only_a_trace_has_the_question_and_the_answer_of_its_root_span(request_: dict[str, None]) -> None:
    expected = (Content.of("What is RAG?"), Content.of("Retrieval with generation.", "model"))
    assert asked_and_answered(trace=mlflow_run(), **request_) == expected


@pytest.mark.parametrize(
    ("inputs", "question"),
    [
        ({"messages": [{"role": "user", "content": "q"}]}, "q"),
        ({"input": [{"role": "user", "content": "q"}]}, "q"),
        ({"query": "q", "history": []}, "q"),
        ("q", "q"),
        ({"question": "q", "k": 3}, "q"),
        ([{"role": "user", "content": [{"text": "q"}]}], "q"),
        ({"request": {"query": "q", "history": []}}, "q"),
        ({"model": "m", "contents": "q"}, "q"),
        ({"contents": "A long document.", "user_message": "q", "style": "short"}, "q"),
    ],
)
def test_the_inputs_of_a_root_span_are_read_like_a_request(inputs: Any, question: str) -> None:
    root = mlflow_span("root", "AGENT", None, "a", attributes={"mlflow.spanInputs": json.dumps(inputs)})
    assert asked_and_answered(trace=mlflow_trace(root))[0] == Content.of(question)


@pytest.mark.parametrize(
    "inputs", [{"rows": [1]}, {"user_id": "u-1"}, {"city": "Oslo", "days": 3}, {"messages": []}, True]
)
def test_inputs_without_a_question_are_named_and_are_no_question(inputs: Any) -> None:
    root = mlflow_span("root", "AGENT", None, "a", attributes={"mlflow.spanInputs": json.dumps(inputs)})
    [found] = turns_of(make_session("s", events=[event(row={"trace": mlflow_trace(root)})]))
    assert found.invocation.user_content is None
    assert [each for each in found.invocation.unread or [] if each.startswith("the question is ")]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ({"role": "assistant", "content": [{"type": "thinking", "text": "Hm."}, {"text": "a"}]}, "a"),
        ([{"choices": [{"delta": {"content": "a"}}]}, {"choices": [{"delta": {"content": "b"}}]}], "ab"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"answer": "a", "sources": ["x"]}, "a"),
        ({"result": {"text": "a"}}, "a"),
        ({"rows": 3, "ok": True}, None),
        ([{"delta": {"role": "assistant", "content": "a"}}, {"delta": {"content": "b"}}], "ab"),
        (["a ", {"content": "b"}], "a b"),
        ([{"text": "Hm.", "thought": True}, {"text": "a"}], "a"),
        ("<think>Hm.</think>a", "a"),
        ({"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, "a"),
        ({"content": {"text": "a"}}, "a"),
        ({"answer": 42}, "42"),
        ({"result": {"x": 1, "y": 2}, "text": "a"}, "a"),
        ({"error": "rate limit"}, None),
        ({"choices": [{"finish_reason": "tool_calls"}]}, None),
    ],
)
def test_an_answer_is_read_from_blocks_streams_and_objects_and_never_as_an_object_of_python(
    response: Any, answer: str | None
) -> None:
    said = asked_and_answered(request="q", response=response)[1]
    assert (said and said.text) == answer


def test_a_trace_without_inputs_and_outputs_has_neither_question_nor_answer() -> None:
    assert asked_and_answered(trace=mlflow_trace(mlflow_span("root", "AGENT"))) == (None, None)
    assert asked_and_answered(trace=mlflow_trace()) == (None, None)


def test_the_answer_can_be_a_response_of_the_responses_api() -> None:
    output = [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "a"}]}]
    trace = mlflow_trace(mlflow_span("root", "AGENT", None, {"output": output}))
    assert asked_and_answered(trace=trace)[1] == Content.of("a", "model")


def test_the_columns_of_the_row_take_precedence_over_its_trace() -> None:
    invocation = turn(trace=TRACE, response="a", retrieved_context=[]).invocation
    assert (invocation.final_response, invocation.retrieved_context) == (Content.of("a", "model"), [])


def test_the_endpoints_duration_is_the_latency_unless_the_trace_contains_one() -> None:
    assert turn(response="a", execution_time_ms=250).invocation.latency_seconds == 0.25
    assert turn(trace=TRACE, execution_time_ms=250).invocation.latency_seconds == 1.5


ASSESSED = mlflow_run(
    assessments=[
        expectation("expected_facts", ["a fact"]),
        expectation("expected_retrieved_context", [{"doc_uri": "d1"}, "d2"]),
        expectation("guidelines", ["Be kind."]),
        expectation("language", "en"),
    ]
)


def test_the_expectations_among_the_assessments_of_a_trace_are_its_reference() -> None:
    assert turn(trace=ASSESSED).reference == Reference(
        expected_facts=["a fact"],
        retrieved_context=[RetrievedChunk(doc_uri="d1"), RetrievedChunk(doc_uri="d2")],
        guidelines=["Be kind."],
    )
    trace = mlflow_run(assessments=[expectation("expected_response", "r"), expectation("guidelines", "Be kind.")])
    expected = Reference(final_response=Content.of("r", "model"), guidelines=["Be kind."])
    assert turn(trace=trace).reference == expected


def test_the_expectations_of_the_row_take_precedence_over_those_of_its_trace() -> None:
    expected = turn(trace=ASSESSED, expected_response="r", expected_retrieved_context=[]).reference
    assert expected == Reference(final_response=Content.of("r", "model"), retrieved_context=[], guidelines=["Be kind."])


def test_the_last_valid_expectation_of_a_name_counts() -> None:
    assessments = [
        expectation("expected_response", "first"),
        expectation("expected_response", "last"),
        expectation("expected_response", "overridden", valid=False),
    ]
    assert turn(trace=mlflow_run(assessments=assessments)).reference == Reference(
        final_response=Content.of("last", "model")
    )


@pytest.mark.parametrize(
    ("assessment", "why"),
    [
        (expectation("expected_facts", 7), "'expected_facts' of the trace: must be iterable of strings like [str], "),
        (expectation("expected_response", ["r"]), "'expected_response' of the trace: Input should be a valid string"),
        (expectation("guidelines", [" "]), "'guidelines' of the trace: must be text, a list of texts, or an object "),
        (
            expectation("guidelines", "", expectation={"serialized_value": {"value": "["}}),
            "'guidelines' of the trace is not JSON",
        ),
    ],
)
def test_an_expectation_in_another_shape_is_named_and_affects_no_other(assessment: dict[str, Any], why: str) -> None:
    found = turn(trace=mlflow_run(assessments=[assessment, expectation("expected_retrieved_context", ["d"])]))
    assert found.reference == Reference(retrieved_context=[RetrievedChunk(doc_uri="d")])
    [sentence] = found.invocation.unread or []
    assert sentence.startswith(f"the expectation {why}")


@pytest.mark.parametrize("assessments", [None, {}, [None], [{"assessment_name": 7}], [{"expectation": {}}]])
def test_assessments_in_another_shape_are_ignored(assessments: Any) -> None:
    assert turn(trace=mlflow_run(assessments=assessments)).reference is None


def test_a_row_that_expects_nothing_has_no_reference() -> None:
    assert turn(response="a").reference is None
    assert turn(response="a", expected_facts=[]).reference == Reference(expected_facts=[])


@pytest.mark.parametrize(
    ("guidelines", "read"),
    [
        ("Be kind.", ["Be kind."]),
        (["Be kind.", "Be brief."], ["Be kind.", "Be brief."]),
        ({"tone": ["Be kind.", "Be calm."], "length": "Be brief."}, ["Be kind.", "Be calm.", "Be brief."]),
        ([], []),
    ],
)
def test_the_guidelines_of_a_row_are_in_its_reference(guidelines: Any, read: list[str]) -> None:
    for row in ({"guidelines": guidelines}, {"expectations": {"guidelines": guidelines}}):
        assert turn(response="a", **row).reference == Reference(guidelines=read)


@pytest.mark.parametrize(
    ("guidelines", "why"),
    [
        (7, ", not a number (got 7)"),
        (["Be kind.", 7], "; [1] is a number"),
        ({"tone": 7}, ", not a number"),
        ({"tone": [["Be kind."]]}, "; [0] is a list"),
        (["Be kind.", " "], "; a text is empty"),
    ],
)
def test_guidelines_in_another_shape_are_rejected(guidelines: Any, why: str) -> None:
    rule = "must be text, a list of texts, or an object whose values are texts or lists of texts"
    found = refusal(row={"request": "q", "response": "a", "guidelines": guidelines})
    assert found == f"invocation.recorded.row.guidelines: {rule}{why}"


def test_a_column_that_is_null_is_absent() -> None:
    nothing = ("request_id", "expected_facts", "expected_retrieved_context", "retrieved_context", "trace")
    assert turn(response="a", **dict.fromkeys(nothing)) == turn(response="a")


def test_the_events_reference_takes_precedence_over_the_rows() -> None:
    recorded = event(row={"request": "q", "response": "a", "expected_response": "b"}, reference={"question": "q"})
    [found] = turns_of(make_session("s", events=[recorded]))
    assert found.reference == Reference(question="q")


def test_inputs_can_replace_the_request() -> None:
    recorded = event(row={"inputs": {"messages": [{"role": "user", "content": "hi"}]}, "response": "a"})
    [found] = turns_of(make_session("s", events=[recorded]))
    assert found.invocation.user_content == Content.of("hi")


def test_the_column_names_of_newer_versions_are_accepted() -> None:
    expectations = {"expected_facts": ["f"], "expected_retrieved_context": ["d"], "guidelines": ["Be kind."]}
    newer = {"inputs": {"query": "q"}, "outputs": "a", "expectations": expectations}
    older = {"request": {"query": "q"}, "response": "a"} | expectations
    [(found, expected)] = zip(
        turns_of(make_session("s", events=[event(row=newer)])),
        turns_of(make_session("s", events=[event(row=older)])),
        strict=True,
    )
    assert found == expected
    assert found.reference is not None


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"inputs": {"query": "q"}, "outputs": "a", "response": "a"}, "Only one of 'response' or 'outputs' is allowed"),
        ({"inputs": {"query": "q"}, "request": "q", "outputs": "a"}, "Only one of 'request' or 'inputs' is allowed"),
        ({"outputs": "a"}, "Either column 'request' or 'inputs' is required but not found"),
        ({"inputs": ["q"], "outputs": "a"}, "must contain a dictionary"),
        ({"request": "q", "outputs": "a", "expectations": ["f"]}, "must contain a dictionary"),
        (
            {"request": "q", "outputs": "a", "expected_facts": ["f"], "expectations": {"expected_facts": ["f"]}},
            "Only one of 'expected_facts' and its place in 'expectations' is allowed",
        ),
        (
            {"request": "q", "outputs": "a", "expected_facts": ["f"], "expectations": {"expected_response": "r"}},
            "Conflicting field(s)",
        ),
    ],
)
def test_a_column_under_both_names_is_rejected(row: dict[str, Any], why: str) -> None:
    assert refusal(row=row).startswith(f"invocation.recorded.row: {why}")


def test_an_unreadable_part_of_a_trace_is_kept_as_a_sentence() -> None:
    broken = mlflow_trace(mlflow_span("model", "LLM", attributes={"mlflow.spanOutputs": "{"}))
    assert turn(trace=broken).invocation.unread == ["attribute 'mlflow.spanOutputs' of span 'model' is not JSON"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            {"request": "q", "response": "a", "expected_facts": [], "expected_response": ""},
            "row: Conflicting field(s): more than one of [expected_response or expected_facts] cannot be defined",
        ),
        ({"request": "q"}, "row: Missing required field(s): response or trace"),
        (
            {"request": "q", "response": "a", "retrieved_context": [{"content": "a", "text": "b"}]},
            (
                "row.retrieved_context: must contain values of the form [doc_uri: str], [{'doc_uri': str}], "
                "or [{'doc_uri': str}, {'content': str}]; [0] has different texts in content and text"
            ),
        ),
        (
            {"request": "q", "response": "a", "retrieved_context": [{"doc_uri": "d", "score\n": 1}]},
            (
                "row.retrieved_context: must contain values of the form [doc_uri: str], [{'doc_uri': str}], "
                "or [{'doc_uri': str}, {'content': str}]; [0] has the unknown key 'score\\\\n'"
            ),
        ),
        (
            {"request": "q", "response": "a", "retrieved_context": [{"doc_uri": 1}]},
            (
                "row.retrieved_context: must contain values of the form [doc_uri: str], [{'doc_uri': str}], "
                "or [{'doc_uri': str}, {'content': str}]; [0].doc_uri is a number"
            ),
        ),
        (
            {"request": "q", "trace": '{"info": {}'},
            "row.trace: must contain valid serialized traces: it is truncated: its JSON is incomplete after 11 characters",
        ),
        ({"request": "q", "response": "a", "execution_time_ms": -1}, "row.execution_time_ms: Input should be"),
    ],
)
def test_an_invalid_row_is_rejected_with_column_and_rule(row: dict[str, Any], why: str) -> None:
    assert refusal(row=row).startswith(f"invocation.recorded.{why}")


@pytest.mark.parametrize("as_object", [False, True])
def test_every_number_in_a_trace_leaves_its_row_readable(as_object: bool) -> None:
    vast = 10**400
    spans = [mlflow_span("a", "LLM", None, usage(vast, 4), start_time=vast)]
    text = mlflow_trace(*spans, execution_duration_ms=vast, nan=None if as_object else math.nan)
    found = turn(response="r", trace=json.loads(text) if as_object else text).invocation
    assert found.token_usage == TokenUsage(output_tokens=4)
    assert found.latency_seconds is None
    assert len(found.unread or ()) == 2


def test_every_error_within_a_trace_rejects_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> None:
        raise OverflowError("secret")

    monkeypatch.setattr(evaluation_row, "read_spans", fails)
    why = refusal(row={"request": "q", "trace": "{}"})
    assert "must contain valid serialized traces: it cannot be read (OverflowError)" in why
    assert "secret" not in why


def test_several_messages_in_any_script_stay_readable() -> None:
    messages = [{"role": "user", "content": "침실"}, {"role": "user", "content": "光合作用"}]
    asked = turn(request={"messages": messages}, response="r").invocation.user_content
    assert asked is not None
    assert asked.text == '[{"role": "user", "content": "침실"}, {"role": "user", "content": "光合作用"}]'


def test_parts_in_any_script_stay_readable() -> None:
    parts = [{"type": "text", "text": "침실"}]
    found = turn(request={"query": parts}, response={"content": parts}).invocation
    assert found.user_content is not None
    assert found.user_content.text == "침실"
    assert found.final_response is not None
    assert found.final_response.text == "침실"


def test_an_event_contains_either_an_invocation_or_a_row() -> None:
    assert refusal() == "invocation.recorded: needs either invocation or row"
    both = refusal(invocation={}, row={"request": "q", "response": "a"})
    assert both == "invocation.recorded: needs either invocation or row, not both"


def test_the_latency_of_an_invocation_is_from_its_start_to_its_completion() -> None:
    started = event(0, type="invocation.started", invocation_id="i")
    completed = event(2, type="invocation.completed", invocation_id="i")
    for events, expected in [((started, completed), 2.0), ((started,), None), ((completed,), None)]:
        [found] = turns_of(make_session("s", events=list(events)))
        assert found.invocation.latency_seconds == expected


def test_an_invocation_completed_before_its_start_has_no_latency() -> None:
    completed, started = event(1, type="invocation.completed"), event(2, type="invocation.started", invocation_id="i")
    [found] = turns_of(make_session("s", events=[completed.model_copy(update={"invocation_id": "i"}), started]))
    assert found.invocation.latency_seconds is None


ASKED: Any = {"role": "user", "content": "Where?"}


@pytest.mark.parametrize(
    "request_",
    [
        {"answer": "In Oslo."},
        {"outputs": "In Oslo."},
        {"context": "Oslo lies in Norway."},
        {"expected_answer": "In Oslo."},
        {"role": "assistant", "content": "In Oslo."},
        {"messages": [{"role": ["user"], "content": None}]},
        {"messages": [{"role": "system", "content": "Be kind."}]},
        [{"role": "assistant", "content": "In Oslo."}],
    ],
)
def test_what_is_of_the_agent_or_of_the_reference_is_no_question(request_: Any) -> None:
    assert request_text(request_) is None


@pytest.mark.parametrize(
    "request_",
    [{"expected_delivery": "Friday"}, {"expected_length": "Friday"}, {"context": {"question": "Friday"}}],
)
def test_a_name_that_only_resembles_one_of_the_reference_can_be_that_of_the_question(request_: Any) -> None:
    assert request_text(request_) == "Friday"


@pytest.mark.parametrize("name", ["Reference", "expected_output"])
def test_an_object_of_the_reference_has_its_own_names(name: str) -> None:
    assert request_text({name: {"answer": "In Oslo."}}) is None


def test_the_question_before_calls_and_results_is_the_question() -> None:
    asked: Any = [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "Oslo"},
    ]
    assert request_text({"messages": asked}) == "Where?"


@pytest.mark.parametrize(
    "response",
    [
        {"query": "Where?"},
        {"input": "Where?"},
        {"context": "Oslo lies in Norway."},
        {"role": "user", "content": "Thanks."},
        {"messages": [{"role": "assistant", "content": "In Oslo."}, {"role": "user", "content": "Thanks."}]},
        {"messages": [{"role": "tool", "content": "Oslo"}]},
        {"messages": [ASKED, {"role": "assistant", "content": None, "tool_calls": []}]},
        {"messages": [ASKED, {"role": "assistant", "refusal": "No."}]},
        {"contents": [ASKED]},
        {"contents": [{"role": "model", "parts": [{"text": "Hello."}]}, ASKED]},
    ],
)
def test_what_is_of_the_user_or_of_a_tool_is_no_answer(response: Any) -> None:
    assert response_text(response) is None


@pytest.mark.parametrize("before", [[], [ASKED]], ids=["alone", "after the question"])
def test_the_last_message_in_the_contents_of_a_response_is_the_answer(before: list[Any]) -> None:
    assert response_text({"contents": [*before, {"role": "model", "parts": [{"text": "Oslo"}]}]}) == "Oslo"


def test_a_row_whose_last_message_calls_a_tool_has_no_answer_and_says_so() -> None:
    called: Any = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
    found = turn(request="Where?", response={"messages": [ASKED, called]}).invocation
    assert found.final_response is None
    assert found.unread


@pytest.mark.parametrize("text_of", [request_text, response_text])
def test_an_object_in_many_objects_is_no_text_and_ends_no_run(text_of: Any) -> None:
    nested: Any = "q"
    for _ in range(900):
        nested = {"input": [nested]} if text_of is response_text else {"input": nested}
    assert text_of(nested) is None


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
TEXT = {"type": "text", "text": "a"}
CALLED = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
SAID: dict[str, Any] = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("row", "unread"),
    [
        (
            {"request": {"messages": [{"role": "user", "content": [TEXT, IMAGE]}]}, "response": "a"},
            "not all of the question is text: 1 part of type 'image_url'",
        ),
        (
            {"request": {"messages": [{"role": "user", "content": [IMAGE]}]}, "response": "a"},
            "the question is no text: 1 part of type 'image_url'",
        ),
        (
            {"request": "q", "response": {"messages": [SAID | {"content": [TEXT, IMAGE]}]}},
            "not all of the answer is text: 1 part of type 'image_url'",
        ),
        (
            {"request": "q", "response": {"choices": [{"message": SAID}, {"message": SAID}]}},
            "1 further choice of the model was not read",
        ),
        ({"request": "q", "response": {"content": [TEXT, CALLED, {"type": "thinking", "thinking": "t"}]}}, None),
    ],
)
def test_parts_and_choices_that_are_not_read_are_said(row: dict[str, Any], unread: str | None) -> None:
    recorded = event(0, type="invocation.recorded", invocation_id="i", row=row)
    [found] = turns_of(make_session("s", events=[recorded]))
    assert found.invocation.unread == (None if unread is None else [unread])


CUT: Any = {"choices": [{"message": {"role": "assistant", "content": "It is"}, "finish_reason": "length"}]}


@pytest.mark.parametrize(
    "row",
    [
        {"response": CUT},
        {"trace": mlflow_trace(mlflow_span("root", "AGENT", None, CUT))},
        {
            "trace": mlflow_trace(
                mlflow_span("root", "AGENT", None, "It is"), mlflow_span("m", "CHAT_MODEL", "root", CUT)
            )
        },
    ],
    ids=["response", "root span", "span of the model"],
)
def test_an_answer_that_was_cut_is_the_answer_and_is_said_to_be_cut(row: Any) -> None:
    found = turn(request="What is the time?", **row).invocation
    assert found.final_response == Content.of("It is", "model")
    assert found.unread == ["not all of the answer is there: the model stopped at its limit 'length'"]


def test_parts_of_a_tools_result_in_a_trace_that_are_no_text_are_named() -> None:
    drawn = {"content": [{"type": "image", "data": "QUJDREVG", "mimeType": "image/png"}]}
    trace = mlflow_trace(mlflow_span("root", "AGENT", None, "Done."), mlflow_span("draw", "TOOL", "root", drawn))
    found = turn(request="Draw it.", trace=trace).invocation
    assert [each.response for each in found.tool_responses] == [""]
    assert found.unread == ["the result of tool 'draw' is no text: 1 part of type 'image'"]


@pytest.mark.parametrize(
    "row",
    [
        {"request": "data:image/png;base64,QUJD", "response": "data:image/png;base64,QUJD"},
        {
            "request": {"messages": [{"role": "user", "content": "data:image/png;base64,QUJD"}]},
            "response": {"choices": [{"message": {"content": "data:image/png;base64,QUJD"}}]},
        },
    ],
    ids=["texts", "messages"],
)
def test_a_row_with_data_urls_has_neither_question_nor_answer(row: dict[str, Any]) -> None:
    found = turn(**row).invocation

    assert found.unread == [f"the {part} is no text: 1 part of type 'image'" for part in ("question", "answer")]
    assert (found.user_content, found.final_response) == (None, None)


@pytest.mark.parametrize("key", ["content", "text", "page_content"])
def test_the_text_of_a_retrieved_piece_can_have_the_names_that_retrievers_give_it(key: str) -> None:
    pieces = [{"doc_uri": "d1", key: "It opens at nine."}, {key: "No document."}]

    found = turn(request="q", response="a", retrieved_context=pieces, expected_retrieved_context=pieces)

    chunks = [RetrievedChunk(doc_uri="d1", content="It opens at nine."), RetrievedChunk(content="No document.")]
    assert found.invocation.retrieved_context == chunks
    assert found.reference is not None
    assert found.reference.retrieved_context == chunks
