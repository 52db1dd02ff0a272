"""Tests evaluation rows from JSON Lines, CSV and Parquet: valid rows are scored, invalid rows are reported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.mlflow import mlflow_span, mlflow_trace, usage
from tests.support.row_files import csv_file, jsonl
from tests.support.rows import ROW, events, parquet, problems, read, score, values

from traceweir.schemas.evaluation_row import MAX_ROWS
from traceweir.schemas.row_texts import request_text, response_text
from traceweir.streams.intake.formats.base import DEFAULT_MAX_SESSION_BYTES
from traceweir.streams.intake.formats.documents import InputError

RECALL = "retrieval/ground_truth/document_recall"
RETRIEVED = {
    "retrieved_context": [{"doc_uri": "d1"}],
    "expected_retrieved_context": [{"doc_uri": "d1"}, {"doc_uri": "d2"}],
}
CHUNKS = "must contain values of the form [doc_uri: str], [{'doc_uri': str}], or [{'doc_uri': str}, {'content': str}]"
TRACE = mlflow_trace(mlflow_span("m", "LLM", None, usage(3, 4)), execution_duration_ms=51)
INVALID: list[tuple[dict[str, Any], str]] = [
    (
        {**ROW, "expected_facts": ["f"], "expected_response": "r"},
        (
            "columns 'expected_facts' and 'expected_response': "
            "Conflicting field(s): more than one of [expected_response or expected_facts] cannot be defined"
        ),
    ),
    ({"request": "q"}, "columns 'response' and 'trace': Missing required field(s): response or trace"),
    (
        {"request": None, "response": "a"},
        "column 'request': Either column 'request' or 'inputs' is required but not found",
    ),
    ({**ROW, "retrieved_context": [{"doc_uri": 1}]}, f"column 'retrieved_context': {CHUNKS}; [0].doc_uri is a number"),
    (
        {**ROW, "expected_facts": [1]},
        "column 'expected_facts': must be iterable of strings like [str]; [0] is a number",
    ),
    (
        {"request": "q", "trace": TRACE[:50]},
        "column 'trace': must contain valid serialized traces: it is truncated: its JSON is incomplete after 50 characters",
    ),
    ({**ROW, "request_id": 7}, "column 'request_id': Input should be a valid string (got 7)"),
    (
        {**ROW, "request_id": "x" * 1025},
        "does not make a valid invocation.recorded event: invocation.recorded.session_id: String should have at most 1024 characters",
    ),
]


async def test_an_invalid_row_of_json_lines_is_reported_and_other_rows_are_scored(tmp_path: Path) -> None:
    good = {**ROW, **RETRIEVED}
    rows = [each for bad, _ in INVALID for each in ({**good, "request_id": f"after {len(str(bad))}"}, bad)]
    path = jsonl(tmp_path / "rows.jsonl", *rows)
    found = read(path)
    expected = [
        f"row {2 * number + 2}{',' if expected_problem.startswith('column') else ''} {expected_problem}"
        for number, (_, expected_problem) in enumerate(INVALID)
    ]
    assert problems(found, path) == expected
    assert [value for _, metric, value in values((await score(found)).scores) if metric == RECALL] == [0.5] * len(
        INVALID
    )


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
async def test_every_file_format_results_in_the_same_values(kind: str, tmp_path: Path) -> None:
    request = {"messages": [{"role": "user", "content": "What is RAG? 검색"}]}
    rows: list[dict[str, Any]] = [
        {"request_id": "a", "request": request, "response": "x", "expected_facts": ["f", "g"], **RETRIEVED},
        {"request_id": "b", "request": request, "trace": TRACE, "expected_response": "r"},
    ]
    make: Any = {"jsonl": lambda path: jsonl(path, *rows), "csv": lambda path: csv_file(path, *rows)}
    path = (make | {"parquet": lambda path: parquet(path, rows)})[kind](tmp_path / f"rows.{kind}")
    found = read(path)
    assert problems(found, path) == []
    result = await score(found)
    assert {(session, metric): value for session, metric, value in values(result.scores) if value is not None} == {
        ("a", RECALL): 0.5,
        ("b", "agent/total_token_count"): 7,
        ("b", "agent/input_token_count"): 3,
        ("b", "agent/output_token_count"): 4,
        ("b", "agent/latency_seconds"): 0.051,
    }
    assert events(found)[0]["row"]["request"]["messages"] == request["messages"]


async def test_a_row_with_an_empty_trace_is_not_evaluated_and_has_a_reason(tmp_path: Path) -> None:
    broken = mlflow_trace(mlflow_span("m", "LLM", attributes={"mlflow.spanOutputs": "{usage"}))
    path = jsonl(tmp_path / "rows.jsonl", {"request": "q", "trace": broken}, {"request": "q", "trace": TRACE})
    result = await score(read(path))
    rationales = [each.rationale for each in result.scores if each.level == "invocation" and each.value is None]
    assert rationales[0].endswith(
        "no model call reports its input and output tokens; attribute 'mlflow.spanOutputs' of span 'm' is not JSON"
    )
    assert {each.not_evaluated_because for each in result.scores if each.value is None} == {"missing_input"}
    assert (len(rationales), len(result.scores)) == (4, 16)


async def test_an_empty_list_of_expected_documents_counts_as_missing(tmp_path: Path) -> None:
    empty = {**ROW, "expected_facts": [], "retrieved_context": [], "expected_retrieved_context": []}
    result = await score(read(jsonl(tmp_path / "rows.jsonl", empty)), {"criteria": {"document_recall": 0.5}})
    assert next(each.rationale for each in result.scores) == "no reference says which documents were expected"
    assert result.problems == []


@pytest.mark.slow
async def test_rows_beyond_ten_thousand_are_reported_and_not_scored(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "rows.jsonl", *([{**ROW, "request_id": f"{number}"} for number in range(MAX_ROWS + 2)]))
    found = read(path)
    assert sum(bool(each.records) for each in found) == MAX_ROWS
    assert problems(found, path) == [
        (
            "row 10001 and all later rows are left out: The number of rows in the dataset exceeds the maximum: 10000. Got 10002 rows. "
            "Split the file."
        )
    ]


@pytest.mark.parametrize(
    ("name", "content", "expected_problem"),
    [
        ("rows.csv", b"", "has no header"),
        ("rows.csv", b"request,request\n", "has more than one column 'request'"),
        ("rows.csv", "request\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
        ("rows.parquet", b"not Parquet", "cannot be read as Parquet"),
    ],
)
def test_an_unreadable_table_is_rejected_with_the_reason(
    name: str, content: bytes, expected_problem: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected_problem):
        read(path)


def test_a_table_is_rejected_for_the_format_openai_chat(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a table, but the format openai-chat reads only JSON documents"):
        read(csv_file(tmp_path / "rows.csv", ROW), "openai-chat")


def test_the_default_format_reads_rows_among_events_and_the_row_format_rejects_events(tmp_path: Path) -> None:
    ended = {"type": "session.ended", "session_id": "s", "occurred_at": "2026-01-31T12:00:00Z"}
    path = jsonl(tmp_path / "mixed.jsonl", ROW, ended, '{"request"')
    assert [len(each.records) for each in read(path)] == [2, 1, 1]
    found = read(path, "databricks-agent-evaluation")
    assert [len(each.records) for each in found] == [2, 0, 0]
    assert [each.split(":")[0] for each in problems(found, path)] == [
        "row 2, column 'request'",
        "row 3 is not JSON (unexpected end of data",
    ]


@pytest.mark.parametrize("write", [json.dumps, str])
@pytest.mark.parametrize(("make", "name"), [(csv_file, "rows.csv"), (jsonl, "rows.jsonl")])
def test_parts_that_somebody_has_written_as_a_text_are_read(make: Any, name: str, write: Any, tmp_path: Path) -> None:
    asked = write([{"type": "text", "text": "q"}])
    answered = write([{"type": "text", "text": "a"}])
    found = read(make(tmp_path / name, {"request": asked, "response": answered}))
    row = events(found)[0]["row"]

    assert (request_text(row["request"]), response_text(row["response"])) == ("q", "a")


def test_two_different_rows_with_the_same_request_id_are_rejected(tmp_path: Path) -> None:
    one = {**ROW, "request_id": "a"}
    path = jsonl(tmp_path / "rows.jsonl", one, one, {**one, "response": "b"})
    assert problems(read(path), path) == [
        (
            "row 3, column 'request_id': 'a' is also the id of row 1, which has other content; "
            "use a different id in each row"
        )
    ]


async def test_equal_rows_without_an_id_are_two_sessions_and_reading_them_again_gives_duplicates(
    tmp_path: Path,
) -> None:
    path = jsonl(tmp_path / "rows.jsonl", ROW, ROW)
    result = await score([*read(path), *read(path)])
    assert (result.sessions, result.duplicates) == (2, 4)


async def test_a_row_that_exceeds_the_session_size_gives_no_records(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "rows.jsonl", {**ROW, "request_id": "large", "response": "x" * DEFAULT_MAX_SESSION_BYTES}, ROW
    )
    found = read(path)
    [problem] = problems(found, path)
    assert re.fullmatch(
        r"row 1 has 8\d{5} bytes as a session, and a session can have at most 800000 bytes \(TRACEWEIR_SEGMENT_MAX_BYTES\); .*",
        problem,
    )
    assert (await score(found)).sessions == 1
