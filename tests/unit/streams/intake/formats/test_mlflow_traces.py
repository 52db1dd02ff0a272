"""Tests MLflow traces as input: bare traces, rows with only a trace, and the sessions that they belong to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue
from tests.support.mlflow import mlflow_run, mlflow_span, mlflow_trace, usage
from tests.support.paths import ROOT
from tests.support.row_files import csv_file, jsonl
from tests.support.rows import events, parquet, problems, read, score, values

TEXTS: dict[str, JsonValue] = {"criteria": {"response_match_score": 0.5, "latency": {}, "total_token_count": {}}}
CHAT = {"mlflow.trace.session": "chat-17"}


def in_session(trace_id: str, minute: int, **metadata: str) -> str:
    moment = f"2026-01-31T11:{minute:02}:00.500Z"
    return mlflow_run(trace_id=trace_id, request_time=moment, trace_metadata=CHAT | metadata)


@pytest.mark.parametrize("format_name", ["traceweir", "databricks-agent-evaluation"])
@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "pretty-printed"])
def test_a_bare_trace_is_a_session_with_the_id_and_the_time_of_the_trace(
    format_name: str, indent: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    trace = json.loads(mlflow_run(trace_id="tr-1", request_time="2026-01-31T11:30:00.500Z"))
    path.write_text(json.dumps(trace, indent=indent), "utf-8")
    [found] = read(path, format_name)
    assert [json.loads(record.value)["type"] for record in found.records] == ["invocation.recorded", "session.ended"]
    [event] = events([found])
    assert (event["session_id"], event["invocation_id"]) == ("tr-1", "tr-1")
    assert event["occurred_at"] == "2026-01-31T11:30:00.500000+00:00"


@pytest.mark.parametrize(("version", "trace_id"), [(2, "a3ab3efc7ce54add9b3c0d8084dc2975"), (3, "tr-2e29e6dee8")])
def test_the_recorded_traces_of_both_versions_are_read_as_files(version: int, trace_id: str) -> None:
    [event] = events(read(ROOT / "tests" / "parity" / "data" / f"mlflow_trace_v{version}.json"))
    assert event["session_id"].startswith(trace_id)
    assert event["occurred_at"].startswith("2026-11-21T00:2")


async def test_a_bare_trace_is_scored_with_its_tokens_and_its_latency(tmp_path: Path) -> None:
    trace = mlflow_trace(
        mlflow_span("root", "AGENT", None, "answer"),
        mlflow_span("model", "LLM", "root", usage(3, 4)),
        execution_duration_ms=51,
        trace_id="tr-1",
    )
    result = await score(read(jsonl(tmp_path / "traces.jsonl", trace)), TEXTS)
    assert result.problems == []
    assert {metric: value for _, metric, value in values(result.scores) if value is not None} == {
        "agent/latency_seconds": 0.051,
        "agent/total_token_count": 7,
    }


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_row_with_only_a_trace_is_read_from_every_file_format(kind: str, tmp_path: Path) -> None:
    row = {"trace": mlflow_run(trace_id="tr-1")}
    make: Any = {"jsonl": lambda path: jsonl(path, row), "csv": lambda path: csv_file(path, row)}
    found = read((make | {"parquet": lambda path: parquet(path, [row])})[kind](tmp_path / f"rows.{kind}"))
    assert [(event["session_id"], event["row"].keys()) for event in events(found)] == [
        ("tr-1", {"request_id", "trace"})
    ]


async def test_traces_that_name_a_session_are_its_invocations_in_the_order_of_their_times(tmp_path: Path) -> None:
    traces = [in_session("tr-late", 40), in_session("tr-early", 20)]
    found = read(jsonl(tmp_path / "traces.jsonl", *traces))
    assert [len(each.records) for each in found] == [1, 1]  # Neither trace ends the session.
    result = await score(found, {"criteria": {"latency": {}}})
    assert (result.sessions, result.problems) == (1, [])
    assert [(each.session_id, each.invocation_id) for each in result.scores] == [
        ("chat-17", "tr-early"),
        ("chat-17", "tr-late"),
        ("chat-17", None),
    ]


def test_the_request_id_of_a_row_takes_precedence_over_the_ids_and_the_time_of_its_trace(tmp_path: Path) -> None:
    row = {"request_id": "r1", "trace": in_session("tr-1", 40)}
    [event] = events(read(jsonl(tmp_path / "rows.jsonl", row)))
    assert (event["session_id"], event["invocation_id"]) == ("r1", "r1")
    assert event["occurred_at"].startswith("2026-01-31T12:00:00")


def test_two_different_traces_with_the_same_id_are_rejected(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "traces.jsonl", in_session("tr-1", 20), in_session("tr-1", 20), in_session("tr-1", 40))
    assert problems(read(path), path) == [
        "row 3, column 'trace': 'tr-1' is also the id of row 1, which has other content; use a different id in each row"
    ]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"trace": "{"}, "column 'trace': must contain valid serialized traces: it is truncated"),
        ({"info": {}, "data": {"spans": [1]}}, "column 'trace': must contain valid serialized traces: data.spans[0]"),
        (
            {"info": {"trace_id": "x" * 2000}, "data": {"spans": []}},
            "does not make a valid invocation.recorded event: ",
        ),
        ({"trace": mlflow_run(), "request_id": 7}, "column 'request_id': Input should be a valid string (got 7)"),
    ],
)
def test_an_unusable_trace_is_reported_and_the_others_are_read(row: dict[str, Any], why: str, tmp_path: Path) -> None:
    path = jsonl(tmp_path / "rows.jsonl", row, {"trace": mlflow_run(trace_id="tr-2")})
    found = read(path)
    [problem] = problems(found, path)
    assert problem.split(", ", 1)[-1].removeprefix("row 1 ").startswith(why)
    assert [event["session_id"] for event in events(found)] == ["tr-2"]


@pytest.mark.parametrize(
    "info",
    [
        {"request_time": "soon"},
        {"request_time": "2026-01-31T12:00:00"},
        {"timestamp_ms": 10**400},
        {"timestamp_ms": 2**62},
        {"timestamp_ms": True},
        {"trace_metadata": ["mlflow.trace.session"], "trace_id": 7},
    ],
)
def test_a_trace_without_a_readable_time_has_the_time_of_its_file(info: dict[str, Any], tmp_path: Path) -> None:
    [event] = events(read(jsonl(tmp_path / "rows.jsonl", {"trace": mlflow_run(**info)})))
    assert event["occurred_at"].startswith("2026-01-31T12:00:00")
