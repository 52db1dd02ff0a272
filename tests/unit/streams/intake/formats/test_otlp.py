"""OTLP files: the spans of all files are one input, and what is unusable is named and costs nothing else."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.cli_inputs import WriteInput, write_input
from tests.support.command_line import Run
from tests.support.paths import ROOT

from traceweir.schemas.score import Score
from traceweir.schemas.trace import Visibility
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.files import read_inputs
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.intake.formats.unread_keys import UnreadKeys
from traceweir.streams.intake.spans import reader

__all__ = ["write_input"]

EXAMPLE = ROOT / "examples/otlp/spans.jsonl"
REQUESTS = EXAMPLE.read_bytes().splitlines()


def read(*files: bytes, visibility: Visibility = "private") -> list[DocumentRecords]:
    streams = [io.BytesIO(content) for content in files]
    return list(
        read_inputs(
            streams, input_format("otlp"), task_domain="general", max_session_bytes=800_000, visibility=visibility
        )
    )


def values(found: Sequence[DocumentRecords]) -> list[bytes]:
    return [record.value for each in found for record in each.records]


def documents(found: Sequence[DocumentRecords]) -> list[Any]:
    return [orjson.loads(value) for value in values(found)]


def test_the_example_is_a_session_of_two_invocations() -> None:
    found = read(EXAMPLE.read_bytes())
    assert {record.session_id for each in found for record in each.records} == {"booking-7"}
    events = [each for each in documents(found) if "type" in each]
    started = [each["user_content"]["parts"] for each in events if each["type"] == "invocation.started"]
    assert started == [
        [{"text": "Find a flight from Seoul to London on 2 March."}],
        [{"text": "Is there an earlier one?"}],
    ]
    (called,) = [each for each in events if each["type"] == "tool.called"]
    assert (called["name"], called["args"]) == (
        "search_flights",
        {"origin": "ICN", "destination": "LHR", "date": "2026-03-02"},
    )
    tokens = [(each["input_tokens"], each["output_tokens"]) for each in events if each["type"] == "model.called"]
    assert tokens == [(212, 31), (287, 24), (331, 14)]
    assert [each.problem for each in found] == [None, None]


def test_the_example_in_protobuf_has_the_same_records() -> None:
    assert values(read((EXAMPLE.parent / "spans.bin").read_bytes())) == values(read(EXAMPLE.read_bytes()))


def test_the_requests_can_be_in_any_order_repeated_and_in_several_files() -> None:
    whole = sorted(values(read(b"\n".join(REQUESTS))))
    assert sorted(values(read(b"\n".join([*reversed(REQUESTS), REQUESTS[0]])))) == whole
    assert sorted(values(read(REQUESTS[2], b"\n".join([REQUESTS[1], REQUESTS[0]])))) == whole


@pytest.mark.parametrize("visibility", ["private", "network"])
def test_traces_have_the_visibility_of_the_setting(visibility: Visibility) -> None:
    traces = [each for each in documents(read(EXAMPLE.read_bytes(), visibility=visibility)) if "@type" in each]
    assert [trace["metadata"]["visibility"] for trace in traces] == [visibility] * 2


def test_an_unusable_request_is_named_and_the_others_are_read() -> None:
    found = read(b"\n".join([REQUESTS[0], b'{"resourceSpans": [{"scopeSpans": 7}]}', b"{", *REQUESTS[1:]]))
    problems = [str(each.problem) for each in found if each.problem]
    assert all(problem.startswith("the input: request ") for problem in problems)
    assert any(problem.startswith("the input: request 3: ") for problem in problems)
    assert values(found) == values(read(EXAMPLE.read_bytes()))


def test_the_requests_before_the_cut_end_of_a_file_are_read() -> None:
    found = read((EXAMPLE.parent / "spans.bin").read_bytes()[:-10])
    (problem,) = [str(each.problem) for each in found if each.problem]
    assert problem.startswith("the input: request 3: has ")
    assert problem.endswith(" bytes; the file is cut; the rest of the file is not read")
    assert values(found) == values(read(b"\n".join(REQUESTS[:2])))


def test_a_damaged_first_request_costs_no_other() -> None:
    found = read(b"\n".join([REQUESTS[0][:-9], *REQUESTS]))
    (problem,) = [str(each.problem) for each in found if each.problem]
    assert problem.startswith("the input: request 1: ")
    assert values(found) == values(read(EXAMPLE.read_bytes()))


def test_log_records_are_read_once_in_any_order_and_only_those_of_model_calls() -> None:
    ids = {"traceId": "0a" * 16, "spanId": "0b" * 8}

    def log(name: str, time: int, content: str, **attributes: str) -> dict[str, Any]:
        told = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
        body = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": content}}]}}
        return {**ids, "eventName": name, "timeUnixNano": str(time), "body": body, "attributes": told}

    def request(*records: dict[str, Any]) -> bytes:
        return orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})

    told = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    times = {"startTimeUnixNano": "1", "endTimeUnixNano": "9"}
    spans = orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{**ids, **times, "attributes": told}]}]}]})
    first, second = log("gen_ai.user.message", 2, "Open?"), log("gen_ai.user.message", 3, "On Sunday?")
    answers = [log("gen_ai.choice", 4, text) for text in ("Yes.", "Until five.")]
    whole = values(read(spans, request(first, second, *answers)))
    assert b"On Sunday?" in b"".join(whole)
    assert values(read(request(*reversed(answers), second), request(first), spans, request(first, second))) == whole
    other = log("exception", 4, "", **{"user.id": "ada"})
    assert values(read(spans, request(first, second, *answers, other))) == whole


def test_a_problem_has_the_number_of_the_request_in_its_own_file() -> None:
    found = read(EXAMPLE.read_bytes(), b"\n".join([REQUESTS[0], b"{"]))
    (problem,) = [str(each.problem) for each in found if each.problem]
    assert problem.startswith("the input: request 2: ")


def test_spans_without_an_agent_are_said_to_be_none() -> None:
    request = orjson.loads(REQUESTS[0])
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["name"], span["attributes"] = "GET /", []
    (found,) = read(orjson.dumps(request))
    assert str(found.problem).startswith("the input: has 2 spans in 1 trace, and none of an agent, a model or a tool; ")


def unread(scope: str, attributes: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Returns a request with two spans of an instrumentation, in a trace of their own."""
    request: dict[str, Any] = orjson.loads(REQUESTS[0])
    spans = request["resourceSpans"][0]["scopeSpans"][0]
    spans["scope"] = {"name": scope}
    for span in spans["spans"]:
        span["name"], span["attributes"], span["traceId"] = "run", list(attributes), "ab" * 16
    return request


N8N = [{"key": "n8n.workflow.id", "value": {"stringValue": "w"}}]
N8N_NODE = [
    {"key": f"n8n.node.{name}", "value": {"stringValue": value}}
    for name, value in (("name", "AI Agent"), ("type", "@n8n/n8n-nodes-langchain.agent"), ("items.output", "1"))
]
"""What n8n has of a node that is an agent, which is all that it has."""


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (
            unread("llamaindex.opentelemetry.tracer"),
            "spans of LlamaIndex's own integration of OpenTelemetry are not read: use",
        ),
        (unread("workflows", N8N), "spans of n8n are not read: "),
        (unread("workflows", N8N_NODE), "spans of n8n are not read: "),
        (unread("acme\n"), "instrument the agent or its framework (they are of 'acme"),
        (unread(""), "instrument the agent or its framework"),
    ],
)
def test_spans_without_an_agent_are_said_to_be_those_of_their_instrumentation(
    request_: dict[str, Any], sentence: str
) -> None:
    (found,) = read(orjson.dumps(request_))
    assert sentence in str(found.problem)
    assert "\n" not in str(found.problem)


def test_spans_of_an_instrumentation_that_is_not_read_are_counted_beside_those_of_agents() -> None:
    keys = UnreadKeys()
    streams = [io.BytesIO(EXAMPLE.read_bytes()), io.BytesIO(orjson.dumps(unread("workflows", N8N)))]
    found = read_inputs(
        streams,
        input_format("otlp"),
        task_domain="general",
        max_session_bytes=800_000,
        visibility="private",
        unread_keys=keys,
    )
    assert values(list(found))
    assert list(keys.lines("f")) == ["f: instrumentation 'n8n' is not read (2 times)"]


def test_spans_of_an_unknown_operation_with_messages_are_said_not_to_be_read() -> None:
    request = orjson.loads(REQUESTS[0])
    operation = {"key": "gen_ai.operation.name", "value": {"stringValue": "process_thread_run"}}
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["name"], span["attributes"] = "run", [operation]
        span["events"] = [{"name": "gen_ai.assistant.message", "timeUnixNano": "1"}]
    (found,) = read(orjson.dumps(request))
    assert "the messages of spans with gen_ai.operation.name 'process_thread_run' are not read" in str(found.problem)


def test_spans_of_agents_without_content_name_the_setting_that_turns_it_on() -> None:
    request = orjson.loads(REQUESTS[0])
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    del spans[1:]
    request["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": "azure.ai.agents"}
    told = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    spans[0]["attributes"] = [{"key": key, "value": {"stringValue": value}} for key, value in told.items()]
    (found,) = read(orjson.dumps(request))
    assert str(found.problem).startswith(
        "the input: has 1 span in 1 trace, and the spans of agents tell neither a step nor content; "
        "set AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true"
    )


def test_spans_of_traceweir_itself_are_said_to_be_left_out() -> None:
    request = orjson.loads(REQUESTS[0])
    request["resourceSpans"][0]["scopeSpans"][0]["scope"] = {"name": "traceweir.worker"}
    (found,) = read(orjson.dumps(request))
    assert "has 2 spans in 1 trace" in str(found.problem)
    assert "; 2 of them are Traceweir's own and left out; " in str(found.problem)


def test_genai_log_records_of_an_unknown_span_are_told() -> None:
    def log(name: str) -> dict[str, Any]:
        return {"traceId": "0a" * 16, "spanId": "0b" * 8, "eventName": name, "timeUnixNano": "5"}

    records = [log("gen_ai.user.message"), log("gen_ai.choice"), log("app.started")]
    request = orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
    found = read(EXAMPLE.read_bytes(), request)
    assert values(found) == values(read(EXAMPLE.read_bytes()))
    (problem,) = [str(each.problem) for each in found if each.problem]
    assert problem.startswith("the input: 2 log records of model calls belong to no span of the input: ")
    assert f"span {'0b' * 8} of trace {'0a' * 16}" in problem


def test_a_trace_that_nobody_can_read_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = values(read(EXAMPLE.read_bytes()))
    good = reader.read_trace

    def fail_at_one(spans: Sequence[Any], **options: Any) -> Any:
        if spans[0].trace_id == "e" * 32:
            raise RecursionError("too\x1b deep")
        return good(spans, **options)

    (line,) = other_trace()
    monkeypatch.setattr(reader, "read_trace", fail_at_one)
    found = read(line + b"\n" + EXAMPLE.read_bytes())

    assert values(found) == expected
    assert [str(each.problem) for each in found if each.problem] == [
        f"the input: trace {'e' * 32} cannot be read (RecursionError: too\\x1b deep); please report it"
    ]


def other_trace() -> list[bytes]:
    """Returns a request with a trace that is not in the example."""
    span = {"traceId": "e" * 32, "spanId": "e" * 16, "name": "agent run"}
    return [orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})]


def test_a_file_that_is_no_otlp_is_refused() -> None:
    with pytest.raises(InputError, match=r"the input: begins with neither a JSON object.*Name a file of OTLP requests"):
        read(b"hello")


def test_score_reads_several_files_of_otlp(run: Run, write_input: WriteInput) -> None:
    first, second = write_input("a.jsonl", REQUESTS[0] + b"\n" + REQUESTS[2]), write_input("b.jsonl", REQUESTS[1])
    ended = run("score", first, second, "--format", "otlp", "--embedder", "none", "--json")
    scores = [Score.model_validate_json(line) for line in ended.out.splitlines()]
    calls = {score.invocation_id: score.value for score in scores if score.metric == "inference_call_count_v1"}
    assert sorted(value for value in calls.values() if value is not None) == [1.0, 1.5, 2.0]


def test_other_formats_read_one_file(run: Run, write_input: WriteInput) -> None:
    file = write_input("a.jsonl", {"messages": []})
    ended = run("score", file, file, "--format", "openai-chat")
    assert ended.code == 2
    assert ended.err == (
        f"{file}: the format openai-chat reads one file at a time, and this is a second one; "
        "run the command for each file, or put the documents into one file\n"
    )


def test_a_missing_second_file_is_named(run: Run, tmp_path: Path) -> None:
    ended = run("score", str(EXAMPLE), str(tmp_path / "logs.jsonl"), "--format", "otlp")
    assert (ended.code, "logs.jsonl: cannot be opened" in ended.err) == (2, True)
