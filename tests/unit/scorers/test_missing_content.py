"""A score is not computed from an invocation of which the source was cut: it is NOT_EVALUATED, and says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.scoring import make_session, make_turn, scores_of

from traceweir.schemas.events import EVENT
from traceweir.schemas.invocation import Content, FunctionCall, IntermediateData, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.refused_record import TOOL_CALLS, refused_part
from traceweir.schemas.turns import turns_of
from traceweir.scorers import read_plan
from traceweir.scorers.base import MissingInput, Scorer, Subject
from traceweir.scorers.judged.evidence import answer_of, question_of, tool_steps_of
from traceweir.scorers.metrics.completeness import Completeness
from traceweir.scorers.metrics.document_recall import DocumentRecall
from traceweir.scorers.metrics.latency import Latency
from traceweir.scorers.metrics.response_match import ResponseMatch
from traceweir.scorers.metrics.token_counts import InputTokenCount
from traceweir.scorers.metrics.tool_call_accuracy import ToolCallAccuracy
from traceweir.scorers.metrics.tool_trajectory import ToolTrajectory
from traceweir.scorers.metrics.trajectory import TrajectoryExactMatch, TrajectoryPrecision, TrajectorySingleToolUse

REFERENCE = Reference(
    final_response=Content.of("Closed."), tool_uses=[FunctionCall(name="hours", args={"day": "Sunday"})]
)
NO_ARGS = "the arguments of the call of tool 'hours' are not in the spans: set CONTENT=true"
NO_CALLS = "the tool calls, if there were any, are not in the spans: instrument the client"
NO_ANSWER = "the answer is not in the spans: set CONTENT=true"
CALL = IntermediateData(tool_uses=[FunctionCall(name="hours")])


@pytest.mark.parametrize(
    "scorer", [ToolTrajectory(), TrajectoryExactMatch(), Latency(), InputTokenCount(), DocumentRecall(), Completeness()]
)
def test_a_scorer_of_invocations_says_of_a_session_that_there_is_no_invocation(scorer: Any) -> None:
    with pytest.raises(MissingInput, match=r"^there is no invocation$"):
        scorer.score(Subject(session=make_session(), reference=REFERENCE))


@pytest.mark.parametrize("scorer", [ToolTrajectory(), TrajectoryExactMatch(), TrajectoryPrecision()])
def test_calls_without_recorded_arguments_are_not_compared(scorer: Any) -> None:
    cut = Subject(invocation=Invocation(intermediate_data=CALL, unread=[NO_ARGS]), reference=REFERENCE)
    with pytest.raises(MissingInput, match="set CONTENT=true"):
        scorer.score(cut)
    names_alone = type(scorer)(ignore_args=True)
    assert names_alone.score(cut).value == 1.0
    whole = Subject(invocation=Invocation(intermediate_data=CALL), reference=REFERENCE)
    assert scorer.score(whole).value == 0.0


@pytest.mark.parametrize("scorer", [ToolTrajectory(), TrajectoryExactMatch(), TrajectoryPrecision()])
def test_tool_calls_that_were_not_recorded_are_not_compared_as_no_call(scorer: Any) -> None:
    cut = Subject(invocation=Invocation(unread=[NO_CALLS]), reference=REFERENCE)
    for each in (scorer, type(scorer)(ignore_args=True)):
        with pytest.raises(MissingInput, match="the tool calls"):
            each.score(cut)


@pytest.mark.parametrize(
    "scorer", [TrajectorySingleToolUse(tool_name="hours"), ToolCallAccuracy(expected_tool="hours")]
)
@pytest.mark.parametrize(
    ("invocation", "cause"),
    [
        (Invocation(), "not_recorded"),
        (Invocation(intermediate_data=IntermediateData(), unread=[NO_CALLS]), "not_recorded"),
        (Invocation(intermediate_data=CALL, unread=["the tool calls of a model's answer, cut: ..."]), "not_recorded"),
        (Invocation(intermediate_data=CALL, unread=[f"the {refused_part(TOOL_CALLS)} t-0@7"]), "record_refused"),
    ],
)
def test_a_tool_is_not_said_to_be_unused_where_calls_were_not_recorded(
    scorer: Any, invocation: Invocation, cause: str
) -> None:
    with pytest.raises(MissingInput, match="tool calls") as missing:
        scorer.score(Subject(invocation=invocation))
    assert missing.value.cause == cause
    assert scorer.score(Subject(invocation=Invocation(intermediate_data=IntermediateData()))).value == 0.0


@pytest.mark.parametrize(("criterion", "cause"), [("token_usage_v1", "not_recorded"), ("response_match_score", None)])
async def test_the_score_has_the_cause_of_its_missing_input(criterion: str, cause: str | None) -> None:
    plan = read_plan({"criteria": {criterion: {}}})
    scores = await scores_of(plan, [make_turn(answer="Closed.")])
    assert [(score.not_evaluated_because, score.cause) for score in scores] == [("missing_input", cause)] * 2


@pytest.mark.parametrize("scorer", [ResponseMatch(), Completeness()])
def test_an_answer_that_was_not_recorded_is_not_an_empty_answer(scorer: Scorer) -> None:
    question = Content.of("Which opening hours does the bakery have on Sunday?")
    cut = Subject(invocation=Invocation(user_content=question, unread=[NO_ANSWER]), reference=REFERENCE)
    with pytest.raises(MissingInput, match="set CONTENT=true"):
        scorer.score(cut)


NO_QUESTION = "the question is not in the spans: set CONTENT=true"


@pytest.mark.parametrize(
    ("read", "sentence"), [(answer_of, NO_ANSWER), (question_of, NO_QUESTION), (tool_steps_of, NO_ARGS)]
)
def test_a_judge_is_not_asked_about_content_that_was_not_recorded(
    read: Callable[[Invocation], str], sentence: str
) -> None:
    with pytest.raises(MissingInput, match="set CONTENT=true"):
        read(Invocation(intermediate_data=CALL, unread=[sentence]))
    assert read(Invocation(intermediate_data=CALL)) is not None


def test_missing_parts_of_events_become_unread_parts_of_the_invocation() -> None:
    common = {"session_id": "s", "invocation_id": "i", "occurred_at": "2026-01-01T00:00:00Z"}
    documents = [
        {**common, "type": "tool.called", "name": "hours", "missing": [NO_ARGS]},
        {**common, "type": "invocation.completed", "missing": [NO_ANSWER]},
    ]
    events = [EVENT.validate_json(json.dumps(document)) for document in documents]
    session = make_session("s", events=events)
    assert turns_of(session)[0].invocation.unread == [NO_ARGS, NO_ANSWER]
