"""Tests that rows of Databricks inference tables become invocations, and that rows of failed requests are reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.mlflow import mlflow_span, mlflow_trace, usage
from tests.support.row_files import csv_file
from tests.support.rows import events, parquet, problems, read, score, values

from traceweir.streams.intake.formats.documents import InputError

TRACE = mlflow_trace(mlflow_span("m", "LLM", None, usage(3, 4)))
REQUEST = {"messages": [{"role": "user", "content": "q"}]}
RESPONSE = {"choices": [{"message": {"role": "assistant", "content": "a"}}]}
COUNTS = ["total_token_count", "input_token_count", "output_token_count"]
LOGGED = {
    "databricks_request_id": "r1",
    "status_code": 200,
    "request": json.dumps(REQUEST),
    "response": json.dumps(RESPONSE),
}


def events_and_problems(tmp_path: Path, *rows: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the events of the valid rows, and the problems of the other rows."""
    path = tmp_path / "payload.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = read(path, "databricks-inference-table")
    return events(found), problems(found, path)


def test_a_payload_of_ai_gateway_becomes_an_invocation_at_its_request_time(tmp_path: Path) -> None:
    row = {**LOGGED, "request_time": "2026-01-31T12:00:00Z", "execution_duration_ms": 250}
    [event], [] = events_and_problems(tmp_path, row)
    del event["event_id"]
    assert event == {
        "type": "invocation.recorded",
        "session_id": "r1",
        "invocation_id": "r1",
        "occurred_at": "2026-01-31T12:00:00+00:00",
        "row": {"request_id": "r1", "request": REQUEST, "response": RESPONSE, "execution_time_ms": 250},
    }


@pytest.mark.parametrize(
    ("columns", "moment"),
    [
        ({"timestamp_ms": 1769860800500}, "2026-01-31T12:00:00.500000+00:00"),
        ({"timestamp": "2026-01-31T12:00:00"}, "2026-01-31T12:00:00+00:00"),
        ({"request_time": "2026-01-31T21:00:00+09:00"}, "2026-01-31T21:00:00+09:00"),
    ],
)
def test_the_event_time_is_the_time_in_the_log(columns: dict[str, Any], moment: str, tmp_path: Path) -> None:
    [event], [] = events_and_problems(tmp_path, LOGGED | columns)
    assert event["occurred_at"] == moment


@pytest.mark.parametrize("where", ["response", "column"])
async def test_the_trace_is_read_from_the_response_or_from_its_column(where: str, tmp_path: Path) -> None:
    inside = {**RESPONSE, "databricks_output": {"trace": json.loads(TRACE)}}
    row = LOGGED | ({"response": json.dumps(inside)} if where == "response" else {"trace": TRACE})
    path = tmp_path / "payload.jsonl"
    path.write_text(json.dumps(row | {"execution_time_ms": 250}), "utf-8")
    found = read(path, "databricks-inference-table")
    assert "databricks_output" not in events(found)[0]["row"]["response"]
    assert [value for _, _, value in values((await score(found)).scores)] == [7, 3, 4, 0.25]


def test_requests_of_a_conversation_are_one_session_without_an_end_event(tmp_path: Path) -> None:
    path = tmp_path / "payload.jsonl"
    rows = [LOGGED | {"databricks_request_id": name, "conversation_id": "c"} for name in ("r1", "r2")]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = read(path, "databricks-inference-table")
    assert [record.session_id for each in found for record in each.records] == ["c", "c"]
    assert [event["invocation_id"] for event in events(found)] == ["r1", "r2"]


@pytest.mark.parametrize(
    ("request_", "response", "expected"),
    [
        ("plain question", "plain answer", ("plain question", "plain answer")),
        ({"query": "q", "history": []}, {"content": "a"}, ({"query": "q", "history": []}, {"content": "a"})),
        ({"dataframe_records": [REQUEST]}, [RESPONSE], (REQUEST, [RESPONSE])),
        (
            {"dataframe_split": {"columns": ["messages"], "data": [[REQUEST["messages"]]]}},
            {"predictions": ["a"]},
            (REQUEST, "a"),
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]},
            {"output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "a"}]}]},
            (REQUEST, "a"),
        ),
        ({"input": "q"}, {"output": []}, ("q", {"output": []})),
    ],
)
def test_every_payload_format_is_read(request_: Any, response: Any, expected: tuple[Any, Any], tmp_path: Path) -> None:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in (request_, response)]
    [event], [] = events_and_problems(tmp_path, LOGGED | {"request": texts[0], "response": texts[1]})
    assert (event["row"]["request"], event["row"]["response"]) == expected


@pytest.mark.parametrize(
    "response",
    [
        RESPONSE | {"usage": {"prompt_tokens": 31, "completion_tokens": 12, "total_tokens": 43}},
        {
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
            "usage": {"input_tokens": 31, "output_tokens": 12, "total_tokens": 43},
        },
    ],
    ids=["chat completion", "responses"],
)
async def test_the_tokens_are_those_of_the_usage_in_the_response(response: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "payload.jsonl"
    path.write_text(json.dumps(LOGGED | {"response": json.dumps(response)}), "utf-8")
    result = await score(read(path, "databricks-inference-table"), {"criteria": {name: {} for name in COUNTS}})
    assert [value for _, _, value in values(result.scores)] == [43, 31, 12]


async def test_the_tokens_of_the_trace_take_precedence_over_the_response(tmp_path: Path) -> None:
    path = tmp_path / "payload.jsonl"
    response = RESPONSE | {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    path.write_text(json.dumps(LOGGED | {"response": json.dumps(response), "trace": TRACE}), "utf-8")
    result = await score(read(path, "databricks-inference-table"), {"criteria": {name: {} for name in COUNTS}})
    assert [value for _, _, value in values(result.scores)] == [7, 3, 4]


async def test_a_count_of_the_response_that_is_no_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "payload.jsonl"
    response = RESPONSE | {"usage": {"prompt_tokens": "many"}}
    path.write_text(json.dumps(LOGGED | {"response": json.dumps(response)}), "utf-8")
    result = await score(read(path, "databricks-inference-table"), {"criteria": {"input_token_count": {}}})
    assert result.scores[0].rationale == (
        "no model call reports its input tokens; prompt_tokens of the response is not an integer from 0 to 2^63 - 1"
    )


def test_the_raw_columns_take_precedence_over_the_text_columns(tmp_path: Path) -> None:
    row = {
        **LOGGED,
        "request": "q",
        "response": "a",
        "request_raw": json.dumps(REQUEST),
        "response_raw": json.dumps(RESPONSE),
    }
    [event], [] = events_and_problems(tmp_path, row)
    assert (event["row"]["request"], event["row"]["response"]) == (REQUEST, RESPONSE)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (
            {"status_code": 500},
            "row 1, column 'status_code': the request failed ('500'), so there is no answer to score",
        ),
        (
            {"databricks_request_id": None},
            "row 1, columns 'databricks_request_id', 'client_request_id', 'request_id': one of these columns must contain the id",
        ),
        ({"timestamp_ms": "yesterday"}, "row 1, column 'timestamp_ms': must be milliseconds since 1970"),
        ({"timestamp_ms": 1e300}, "row 1, column 'timestamp_ms': must be milliseconds since 1970"),
        ({"trace": TRACE[:30]}, "row 1, column 'trace': must contain valid serialized traces: it is truncated"),
        ({"response": None}, "row 1, columns 'response' and 'trace': Missing required field(s): response or trace"),
        ({"request": None}, "row 1, column 'request': Either column 'request' or 'inputs' is required"),
        (
            {"request": json.dumps({"dataframe_records": [{"text_assessments": []}]})},
            "row 1, column 'request': is feedback on another request",
        ),
    ],
)
def test_an_unusable_row_is_reported_and_other_rows_are_read(columns: dict[str, Any], why: str, tmp_path: Path) -> None:
    found, [problem] = events_and_problems(tmp_path, LOGGED | columns, LOGGED | {"databricks_request_id": "r2"})
    assert problem.startswith(why)
    assert [event["invocation_id"] for event in found] == ["r2"]


@pytest.mark.slow
def test_logs_have_no_row_limit_and_can_be_parquet(tmp_path: Path) -> None:
    rows = [LOGGED | {"databricks_request_id": f"{number}"} for number in range(10_001)]
    found = read(parquet(tmp_path / "payload.parquet", rows), "databricks-inference-table")
    assert (len(events(found)), sum(each.problem is not None for each in found)) == (10_001, 0)


@pytest.mark.parametrize("conversation", [None, "c"])
async def test_requests_with_the_same_client_request_id_get_different_ids(
    conversation: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "payload.jsonl"
    shared = {"client_request_id": "same", "response": "a", "conversation_id": conversation}
    rows = [shared | {"request": question} for question in ("q0", "q1", "q2", "q1")]
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found = read(path, "databricks-inference-table")
    ids = [event["invocation_id"] for event in events(found)]
    assert (ids[0], len(set(ids)), ids[1]) == ("same", 3, ids[3])
    assert all(each.startswith("same#") for each in ids[1:])
    assert [event["session_id"] for event in events(found)] == (ids if conversation is None else ["c"] * 4)
    assert [event["row"]["request_id"] for event in events(found)] == ids
    result = await score(found)
    assert (result.sessions, result.duplicates) == ((3, 2) if conversation is None else (1, 1))
    assert [record.value for each in found for record in each.records] == [
        record.value for each in read(path, "databricks-inference-table") for record in each.records
    ]


def test_the_same_request_at_two_times_is_two_sessions(tmp_path: Path) -> None:
    found, [] = events_and_problems(
        tmp_path, *(LOGGED | {"timestamp_ms": 1769860800000 + number} for number in range(2))
    )
    assert len({event["session_id"] for event in found}) == 2


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"execution_duration_ms": "12s"}, "column 'execution_duration_ms'"),
        ({"execution_time_ms": -1}, "column 'execution_time_ms'"),
        ({"response_raw": "[]"}, "column 'response_raw'"),
        ({"response": json.dumps({"databricks_output": {"trace": "{"}})}, "column 'response'"),
    ],
)
def test_an_error_names_the_column_of_the_log(columns: dict[str, Any], named: str, tmp_path: Path) -> None:
    [], [problem] = events_and_problems(tmp_path, LOGGED | columns)
    assert problem.startswith(f"row 1, {named}: ")


def test_every_column_of_a_parquet_log_is_read(tmp_path: Path) -> None:
    row = {
        "client_request_id": "r1",
        "conversation_id": "c",
        "status_code": 200,
        "request_raw": json.dumps(REQUEST),
        "response_raw": json.dumps(RESPONSE),
        "timestamp": "2026-01-31T12:00:00Z",
        "execution_duration_ms": 250,
        "served_entity_id": b"\xff",
    }
    [event] = events(read(parquet(tmp_path / "payload.parquet", [row]), "databricks-inference-table"))
    assert (event["session_id"], event["occurred_at"]) == ("c", "2026-01-31T12:00:00+00:00")
    assert event["row"] == {"request_id": "r1", "request": REQUEST, "response": RESPONSE, "execution_time_ms": 250}


@pytest.mark.parametrize("name", ["payload.csv", "payload.parquet"])
def test_a_table_of_logs_is_recognized_by_its_columns(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path = csv_file(path, LOGGED) if path.suffix == ".csv" else parquet(path, [LOGGED])
    [event] = events(read(path))
    assert (event["session_id"], event["row"]["request"], event["row"]["response"]) == ("r1", REQUEST, RESPONSE)


def test_a_table_whose_columns_fit_two_formats_is_refused_with_both_names(tmp_path: Path) -> None:
    path = csv_file(tmp_path / "joined.csv", LOGGED | {"expected_response": "a"})
    with pytest.raises(
        InputError,
        match=r"joined.csv: each row looks like a row of an inference table, but has 'expected_response' of evaluation "
        r"rows: add --format databricks-inference-table, which ignores this column, or --format databricks-agent-eval",
    ):
        read(path)
    assert len(events(read(path, "databricks-inference-table"))) == 1
    assert len(events(read(path, "databricks-agent-evaluation"))) == 1
