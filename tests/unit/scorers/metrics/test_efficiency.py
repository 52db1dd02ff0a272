"""Tests the informational metrics of Google ADK: tool calls, model calls, tokens and seconds of an invocation."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.scoring import make_session, scores_of

from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import Invocation
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn, turns_of
from traceweir.scorers import read_plan
from traceweir.scorers.base import MissingInput, Subject
from traceweir.scorers.metrics.efficiency import ToolCallCount
from traceweir.streams.testing import event

TOOLS, CALLS, TOKENS, SECONDS = METRICS = (
    "tool_call_count_v1",
    "inference_call_count_v1",
    "token_usage_v1",
    "invocation_duration_v1",
)
USED: dict[str, Any] = {"usage_metadata": {"prompt_token_count": 60, "candidates_token_count": 40}}
MORE: dict[str, Any] = {
    "usage_metadata": {
        "prompt_token_count": 700,
        "cached_content_token_count": 100,
        "tool_use_prompt_token_count": 20,
        "candidates_token_count": 200,
        "thoughts_token_count": 80,
        "total_token_count": 9_999,
    }
}


async def measured(*turns: Turn) -> list[Score]:
    return await scores_of(read_plan({"criteria": {metric: {} for metric in METRICS}}), turns)


def recorded(*steps: dict[str, Any], **fields: Any) -> Turn:
    document = {"invocation_id": "i", "intermediate_data": {"invocation_events": list(steps)}, **fields}
    return Turn(Invocation.model_validate(document))


def values(scores: list[Score]) -> dict[str, float | str | None]:
    """Returns the value of each metric for the first invocation, or the reason why there is none."""
    found: dict[str, float | str | None] = {}
    for score in scores:
        found.setdefault(score.metric, score.not_evaluated_because or score.value)
    return found


def of_session(scores: list[Score], metric: str) -> Score:
    return next(score for score in scores if (score.level, score.metric) == ("session", metric))


async def test_events_of_an_agent_are_counted_and_timed() -> None:
    documents = [
        event("invocation.started", at=1),
        event("model.called", at=2, input_tokens=10, output_tokens=5),
        event("tool.called", at=3),
        event("model.called", at=4, input_tokens=20),
        event("invocation.completed", at=6.5),
    ]
    events = [EVENT.validate_python(each, strict=False) for each in documents]

    scores = await measured(*turns_of(make_session(events=events)))

    assert values(scores) == {TOOLS: 1.0, CALLS: 2.0, TOKENS: 35.0, SECONDS: 5.5}
    assert {(score.status, score.threshold) for score in scores} == {("PASSED", None)}
    assert scores[4].details == {"input_tokens": 30, "output_tokens": 5}


async def test_an_invocation_that_adk_recorded_has_the_values_of_adk() -> None:
    calls = [{"content": {"parts": [{"function_call": {"name": "find"}}]}, **USED}, {"model_version": "gemini"}, MORE]
    scores = await measured(recorded(*calls, duration=1.5, latency_seconds=9))

    assert values(scores) == {TOOLS: 1.0, CALLS: 3.0, TOKENS: 1_100.0, SECONDS: 1.5}
    assert scores[4].details == {
        "input_tokens": 780,
        "output_tokens": 320,
        "prompt_tokens": 760,
        "cached_tokens": 100,
        "tool_use_tokens": 20,
        "candidates_tokens": 240,
        "reasoning_tokens": 80,
    }


async def test_a_missing_input_is_not_a_count_of_0() -> None:
    assert values(await measured(Turn(Invocation(invocation_id="i")))) == {
        TOOLS: 0.0,
        CALLS: "missing_input",
        TOKENS: "missing_input",
        SECONDS: "missing_input",
    }
    assert values(await measured(recorded({"author": "agent"})))[CALLS] == "missing_input"


async def test_the_count_of_model_calls_that_adk_stores_takes_precedence_over_its_events() -> None:
    assert values(await measured(recorded(USED, inference_call_count=3)))[CALLS] == 3.0


async def test_a_session_without_some_counts_has_the_mean_of_adk() -> None:
    silent = Turn(Invocation(invocation_id="silent"))
    scores = await measured(recorded(USED, duration=2), silent)

    assert [of_session(scores, metric).value for metric in METRICS] == [0.0, 1.0, 50.0, 2.0]
    tokens = of_session(scores, TOKENS)
    assert tokens.details == {
        "input_tokens": 30.0,
        "output_tokens": 20.0,
        "prompt_tokens": 30.0,
        "candidates_tokens": 20.0,
        "invocations": 2,
        "measured": 1,
        "not_evaluated": {"missing_input": {"count": 1, "invocations": ["silent"], "causes": {"not_recorded": 1}}},
    }


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("criterion", [1, {"threshold": 0.5}])
def test_a_threshold_is_refused_as_in_adk(metric: str, criterion: Any) -> None:
    with pytest.raises(ValueError, match=f"{metric}: is informational and takes no threshold"):
        read_plan({"criteria": {metric: criterion}})


async def test_the_other_token_counts_read_the_usage_metadata_too() -> None:
    plan = read_plan({"criteria": {"total_token_count": {}}})
    assert (await scores_of(plan, [recorded(USED)]))[0].value == 100.0


def test_unknown_tool_calls_are_not_counted_as_none() -> None:
    sentence = "the tool calls, if there were any, are not in the spans: a value was cut"
    invocation = Invocation(invocation_id="i", unread=[sentence])
    subject = Subject(invocation=invocation)
    with pytest.raises(MissingInput, match="the tool calls, if there were any"):
        ToolCallCount().score(subject)
