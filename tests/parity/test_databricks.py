"""Compares rows, requests, responses and metrics with databricks-agents 1.13 (token counts: 0.22.1)."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.base import explain
from traceweir.schemas.evaluation_row import CONFLICT, EvaluationRow
from traceweir.schemas.events import EVENT
from traceweir.schemas.row_texts import request_text, response_text
from traceweir.schemas.score import Score
from traceweir.schemas.turns import turns_of
from traceweir.scorers import read_plan
from traceweir.scorers.judged.chunk_relevance import precision
from traceweir.scorers.judged.yes_no_rating import Rating

READ_OTHERWISE: dict[str, str | None] = {
    "{'messages': []}": None,
    "{'foo': 1}": None,
    "{'choices': []}": None,
    "None": None,
    "{'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'x'}]}]}": "x",
    "['x', 'y']": "xy",
}
"""What Databricks reads as the text of a Python object, a blank, or the first piece alone, and what is read here."""
DATA = Path(__file__).parent / "data"
LINES = [line.split(" | ") for line in (DATA / "databricks_oracle.txt").read_text("utf-8").splitlines()]
QUESTION = {"request": "q", "response": "a"}
ROWS: dict[str, dict[str, Any]] = {
    "request str": {"request": "q"},
    "no request": {"request_id": "1"},
    "request None": {"request": None},
    "request NaN 2nd": {"request": None},
    "request list": {"request": ["q"]},
    "request int": {"request": 1},
    "request+inputs": {"request": "q", "inputs": {"q": 1}},
    "inputs non-dict": {"inputs": [1]},
    "expected_facts str": {"request": "q", "expected_facts": "fact"},
    "expected_facts ints": {"request": "q", "expected_facts": [1]},
    "expected_facts []": {"request": "q", "expected_facts": []},
    "ctx list of str": {"request": "q", "retrieved_context": ["a"]},
    "ctx no doc_uri": {"request": "q", "retrieved_context": [{"content": "c"}]},
    "ctx extra key": {"request": "q", "retrieved_context": [{"doc_uri": "a", "score": 1}]},
    "ctx None chunk": {"request": "q", "retrieved_context": [None, "a"]},
    "ctx str": {"request": "q", "retrieved_context": "a"},
    "ctx dict": {"request": "q", "expected_retrieved_context": {"doc_uri": "a"}},
    "doc_uri int": {"request": "q", "retrieved_context": [{"doc_uri": 1}]},
    "trace bad": {"request": "q", "trace": "{}"},
    "request_id int": {"request": "q", "request_id": 1},
}
REFUSED_HERE = {"facts+response", "neither response nor trace"}
"""Rows that the package accepts until a judge reads them, and that the document forbids."""


def recorded_rows(kind: str) -> list[list[str]]:
    return [line[1:] for line in LINES if line[0].startswith(kind)]


def rule_of(message: str) -> tuple[str, str]:
    """Returns the column and the rule in a message of the package, without the value."""
    found = re.match(r"Column ['\"](\w+)['\"] (.*?)(?:\. Got .*)?$", message)
    return (found[1], found[2]) if found else ("", message.removesuffix(" in the input DataFrame."))


def rejection(row: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as refused:
        EvaluationRow.model_validate_json(json.dumps({"response": "a"} | row))
    return explain(refused.value)


def test_every_verdict_on_a_row_is_compared() -> None:
    assert {name for name, *_ in [*recorded_rows("VALID"), *recorded_rows("ERR")]} == ROWS.keys() | REFUSED_HERE


@pytest.mark.parametrize("name", [name for (name,) in recorded_rows("VALID") if name not in REFUSED_HERE])
def test_a_row_that_databricks_accepts_is_accepted(name: str) -> None:
    EvaluationRow.model_validate_json(json.dumps({"response": "a"} | ROWS[name]))


@pytest.mark.parametrize(("name", "kind", "message"), recorded_rows("ERR"))
def test_a_row_that_databricks_rejects_is_rejected_by_the_same_rule(name: str, kind: str, message: str) -> None:
    column, rule = rule_of(message)
    found = rejection(ROWS[name])
    if name == "request_id int":  # a wrong type, for which pydantic has its own message
        assert found == "request_id: Input should be a valid string (got 1)"
    else:
        assert found.startswith(f"{column or 'document'}: {rule}" if column != "inputs" else f"document: {rule}")


@pytest.mark.parametrize(("row", "verdict"), recorded_rows("REQS"))
def test_both_expectations_are_rejected_with_databricks_message(row: str, verdict: str) -> None:
    columns, expected = ast.literal_eval(row), ast.literal_eval(verdict)
    if expected and expected[0] == "1010":
        assert expected[1] == CONFLICT
        assert rejection(columns) == f"document: {CONFLICT}"
    elif "response" in columns:  # other requirements of the judge are not compared
        EvaluationRow.model_validate_json(json.dumps(columns))


def test_a_row_without_response_and_trace_is_rejected() -> None:
    with pytest.raises(ValidationError, match=r"Missing required field\(s\): response or trace"):
        EvaluationRow.model_validate_json('{"request": "q"}')


@pytest.mark.parametrize(
    ("request_", "text"),
    [line for line in recorded_rows("REQ") if len(line) == 2 and line not in recorded_rows("REQS")],
)
def test_a_request_is_read_as_the_same_question(request_: str, text: str) -> None:
    try:
        value = ast.literal_eval(request_)
    except (ValueError, SyntaxError):
        value = request_
    assert request_text(value) == READ_OTHERWISE.get(request_, ast.literal_eval(text))


@pytest.mark.parametrize(("response", "text"), [line for line in recorded_rows("RESP") if len(line) == 2])
def test_a_response_is_read_as_the_same_answer(response: str, text: str) -> None:
    try:
        value = ast.literal_eval(response)
    except (ValueError, SyntaxError):
        value = response
    assert response_text(value) == READ_OTHERWISE.get(response, ast.literal_eval(text))


def test_an_empty_list_is_not_a_valid_response() -> None:
    assert rejection({"request": "q", "response": []}).startswith("response: must be text or an object")


def chunks(text: str) -> list[Any]:
    row = EvaluationRow.model_validate({**QUESTION, "retrieved_context": ast.literal_eval(text)})
    found: list[Any] = row.model_dump(mode="json")["retrieved_context"]
    return found


@pytest.mark.parametrize(("retrieved", "expected", "outcome"), recorded_rows("RECALL"))
async def test_document_recall_agrees(retrieved: str, expected: str, outcome: str) -> None:
    row = {**QUESTION, "retrieved_context": chunks(retrieved), "expected_retrieved_context": chunks(expected)}
    score = (await scored(row, "document_recall"))["retrieval/ground_truth/document_recall"]
    if outcome == "absent":
        assert (score.value, score.not_evaluated_because) == (None, "missing_input")
    else:
        [(_, value)] = ast.literal_eval(outcome)
        assert score.value == value


# The original leaves out a chunk whose judge failed (`err`); Traceweir gives no value.
@pytest.mark.parametrize(
    ("ratings", "outcome"), [row for row in recorded_rows("CHUNKPREC") if "err" not in ast.literal_eval(row[0])]
)
def test_chunk_precision_agrees(ratings: str, outcome: str) -> None:
    of: list[Rating | None] = ast.literal_eval(ratings)
    expected = ast.literal_eval(outcome)
    assert precision(of) == (expected[0][1] if expected else None)


@pytest.mark.parametrize(("version", "latency"), [(2, 0.067), (3, 0.051)])
async def test_the_sample_traces_have_tokens_latency_and_recall(version: int, latency: float) -> None:
    trace = (DATA / f"mlflow_trace_v{version}.json").read_text("utf-8")
    row = {"request": "What is RAG?", "trace": trace, "expected_retrieved_context": ["docs/rag.md", "docs/other.md"]}
    metrics = ["document_recall", "total_token_count", "input_token_count", "output_token_count", "latency"]
    assert {name: score.value for name, score in (await scored(row, *metrics)).items()} == {
        "retrieval/ground_truth/document_recall": 0.5,
        "agent/total_token_count": 43,
        "agent/input_token_count": 31,
        "agent/output_token_count": 12,
        "agent/latency_seconds": latency,
    }


async def scored(row: dict[str, Any], *metrics: str) -> dict[str, Score]:
    """Returns the scores of the row's invocation, by metric."""
    criteria: dict[str, JsonValue] = {name: 0.5 if name == "document_recall" else {} for name in metrics}
    recorded = {"type": "invocation.recorded", "session_id": "s", "occurred_at": "2026-01-31T12:00:00Z", "row": row}
    turns = turns_of(make_session("s", events=[EVENT.validate_json(json.dumps(recorded))]))
    scores = await scores_of(read_plan({"criteria": criteria}), turns)
    return {score.metric: score for score in scores if score.level == "invocation"}
