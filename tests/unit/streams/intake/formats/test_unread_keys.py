"""Tests that the keys that no reader reads are named once, with a count and the nearest key that is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.adk import BOOKING, adk_event, adk_session, text
from tests.support.mlflow import mlflow_span, mlflow_trace
from tests.support.openai_chat import assistant_message, user_message

from traceweir.streams.intake.formats.base import DEFAULT_MAX_SESSION_BYTES
from traceweir.streams.intake.formats.files import open_input, read_input
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.intake.formats.unread_keys import KnownKeys, UnreadKeys

ROW = {"request": "q", "response": "a"}
EVENT = {"type": "invocation.started", "session_id": "s", "invocation_id": "i", "occurred_at": "2026-01-31T12:00:00Z"}
TRACE = mlflow_trace(
    mlflow_span("root", "CHAIN", None, "a", attributes={"mlflow.spanInputs": '{"question": "q", "k": 3}'})
)
CHAT = [user_message("q"), assistant_message("a")]


def lines(path: Path, *documents: Any, name: str = "traceweir") -> list[str]:
    """Returns what is said about unread keys, and checks that no document has a problem."""
    if documents:
        path.write_text("\n".join(map(json.dumps, documents)))
    unread_keys = UnreadKeys()
    with open_input(str(path)) as stream:
        found = list(
            read_input(
                stream,
                input_format(name),
                task_domain="general",
                max_session_bytes=DEFAULT_MAX_SESSION_BYTES,
                unread_keys=unread_keys,
            )
        )
    assert [each.problem for each in found] == [None] * len(found)
    return [line.removeprefix("in: ") for line in unread_keys.lines("in")]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            ROW | {"retreived_context": [{"doc_uri": "d"}]},
            "column 'retreived_context' is not read (2 times); the nearest that is read is 'retrieved_context'",
        ),
        (ROW | {"topic": "travel"}, "column 'topic' is not read (2 times)"),
        (
            ROW | {"expectations": {"expected_respons": "a"}},
            "key of expectations 'expected_respons' is not read (2 times); the nearest that is read is 'expected_response'",
        ),
        (
            ROW | {"expectations": {"expected_response": "a", "max_words": 9}},
            "key of expectations 'max_words' is not read (2 times)",
        ),
        ({"inputs": {"question": "q", "k": 3}, "outputs": "a"}, "key of inputs 'k' is not read (2 times)"),
        (
            ROW | {"request": {"messages": CHAT[:1], "model": "m", "temperature": 0, "custom_inputs": {"plan": "b"}}},
            "key of request 'custom_inputs' is not read (2 times)",
        ),
        (
            ROW | {"request": {"request": {"query": "q", "history": [], "filters": {"year": 1}}}},
            "key of request.request 'filters' is not read (2 times)",
        ),
        (
            ROW | {"response": {"answer": "a", "sources": ["d1"], "usage": {"prompt_tokens": 1}}},
            "key of response 'sources' is not read (2 times)",
        ),
        (
            ROW | {"response": {"messages": [assistant_message(None, tool_calls=[{}]), assistant_message("a")]}},
            "key of response.messages 'tool_calls' is not read (2 times)",
        ),
        (
            ROW | {"response": {"choices": [{"message": assistant_message("a", tool_calls=[{}])}]}},
            "key of response.choices 'tool_calls' is not read (2 times)",
        ),
        (
            ROW | {"response": [assistant_message(None, tool_calls=[{}]), assistant_message("a")]},
            "key of response 'tool_calls' is not read (2 times)",
        ),
        (
            ROW | {"response": {"content": [{"type": "text", "text": "a"}, {"type": "tool_use", "name": "f"}]}},
            "key of response.content 'tool_use' is not read (2 times)",
        ),
        (
            ROW
            | {
                "response": {
                    "output": [
                        {"type": "function_call", "name": "f"},
                        {"type": "message", "content": [{"type": "output_text", "text": "a"}]},
                    ]
                }
            },
            "key of response.output 'function_call' is not read (2 times)",
        ),
        (
            {"databricks_request_id": "r", "request": {"query": "q", "k": 3}, "response": "a"},
            "key of request 'k' is not read (2 times)",
        ),
        (
            ROW | {"request": {"a\nb": {"question": "q", "k": 3}}},
            "key of request.a\\nb 'k' is not read (2 times)",
        ),
        (
            {"trace": TRACE},
            "key of the trace's inputs 'k' is not read (2 times)",
        ),
        (
            {"databricks_request_id": "r", "request": "q", "response": "a", "responseRaw": "b"},
            "column 'responseRaw' is not read (2 times); the nearest that is read is 'response_raw'",
        ),
        ({"messages": CHAT, "attachments": ["x"]}, "key of a transcript 'attachments' is not read (2 times)"),
        (
            {"messages": [*CHAT, user_message("q") | {"contentx": "more"}, assistant_message("b")]},
            "key of a message 'contentx' is not read (2 times); the nearest that is read is 'content'",
        ),
        (
            {"messages": CHAT[:1], "choices": [{"message": assistant_message(None, video={"data": "x"}, refusal="r")}]},
            "key of a message 'video' is not read (2 times)",
        ),
        (
            EVENT | {"user_contnt": "hi"},
            "key of invocation.started 'user_contnt' is not read (2 times); the nearest that is read is 'user_content'",
        ),
        (
            EVENT | {"user_content": {"parts": [{"text": "hi", "file_data": {"uri": "u"}}]}},
            "key of Part 'file_data' is not read (2 times)",
        ),
        (
            EVENT | {"type": "retrieval.returned", "chunks": [{"text": "t"}, {"content": "c", "text": "t"}]},
            "key of RetrievedChunk 'text' is not read (2 times)",
        ),
        (
            EVENT | {"type": "invocation.recorded", "row": ROW | {"responsex": "b"}},
            "column 'responsex' is not read (2 times); the nearest that is read is 'response'",
        ),
        (
            EVENT | {"type": "invocation.recorded", "row": ROW | {"request": {"query": "q", "k": 3}}},
            "key of request 'k' is not read (2 times)",
        ),
        (
            adk_session(adk_event("user", text("Hi")), adk_event("a", text("Hello."), fileData={"uri": "u"})),
            "key of an event 'fileData' is not read (2 times)",
        ),
        (
            adk_session(adk_event("user", {"txt": "Hi"}), adk_event("a", text("Hello."))),
            "key of a part 'txt' is not read (2 times); the nearest that is read is 'text'",
        ),
        (
            {
                "eval_set_result_id": "x",
                "eval_case_results": [
                    {
                        "eval_id": "e",
                        "eval_metric_result_per_invocation": [
                            {
                                "actual_invocation": {"final_respons": {"parts": []}},
                                "expected_invocation": None,
                            }
                        ],
                    }
                ],
            },
            "key of Invocation 'final_respons' is not read (2 times); the nearest that is read is 'final_response'",
        ),
    ],
)
def test_an_unread_key_is_named_once_with_a_count(tmp_path: Path, document: dict[str, Any], said: str) -> None:
    assert lines(tmp_path / "in.jsonl", document, document) == [said]


@pytest.mark.parametrize(
    "document",
    [
        ROW | {"tags": {"a": "b"}, "metadata": {"x": "y"}, "dataset_record_id": "d", "score": 0.5, "good": True, "x": None},
        ROW | {"note": "", "list": []},
        {"messages": CHAT, "tools": [{"type": "function"}], "reward": 1.0, "metadata": {"any": "thing"}, "source": "s"},
        {"messages": [CHAT[0], CHAT[1] | {"reasoning_content": "r", "annotations": [1], "index": 7}]},
        EVENT | {"missing": ["x"], "sequence": 7},
        BOOKING,
        adk_session(
            adk_event("user", text("Hi")),
            adk_event("a", text("Hello.") | {"thoughtSignature": "abc"}, finishReason="STOP", branch="b", id="x"),
        ),
    ],
)  # fmt: skip
def test_well_known_keys_and_values_without_content_are_not_named(tmp_path: Path, document: dict[str, Any]) -> None:
    assert lines(tmp_path / "in.jsonl", document) == []


def test_columns_of_a_csv_file_are_named_if_they_have_text(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("request,response,retreived_context,score,tags\nq,a,,1,x\nq,b,[],2,y\n")
    assert lines(tmp_path / "rows.csv") == [
        "column 'retreived_context' is not read (1 time); the nearest that is read is 'retrieved_context'"
    ]


def test_columns_of_a_parquet_file_are_named_if_they_can_have_content(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [ROW | {"retreived_context": ["d"], "score": 1.5}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    assert lines(tmp_path / "rows.parquet") == [
        "column 'retreived_context' is not read (1 time); the nearest that is read is 'retrieved_context'"
    ]


def test_a_hostile_number_of_keys_is_counted_and_each_key_is_printable() -> None:
    unread_keys = UnreadKeys()
    known = KnownKeys("column", ["request"])
    for number in range(1_200):
        unread_keys.note({f"\x1b{number}" + "x" * 10_000: "text"}, known)
    found = list(unread_keys.lines("in"))
    assert len(found) == 1_001
    assert found[-1] == "in: 200 further keys that are not read"
    assert all(line.isprintable() and len(line) < 200 for line in found)
