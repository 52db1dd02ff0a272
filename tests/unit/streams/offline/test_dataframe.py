"""DataFrames are scored as files are, from a notebook too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from traceweir.streams.offline.dataframe import score_frame
from traceweir.streams.settings import Settings

pd = pytest.importorskip("pandas", reason="needs pandas: pip install '.[tables]'")

RECALL = "retrieval/ground_truth/document_recall"


class Trace:
    """As MLflow has it."""

    def to_json(self) -> str:
        return '{"info": {"execution_duration_ms": 51}, "data": {"spans": []}}'


def scored(*rows: dict[str, Any], **options: Any) -> tuple[list[tuple[str, str, float]], list[str]]:
    scores, problems = score_frame(pd.DataFrame(list(rows)), settings=Settings(), **options)
    known = scores[(scores["level"] == "invocation") & scores["value"].notna()] if len(scores) else scores
    values = list(known[["session_id", "metric", "value"]].itertuples(index=False, name=None))
    return values, [problem.detail for problem in problems]


def test_the_types_of_pandas_and_numpy_are_read() -> None:
    row = {
        "request_id": "a",
        "request": {"messages": np.array([{"role": "user", "content": "q"}])},
        "response": "a",
        "expected_retrieved_context": np.array([{"doc_uri": "d1"}, {"doc_uri": "d2"}]),
        "retrieved_context": [{"doc_uri": "d1"}],
        "expected_response": "r",
        "execution_time_ms": np.float64(51),
        "expected_facts": float("nan"),
        "trace": pd.NA,
    }
    assert scored(row) == ([("a", "agent/latency_seconds", 0.051), ("a", RECALL, 0.5)], [])


def test_a_trace_of_mlflow_is_taken_as_it_is() -> None:
    assert scored({"request_id": "a", "request": "q", "trace": Trace()}) == (
        [("a", "agent/latency_seconds", 0.051)],
        [],
    )


def test_a_bad_row_costs_itself_alone_and_is_counted_from_one() -> None:
    good = {"request_id": "a", "request": "q", "response": "a", "execution_time_ms": 51}
    values, problems = scored(
        good | {"request_id": "b", "retrieved_context": object()}, good, good | {"request": {"query": "\ud800"}}
    )
    assert values == [("a", "agent/latency_seconds", 0.051)]
    assert problems == [
        "the DataFrame: row 1, column 'retrieved_context': holds a value of type object, which JSON does not have",
        "the DataFrame: row 3, column 'request': cannot be written as JSON (str is not valid UTF-8: surrogates not allowed)",
    ]


async def test_it_may_be_called_where_a_loop_runs() -> None:
    assert scored({"request_id": "a", "request": "q", "response": "a"}, config={"criteria": {"latency": {}}}) == (
        [],
        [],
    )


def test_logs_may_come_as_a_frame() -> None:
    row = {"databricks_request_id": "r", "request": "q", "response": "a", "execution_time_ms": 51}
    row["timestamp"] = pd.Timestamp(datetime(2026, 1, 31, tzinfo=UTC))
    assert scored(row, format="databricks-inference-table") == ([("r", "agent/latency_seconds", 0.051)], [])


def test_a_frame_without_rows_has_no_scores() -> None:
    scores, problems = score_frame(pd.DataFrame({"request": [], "response": []}), settings=Settings())
    assert (list(scores.columns), len(scores), problems) == (["session_id", "metric", "value"], 0, [])


def test_a_column_that_nobody_reads_may_hold_anything() -> None:
    row = {"request_id": "a", "request": "q", "response": "a", "execution_time_ms": 51, "other": object()}
    assert scored(row) == ([("a", "agent/latency_seconds", 0.051)], [])


def test_a_frame_of_which_no_column_is_read_has_rows_and_each_is_named() -> None:
    assert [problem.split(", ")[0] for problem in scored({"x": 1}, {"x": 2})[1]] == [
        "the DataFrame: row 1",
        "the DataFrame: row 2",
    ]


def test_a_column_that_is_read_has_its_name_alone() -> None:
    frame = pd.DataFrame([["q", "a", "b"]], columns=["request", "response", "response"])
    with pytest.raises(ValueError, match="the DataFrame: names column 'response' twice"):
        score_frame(frame, settings=Settings())
    frame.columns = pd.Index(["request", "response", "request.1"])
    assert score_frame(frame, settings=Settings()).problems == []


class Broken:
    """What cannot say itself."""

    def to_json(self) -> str:
        raise OSError("the store is gone")


def test_a_value_that_fails_to_say_itself_costs_its_row() -> None:
    good = {"request_id": "a", "request": "q", "response": "a", "execution_time_ms": 51}
    assert scored(good | {"trace": Broken()}, good) == (
        [("a", "agent/latency_seconds", 0.051)],
        ["the DataFrame: row 1, column 'trace': cannot be read (OSError: the store is gone)"],
    )


@pytest.mark.parametrize("format_", ["openai-chat", "bogus"])
def test_a_format_that_is_none_of_rows_is_refused_with_those_that_are(format_: Any) -> None:
    with pytest.raises(ValueError, match=f"{format_}.*databricks-agent-evaluation.*databricks-inference-table"):
        scored({"request": "q", "response": "a"}, format=format_)
