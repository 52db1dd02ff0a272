"""DataFrames are scored as files are, from a notebook too."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tracegate.streams.frames import score_frame
from tracegate.streams.settings import Settings

pd = pytest.importorskip("pandas", reason="needs pandas: pip install 'tracegate[tables]'")

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
