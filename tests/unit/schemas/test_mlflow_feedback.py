"""Tests scores as assessments of MLflow 3. The expected form was read by `Assessment.from_dictionary` of mlflow 3.17."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.paths import ROOT

from traceweir.schemas.mlflow_feedback import feedback_of
from traceweir.schemas.score import Cost, Score

GOLDEN = Score.model_validate_json((ROOT / "tests" / "golden" / "1.0" / "Score.json").read_bytes())


def written(judge_model: str | None = None, **changes: Any) -> dict[str, Any]:
    return feedback_of(GOLDEN.model_copy(update=changes), judge_model)


def test_a_measured_score_is_feedback_with_value_rationale_and_metadata() -> None:
    found = written(level="invocation", invocation_id="tr-1", trace_id=None, threshold=0.5, rationale="1 of 2")
    moment = found["create_time"]
    assert moment.endswith("Z")
    assert found == {
        "assessment_name": GOLDEN.metric,
        "trace_id": "tr-1",
        "source": {"source_type": "CODE", "source_id": "traceweir"},
        "create_time": moment,
        "last_update_time": moment,
        "feedback": {"value": GOLDEN.value},
        "rationale": "1 of 2",
        "metadata": found["metadata"],
    }
    metadata = found["metadata"]
    assert all(isinstance(value, str) for value in metadata.values())
    names = ("result_id", "status", "threshold", "level")
    assert [metadata[f"traceweir.{name}"] for name in names] == [
        GOLDEN.result_id,
        GOLDEN.status,
        "0.5",
        "invocation",
    ]


def test_a_judged_score_names_its_model_and_its_cost_as_mlflow_does() -> None:
    found = written("openai/gpt-4o-mini", cost=Cost(input_tokens=10, output_tokens=2, usd=0.25))
    assert found["source"] == {"source_type": "LLM_JUDGE", "source_id": "openai/gpt-4o-mini"}
    names = ("judgeInputTokens", "judgeOutputTokens", "judgeCost")
    assert [found["metadata"][f"mlflow.assessment.{name}"] for name in names] == ["10", "2", "0.25"]


def test_a_score_that_is_not_evaluated_is_an_error_and_has_no_value() -> None:
    found = written(
        value=None, status="NOT_EVALUATED", not_evaluated_because="missing_input", rationale="there is no response"
    )
    assert found["feedback"] == {
        "value": None,
        "error": {"error_code": "missing_input", "error_message": "there is no response"},
    }
    assert "rationale" not in found
    assert "traceweir.cause" not in found["metadata"]


def test_what_a_judge_lacked_is_in_the_metadata() -> None:
    found = written(value=None, status="NOT_EVALUATED", not_evaluated_because="error", cause="judge_refused")
    assert found["feedback"]["error"]["error_code"] == "error"
    assert found["metadata"]["traceweir.cause"] == "judge_refused"


def test_the_score_of_a_session_has_no_trace_and_names_its_session_as_mlflow_does() -> None:
    found = written(level="session", invocation_id=None, trace_id=None, threshold=None)
    assert "trace_id" not in found
    assert found["metadata"]["mlflow.trace.session"] == GOLDEN.session_id
    assert "traceweir.threshold" not in found["metadata"]


@pytest.mark.parametrize("text", ["검색", "a\u2028b", '"quoted"\n'])
def test_text_in_any_script_stays_one_line_of_json(text: str) -> None:
    line = json.dumps(written(rationale=text))
    assert json.loads(line)["rationale"] == text
    assert line.splitlines() == [line]


def test_a_value_without_a_threshold_is_informational() -> None:
    assert written(threshold=None)["metadata"]["traceweir.status"] == "INFORMATIONAL"
