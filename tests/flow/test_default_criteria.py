"""Without a config every session has a score, and a metric whose input is missing has none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.eval_sets import content
from tests.support.flow import TOPICS

from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.criteria_text import criteria_text
from traceweir.streams.testing import Flow, event, trace

TOOLS, CALLS, TOKENS = "tool_call_count_v1", "inference_call_count_v1", "token_usage_v1"


async def results(*records: dict[str, Any], config: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    flow = Flow(plan=read_plan(config))
    for record in records:
        flow.send(TOPICS.traces if "@type" in record else TOPICS.invocations, record)
    await flow.finish()
    counters = flow.counters("score")
    counted = [counters.get(f"scores.{outcome}", 0) for outcome in ("INFORMATIONAL", "NOT_EVALUATED.missing_input")]
    found = [score for score in flow.results() if score["metric"] not in ("trace_value", "gate")]
    assert counted == [sum(score["status"] == status for score in found) for status in ("PASSED", "NOT_EVALUATED")]
    return found


def values(scores: list[dict[str, Any]]) -> list[tuple[str, str, float | None]]:
    return [(score["level"], score["metric"], score["value"]) for score in scores]


async def test_a_session_without_traces_has_a_score() -> None:
    asked = event("invocation.started", user_content=content("Hi"))
    assert values(await results(asked)) == [("invocation", TOOLS, 0.0), ("session", TOOLS, 0.0)]


async def test_a_session_with_traces_has_the_scores_of_its_invocations_too() -> None:
    assert values(await results(trace())) == [("invocation", TOOLS, 2.0), ("session", TOOLS, 2.0)]


async def test_model_calls_and_tokens_are_counted_where_agents_report_them() -> None:
    calls = [event("model.called", input_tokens=7, output_tokens=3), event(at=1)]
    silent = event("tool.called", at=2, invocation_id="silent")

    scores = await results(*calls, silent)

    assert values(scores) == [
        ("invocation", TOOLS, 0.0),
        ("invocation", TOOLS, 1.0),
        ("session", TOOLS, 0.5),
        ("invocation", CALLS, 2.0),
        ("session", CALLS, 2.0),
        ("invocation", TOKENS, 10.0),
        ("session", TOKENS, 5.0),
    ]
    assert scores[-1]["details"]["not_evaluated"] == {
        "missing_input": {"count": 1, "invocations": ["silent"], "causes": {"not_recorded": 1}}
    }


async def test_a_session_without_invocations_has_a_reason() -> None:
    (score,) = await results(event("session.ended"))
    assert (score["metric"], score["not_evaluated_because"]) == (TOOLS, "missing_input")


@pytest.mark.parametrize("config", [{}, {"criteria": {}}, {"gate": {"threshold": 0.5}}])
async def test_a_config_without_criteria_measures_none(config: dict[str, Any]) -> None:
    assert await results(event(), trace(), config=config) == []


async def test_a_criterion_of_a_config_says_that_its_input_is_missing() -> None:
    scores = await results(event("tool.called"), config={"criteria": {TOKENS: {}}})
    assert [score["not_evaluated_because"] for score in scores] == ["missing_input", "missing_input"]


def test_one_line_says_which_criteria_are_on_and_why() -> None:
    def text(config: Any, name: str | None = "eval.json") -> str:
        return criteria_text(read_plan(config), name)

    assert text(None, None) == (
        "no config, so the default criteria are on: tool_call_count_v1; for sessions with the input also "
        "inference_call_count_v1, token_usage_v1"
    )
    assert text({"criteria": {"response_match_score": 0.8, TOKENS: {}, "response_evaluation_score": 3}}) == (
        "criteria of eval.json: response_match_score >= 0.8, token_usage_v1, "
        "response_evaluation_score >= 3 (unsupported: NOT_EVALUATED)"
    )
    assert text({}).startswith("eval.json has no criteria, so a session without traces gets no score; ")


def test_one_line_says_that_the_code_of_a_config_is_not_run() -> None:
    code = {"code_config": {"name": "mine.score\n2026 INFO forged"}}
    custom: dict[str, Any] = {"response_match_score": code, "mine": code}
    config = {"criteria": {"response_match_score": 0.8, "mine": 1}, "custom_metrics": custom}
    assert criteria_text(read_plan(config), None) == (
        "criteria of the config: response_match_score >= 0.8 (measured by the registered scorer; "
        "mine.score\\n2026 INFO forged is not run), mine >= 1 (unsupported: NOT_EVALUATED)"
    )
