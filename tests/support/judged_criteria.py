"""Scores turns by a judged criterion."""

from __future__ import annotations

from typing import Any

from tests.support.scoring import make_session, scores_of

from traceweir.schemas.invocation import Content, Invocation, Rubric
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import read_plan

VALID = '{"reasoning": "they agree", "is_the_agent_response_valid": "valid"}'
INVALID = '{"reasoning": "they differ", "is_the_agent_response_valid": "invalid"}'
ANSWERED = Invocation(
    invocation_id="i1", user_content=Content.of("Which train?"), final_response=Content.of("KTX 121.")
)
EXPECTED = Reference(final_response=Content.of("Train 121."))


def rubric(name: str, text: str = "is so", kind: str | None = "FINAL_RESPONSE_QUALITY") -> Rubric:
    """Returns a rubric with this id, text and type."""
    return Rubric(rubric_id=name, rubric_content={"text_property": text}, type=kind)


async def scores(metric: str, judge: Any, *turns: Turn, **options: Any) -> list[Score]:
    """Returns the scores of these turns by one judged criterion with the threshold 0.5."""
    plan = read_plan({"criteria": {metric: {"threshold": 0.5, **options}}})
    return await scores_of(plan, turns, make_session(), judge=judge)


def one_sample(**options: Any) -> dict[str, Any]:
    """Returns the option of a criterion that asks the judge once instead of several times."""
    return {"judge_model_options": {"num_samples": 1, **options}}
