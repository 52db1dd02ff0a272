"""Rows that pass the stages one record at a time with crashes have the scores that `traceweir score` computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.flow import TOPICS
from tests.support.mlflow import documents, mlflow_span, mlflow_trace, usage
from tests.support.rows import AUTO, read, score
from tests.support.scoring import NOW

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.testing import START_S, Flow

TRACE = mlflow_trace(
    mlflow_span("root", "AGENT", None, "answer"),
    mlflow_span("find", "RETRIEVER", "root", documents("d1", "d3")),
    mlflow_span("model", "LLM", "root", usage(3, 4)),
    execution_duration_ms=51,
)
ROWS = [
    {
        "request_id": "a",
        "request": "q",
        "trace": TRACE,
        "expected_response": "r",
        "expected_retrieved_context": ["d1", "d2"],
    },
    {"request_id": "b", "request": "q", "response": "x", "expected_retrieved_context": ["d1"], "retrieved_context": []},
    {"request_id": "c", "request": "q", "response": "x"},
]


def without_times(score: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in score.items() if name not in ("occurred_at", "evaluated_at")}


async def test_online_and_offline_scores_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    found = read(path)
    offline = [without_times(json.loads(each.wire())) for each in (await score(found)).scores]

    flow = Flow(plan=read_plan(AUTO))
    flow.pass_time(NOW.timestamp() - START_S)
    for each in found:
        for record in each.records:
            flow.send(TOPICS.invocations, record.value, key=(record.session_id or "").encode())
            await flow.take(TOPICS.invocations)
            flow.checkpoint()
            flow.crash()
    await flow.finish()
    online = [without_times(each) for each in flow.results()]
    assert len(offline) == 20
    assert {each["result_id"]: each for each in online} == {each["result_id"]: each for each in offline}


async def test_an_invalid_row_is_a_dead_letter_that_names_the_columns() -> None:
    flow = Flow(plan=read_plan(AUTO))
    both = {"request": "q", "response": "a", "expected_facts": [], "expected_response": "r"}
    moment = "2025-12-31T23:59:00Z"
    record = {"type": "invocation.recorded", "session_id": "s", "occurred_at": moment, "row": both}
    flow.send(TOPICS.invocations, record, key=b"s")
    await flow.take(TOPICS.invocations)
    flow.checkpoint()
    [letter] = flow.dead_letters()
    assert (letter.reason, letter.detail) == (
        "invalid",
        "invocation.recorded.row: Conflicting field(s): more than one of [expected_response or expected_facts] cannot be defined",
    )
