"""Tests that a pandas DataFrame is scored like a file, also within a running event loop such as a notebook's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.offline.dataframe import score_frame

pd = pytest.importorskip("pandas", reason="needs pandas: pip install '.[tables]'")

RECALL = "retrieval/ground_truth/document_recall"


class Trace:
    """Has the interface of an MLflow trace."""

    def to_json(self) -> str:
        return '{"info": {"execution_duration_ms": 51}, "data": {"spans": []}}'


def scored(*rows: dict[str, Any], **options: Any) -> tuple[list[tuple[str, str, float]], list[str]]:
    scores, problems = score_frame(pd.DataFrame(list(rows)), settings=Settings(), **options)
    known = scores[(scores["level"] == "invocation") & scores["value"].notna()] if len(scores) else scores
    values = list(known[["session_id", "metric", "value"]].itertuples(index=False, name=None))
    return values, [problem.detail for problem in problems]


def test_values_of_pandas_and_numpy_types_are_read() -> None:
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


def test_an_mlflow_trace_object_is_read() -> None:
    assert scored({"request_id": "a", "request": "q", "trace": Trace()}) == (
        [("a", "agent/latency_seconds", 0.051)],
        [],
    )


def test_an_invalid_row_is_reported_by_number_and_other_rows_are_scored() -> None:
    good = {"request_id": "a", "request": "q", "response": "a", "execution_time_ms": 51}
    values, problems = scored(
        good | {"request_id": "b", "retrieved_context": object()}, good, good | {"request": {"query": "\ud800"}}
    )
    assert values == [("a", "agent/latency_seconds", 0.051)]
    assert problems == [
        (
            "the DataFrame: row 1, column 'retrieved_context': contains a value of type object, which JSON cannot represent; "
            "convert it to a type of JSON"
        ),
        "the DataFrame: row 3, column 'request': cannot be written as JSON (str is not valid UTF-8: surrogates not allowed)",
    ]


async def test_score_frame_can_be_called_within_a_running_event_loop() -> None:
    assert scored({"request_id": "a", "request": "q", "response": "a"}, config={"criteria": {"latency": {}}}) == (
        [],
        [],
    )


def test_a_data_frame_can_contain_inference_table_rows() -> None:
    row = {"databricks_request_id": "r", "request": "q", "response": "a", "execution_time_ms": 51}
    row["timestamp"] = pd.Timestamp(datetime(2026, 1, 31, tzinfo=UTC))
    assert scored(row, format="databricks-inference-table") == ([("r", "agent/latency_seconds", 0.051)], [])


def test_a_frame_without_rows_has_no_scores() -> None:
    scores, problems = score_frame(pd.DataFrame({"request": [], "response": []}), settings=Settings())
    assert (list(scores.columns), len(scores), problems) == (["session_id", "metric", "value"], 0, [])


def test_a_column_outside_the_format_can_contain_any_object() -> None:
    row = {"request_id": "a", "request": "q", "response": "a", "execution_time_ms": 51, "other": object()}
    with pytest.warns(UserWarning, match="column 'other' is not read"):
        assert scored(row) == ([("a", "agent/latency_seconds", 0.051)], [])


def test_every_row_of_a_frame_without_known_columns_is_reported() -> None:
    assert [problem.split(", ")[0] for problem in scored({"x": 1}, {"x": 2})[1]] == [
        "the DataFrame: row 1",
        "the DataFrame: row 2",
    ]


def test_a_duplicate_name_of_a_known_column_is_rejected() -> None:
    frame = pd.DataFrame([["q", "a", "b"]], columns=["request", "response", "response"])
    with pytest.raises(ValueError, match="the DataFrame: has more than one column 'response'"):
        score_frame(frame, settings=Settings())
    frame.columns = pd.Index(["request", "response", "request.1"])
    with pytest.warns(UserWarning, match=r"column 'request\.1' is not read .*the nearest that is read is 'request'"):
        assert score_frame(frame, settings=Settings()).problems == []


class FailingTrace:
    """Raises an error instead of returning its JSON."""

    def to_json(self) -> str:
        raise OSError("the store is gone")


def test_a_value_that_fails_to_return_its_json_rejects_only_its_row() -> None:
    good = {"request_id": "a", "request": "q", "response": "a", "execution_time_ms": 51}
    assert scored(good | {"trace": FailingTrace()}, good) == (
        [("a", "agent/latency_seconds", 0.051)],
        ["the DataFrame: row 1, column 'trace': cannot be read (OSError: the store is gone)"],
    )


@pytest.mark.parametrize("format_", ["openai-chat", "bogus"])
def test_a_format_without_rows_is_rejected_with_the_row_formats(format_: Any) -> None:
    with pytest.raises(ValueError, match=f"{format_}.*databricks-inference-table.*databricks-agent-evaluation"):
        scored({"request": "q", "response": "a"}, format=format_)
