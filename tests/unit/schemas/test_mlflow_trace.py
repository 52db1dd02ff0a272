"""Tests the data read from MLflow traces, and the errors for unreadable traces."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.mlflow import documents, mlflow_span, mlflow_trace, usage
from tests.support.paths import ROOT as REPOSITORY

from traceweir.schemas.dimensions import UNKNOWN, Dimensions, TraceContext
from traceweir.schemas.invocation import FunctionCall, FunctionResponse, RetrievedChunk, TokenUsage
from traceweir.schemas.mlflow_spans import TraceUnreadable
from traceweir.schemas.mlflow_trace import MlflowTrace, read_mlflow_trace

DATA = REPOSITORY / "tests" / "parity" / "data"


OF_SPAN = Dimensions(trace_context=TraceContext(trace_id="2e29e6dee830733b3eeafe22819b4846"))


@pytest.mark.parametrize(("version", "latency", "dimensions"), [(2, 0.067, UNKNOWN), (3, 0.051, OF_SPAN)])
def test_the_samples_of_both_versions_contain_the_same_data(
    version: int, latency: float, dimensions: Dimensions
) -> None:
    text = (DATA / f"mlflow_trace_v{version}.json").read_text("utf-8")
    expected = MlflowTrace(
        request={"messages": [{"role": "user", "content": "What is RAG?"}]},
        response={"choices": [{"message": {"role": "assistant", "content": "RAG는 검색과 생성을 결합합니다."}}]},
        retrieved_context=[
            RetrievedChunk(doc_uri="docs/rag.md", content="RAG combines retrieval with generation."),
            RetrievedChunk(doc_uri="docs/spark.md", content="Spark is a cluster engine."),
        ],
        tool_uses=[FunctionCall(name="get_weather", args={"city": "서울", "unit": "C"})],
        tool_responses=[FunctionResponse(name="get_weather", response={"temp": 21, "unit": "C"})],
        token_usage=TokenUsage(input_tokens=31, output_tokens=12),
        latency_seconds=latency,
        dimensions=dimensions,
    )
    assert read_mlflow_trace(text) == expected
    assert read_mlflow_trace(json.loads(text)) == expected


def uris(*spans: dict[str, Any], **info: Any) -> list[str | None] | None:
    context = read_mlflow_trace(mlflow_trace(*spans, **info)).retrieved_context
    return None if context is None else [chunk.doc_uri for chunk in context]


def retriever(name: str, parent: str | None, start: int | None = None) -> dict[str, Any]:
    return mlflow_span(name, "RETRIEVER", parent, documents(name), start_time_unix_nano=start)


ROOT = mlflow_span("root", "CHAIN")


def test_the_dimensions_are_the_user_the_version_and_the_tags_of_users() -> None:
    metadata = {"mlflow.trace.user": "ada", "mlflow.modelId": "m-1"}
    tags = {"mlflow.traceName": "x", "team": "search", "long": "x" * 257, "": "y", **{f"x{n}": "1" for n in range(9)}}
    found = read_mlflow_trace(mlflow_trace(ROOT, trace_metadata=metadata, tags=tags)).dimensions
    assert (found.user_id, found.agent_version) == ("ada", "m-1")
    assert found.labels == {"team": "search", **{f"x{n}": "1" for n in range(7)}}
    hostile = {"mlflow.trace.user": ["ada"], "mlflow.modelId": "x" * 400_000}
    assert read_mlflow_trace(mlflow_trace(ROOT, trace_metadata=hostile, tags=["a"])).dimensions.known == {}


def test_the_last_top_level_retriever_provides_the_context() -> None:
    inner = mlflow_span("llm", "LLM", "d")
    spans = [ROOT, retriever("b", "root"), retriever("c", "b"), retriever("d", "root"), inner, retriever("f", "llm")]
    assert uris(*spans) == ["d"]


def test_the_last_retriever_is_the_retriever_that_started_last() -> None:
    assert uris(ROOT, retriever("late", "root", 20), retriever("early", "root", 10)) == ["late"]
    assert uris(ROOT, retriever("a", "root", 10), retriever("b", "root", 10)) == ["b"]


def test_without_all_start_times_the_last_retriever_of_the_file_counts() -> None:
    assert uris(ROOT, retriever("a", "root", 20), retriever("b", "root")) == ["b"]


def test_a_retriever_span_with_a_missing_ancestor_or_in_a_cycle_is_ignored() -> None:
    circle = [mlflow_span("x", "CHAIN", "y"), mlflow_span("y", "CHAIN", "x"), retriever("r", "x")]
    assert uris(ROOT, retriever("a", "lost"), *circle) is None


@pytest.mark.slow
def test_ten_thousand_nested_retrievers_are_read_in_linear_time() -> None:
    nested = [retriever(f"{number}", f"{number - 1}" if number else None) for number in range(10_000)]
    assert uris(*reversed(nested)) == ["0"]


def test_a_retriever_that_found_nothing_gives_an_empty_context() -> None:
    assert uris(ROOT, mlflow_span("r", "RETRIEVER", "root", [])) == []
    assert uris(ROOT) is None


def test_the_uri_is_read_from_the_key_of_the_retriever_schema() -> None:
    found = [{"page_content": "c", "metadata": {"url": "u", "doc_uri": "d"}}]
    schemas = json.dumps([{"doc_uri": "other"}, {"doc_uri": "url"}])
    span = mlflow_span("r", "RETRIEVER", None, found)
    assert uris(span, tags={"retrievers": schemas}) == ["u"]
    assert uris(span, tags={"retrievers": "["}) == ["d"]


@pytest.mark.parametrize("key", ["page_content", "content", "text"])
def test_the_text_of_a_document_stands_under_each_usual_key(key: str) -> None:
    span = mlflow_span("r", "RETRIEVER", None, [{key: "c", "metadata": {}}])
    (chunk,) = read_mlflow_trace(mlflow_trace(span)).retrieved_context or []
    assert chunk.content == "c"


@pytest.mark.parametrize("outputs", ["text", [1], [{"metadata": 1}], [{"metadata": {"doc_uri": 1}}], {"a": 1}])
def test_a_retriever_output_in_another_shape_is_reported(outputs: Any) -> None:
    trace = read_mlflow_trace(mlflow_trace(mlflow_span("find", "RETRIEVER", None, outputs)))
    assert trace.retrieved_context is None
    assert trace.unread == [
        "the output of span 'find' is not a list of documents with page_content, content or text, and metadata"
    ]


def tokens(*spans: dict[str, Any]) -> tuple[int | None, int | None] | None:
    found = read_mlflow_trace(mlflow_trace(*spans)).token_usage
    return None if found is None else (found.input_tokens, found.output_tokens)


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([mlflow_span("a", "LLM", None, usage(1, 2)), mlflow_span("b", "CHAT_MODEL", None, usage(10, 20))], (11, 22)),
        ([mlflow_span("a", "CHAT_MODEL", None, usage(5, 5)), mlflow_span("b", "CHAT_MODEL", "a", usage(1, 2))], (1, 2)),
        ([mlflow_span("a", "CHAT_MODEL", None, usage(5, 5)), mlflow_span("b", "TOOL", "a")], None),
        ([mlflow_span("a", "LLM", None, {"usage": {"input_tokens": 1, "output_tokens": 2}})], None),
        ([mlflow_span("a", "LLM", None, usage(1, 2) | usage(3, 4, "llm_output"))], (3, 4)),
        ([mlflow_span("a", "LLM", None, usage(1, 2) | {"llm_output": None})], None),
        ([mlflow_span("a", "LLM", None, usage(1))], (1, None)),
        ([mlflow_span("a", "LLM", None, usage(0, 0))], (0, 0)),
        ([mlflow_span("a", "AGENT", None, usage(1, 2))], None),
        ([mlflow_span("a", "LLM", None, "text")], None),
        ([], None),
    ],
)
def test_tokens_are_those_of_model_spans_without_children(
    spans: list[dict[str, Any]], expected: tuple[int | None, int | None] | None
) -> None:
    assert tokens(*spans) == expected


def counted(name: str, kind: str, parent: str | None = None, **counts: int) -> dict[str, Any]:
    """Returns a span with `mlflow.chat.tokenUsage`."""
    return mlflow_span(name, kind, parent, attributes={"mlflow.chat.tokenUsage": json.dumps(counts)})


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([counted("a", "LLM", input_tokens=1)], (1, None)),
        (
            [
                ROOT,
                counted("a", "LLM", "root", input_tokens=1, output_tokens=2),
                counted("b", "CHAT_MODEL", "root", input_tokens=10, output_tokens=20),
            ],
            (11, 22),
        ),
        (
            [
                counted("sum", "AGENT", input_tokens=11, output_tokens=22),
                mlflow_span("step", "CHAIN", "sum"),
                counted("a", "LLM", "step", input_tokens=1, output_tokens=2),
                counted("b", "LLM", "sum", input_tokens=10, output_tokens=20),
            ],
            (11, 22),
        ),
        ([counted("a", "LLM", "lost", input_tokens=1, output_tokens=2)], (1, 2)),
        ([counted("a", "LLM", input_tokens=7, output_tokens=8), mlflow_span("t", "TOOL", "a")], (7, 8)),
        (
            [
                mlflow_span("a", "LLM", None, usage(3, 4)),
                counted("b", "LLM", input_tokens=1, output_tokens=2),
            ],
            (1, 2),
        ),
    ],
    ids=["one count", "sum of model calls", "repeated sum", "missing parent", "model with a tool", "before outputs"],
)
def test_the_tokens_of_mlflow_3_are_counted_once(spans: list[dict[str, Any]], expected: tuple[int, int | None]) -> None:
    assert tokens(*spans) == expected


def test_the_sum_that_mlflow_stores_takes_precedence_over_the_spans() -> None:
    span = counted("a", "LLM", input_tokens=1, output_tokens=2)
    stored = json.dumps({"input_tokens": 31, "output_tokens": 12, "total_tokens": 43})
    for name in ("trace_metadata", "request_metadata"):
        trace = read_mlflow_trace(mlflow_trace(span, **{name: {"mlflow.trace.tokenUsage": stored}}))
        assert trace.token_usage == TokenUsage(input_tokens=31, output_tokens=12)


def test_a_stored_sum_that_is_not_json_is_reported_and_the_spans_count() -> None:
    span = counted("a", "LLM", input_tokens=1, output_tokens=2)
    trace = read_mlflow_trace(mlflow_trace(span, trace_metadata={"mlflow.trace.tokenUsage": "{"}))
    assert trace.token_usage == TokenUsage(input_tokens=1, output_tokens=2)
    assert trace.unread == ["the trace's mlflow.trace.tokenUsage is not JSON"]


def test_spans_with_the_same_id_and_spans_in_a_circle_are_counted_at_most_once() -> None:
    doubled = [mlflow_span(f"{number}", "CHAIN", f"{number - 1}") for number in range(1, 60) for _ in range(2)]
    last = counted("model", "LLM", "59", input_tokens=1, output_tokens=2)
    circle = [mlflow_span("x", "CHAIN", "y"), mlflow_span("y", "CHAIN", "x"), counted("z", "LLM", "x", input_tokens=9)]
    assert tokens(mlflow_span("0", "CHAIN"), *doubled, last, *circle) == (1, 2)


def test_an_invalid_token_count_is_reported() -> None:
    trace = read_mlflow_trace(mlflow_trace(mlflow_span("a", "LLM", None, {"usage": {"prompt_tokens": -1}})))
    assert (trace.token_usage, trace.unread) == (
        None,
        ["prompt_tokens of span 'a' is not an integer from 0 to 2^63 - 1"],
    )


def test_tool_calls_come_from_the_messages_of_models_without_duplicates() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"city": "Seoul"}'}}
    asked = [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]}]
    answered = [*asked, {"role": "tool", "tool_call_id": "c1", "content": "two"}]
    spans = [
        mlflow_span("one", "CHAT_MODEL", None, attributes={"mlflow.chat.messages": json.dumps(asked)}),
        mlflow_span("two", "CHAT_MODEL", None, attributes={"mlflow.chat.messages": json.dumps(answered)}),
        mlflow_span("tool", "TOOL", None, "ignored"),
    ]
    trace = read_mlflow_trace(mlflow_trace(*spans))
    assert trace.tool_uses == [FunctionCall(id="c1", name="find", args={"city": "Seoul"})]
    assert trace.tool_responses == [FunctionResponse(id="c1", name="find", response="two")]


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"execution_duration_ms": 51}, 0.051),
        ({"execution_time_ms": 67}, 0.067),
        ({"execution_duration": "1.5s"}, 1.5),
        ({"execution_time_ms": None}, None),
        ({"execution_time_ms": -1}, None),
        ({"execution_time_ms": True}, None),
        ({}, None),
    ],
)
def test_the_duration_comes_from_the_traces_info(info: dict[str, Any], expected: float | None) -> None:
    assert read_mlflow_trace(mlflow_trace(ROOT, **info)).latency_seconds == expected


VAST = 10**400
"""Numbers that JSON allows and a float cannot represent; with a NaN in the text, Python's json module keeps them."""
NAMES = ["vast", "large float", "2^63"]


@pytest.fixture(params=["as text", "as an object"])
def read(request: pytest.FixtureRequest) -> Callable[..., MlflowTrace]:
    def read_it(*spans: dict[str, Any], **info: Any) -> MlflowTrace:
        text = mlflow_trace(*spans, nan=math.nan, **info)
        return read_mlflow_trace(text if request.param == "as text" else json.loads(text))

    return read_it


@pytest.mark.parametrize(
    "start", [VAST, 1.7e308, 2**63, -VAST, float(2**63), str(VAST)], ids=[*NAMES, "negative", "float", "text"]
)
def test_a_start_beyond_64_bits_is_absent(read: Callable[..., MlflowTrace], start: Any) -> None:
    found = read(ROOT, retriever("vast", "root", start), retriever("last", "root", 10)).retrieved_context
    assert found == [RetrievedChunk(doc_uri="last", content="of last")]


@pytest.mark.parametrize("duration", [VAST, 1.7e308, 2**63], ids=NAMES)
def test_a_duration_beyond_64_bits_is_absent_and_reported(read: Callable[..., MlflowTrace], duration: Any) -> None:
    found = read(ROOT, execution_duration_ms=duration)
    assert found.latency_seconds is None
    assert found.unread == ["the trace's execution_duration_ms is not a number from 0 to 2^63 - 1"]


@pytest.mark.parametrize("count", [VAST, 1.7e308, 2**63], ids=NAMES)
def test_a_token_count_beyond_64_bits_is_absent_and_reported(read: Callable[..., MlflowTrace], count: Any) -> None:
    found = read(mlflow_span("a", "LLM", None, usage(count, 4)))
    assert found.token_usage == TokenUsage(output_tokens=4)
    assert found.unread == ["prompt_tokens of span 'a' is not an integer from 0 to 2^63 - 1"]


def test_a_sum_of_tokens_beyond_64_bits_is_absent_and_reported(read: Callable[..., MlflowTrace]) -> None:
    found = read(mlflow_span("a", "LLM", None, usage(2**63 - 1, 4)), mlflow_span("b", "LLM", None, usage(1, 4)))
    assert found.token_usage == TokenUsage(output_tokens=8)
    assert found.unread == ["the sum of prompt_tokens is not from 0 to 2^63 - 1"]


def test_an_attribute_that_is_not_json_is_reported_and_affects_no_other() -> None:
    broken = mlflow_span("model", "LLM", attributes={"mlflow.spanOutputs": "{usage", "mlflow.spanInputs": "{}"})
    trace = read_mlflow_trace(mlflow_trace(broken, mlflow_span("other", "LLM", None, usage(1, 2))))
    assert trace.token_usage == TokenUsage(input_tokens=1, output_tokens=2)
    assert trace.unread == ["attribute 'mlflow.spanOutputs' of span 'model' is not JSON"]


def test_constants_that_json_lacks_are_read_as_null() -> None:
    span = mlflow_span("root", "CHAIN", attributes={"mlflow.spanOutputs": '{"a": NaN, "b": 1e999}'})
    assert read_mlflow_trace(mlflow_trace(span)).response == {"a": None, "b": None}


@pytest.mark.parametrize("text", ['"\\ud800"', "[" * 101 + "]" * 101, "[" * 100_000])
def test_values_that_utf_8_or_json_cannot_represent_are_not_read(text: str) -> None:
    span = mlflow_span("root", "CHAIN", attributes={"mlflow.spanOutputs": text})
    assert read_mlflow_trace(mlflow_trace(span)).response is None


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ((DATA / "mlflow_trace_v3.json").read_text("utf-8")[:2000], "it is truncated: its JSON is incomplete after"),
        ("", "it is truncated"),
        ("nonsense", "it is not JSON: Expecting value at character 1"),
        ("{}", "info is missing"),
        ('{"info": {}}', "data.spans is missing"),
        ("[]", "an MLflow trace is an object"),
        ('{"info": {}, "data": {"spans": [1]}}', r"data.spans\[0\] is not an object"),
        ('{"info": {}, "data": {"spans": [{}]}}', r"data.spans\[0\] has no span_id"),
        ('{"info": {}, "data": {"spans": [{"span_id": "a"}]}}', r"data.spans\[0\] has no attributes"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_row_with_an_invalid_trace_is_rejected_with_the_reason(document: str, why: str) -> None:
    with pytest.raises(TraceUnreadable, match=why):
        read_mlflow_trace(document)


FAILED: dict[str, Any] = {"status": {"code": "STATUS_CODE_ERROR", "message": "no seats left"}}
RAISED: dict[str, Any] = {
    "status": {"code": "STATUS_CODE_ERROR", "message": ""},
    "events": [
        {"name": "exception", "attributes": {"exception.type": "ValueError", "exception.message": "no seats left"}}
    ],
}


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (FAILED, "no seats left"),
        (RAISED, "ValueError: no seats left"),
        ({"status_code": "ERROR", "status_message": "no seats left"}, "no seats left"),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, "the step failed; its span tells no message"),
    ],
)
def test_the_error_of_a_tool_and_of_a_root_that_failed_is_read(failure: dict[str, Any], error: str) -> None:
    tool = {**mlflow_span("book", "TOOL", "root"), **failure}
    assert read_mlflow_trace(mlflow_trace(ROOT, tool)).tool_responses == [
        FunctionResponse(name="book", response={"error": error})
    ]
    assert read_mlflow_trace(mlflow_trace({**ROOT, **failure})).error == error
