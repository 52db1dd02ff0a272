"""What a scorer of level `session`, and one of level `invocation`, sees of the session's turns."""

import asyncio
from datetime import UTC, datetime

import pytest

from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference
from traceweir.schemas.session import Session
from traceweir.schemas.turns import Turn
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject, turns_of_session
from traceweir.scorers.evaluation.metric import Metric, digest_of
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.scorers.evaluation.runner import evaluate

NOW = datetime(2026, 11, 1, tzinfo=UTC)
SESSION = Session.model_validate(
    {
        "session_id": "s",
        "segment": 0,
        "revision": 0,
        "closed_because": "idle",
        "first_record_at": NOW,
        "last_record_at": NOW,
        "events": [],
        "traces": [],
    }
)


class _Questions(Scorer):
    """Measures the number of turns, and says which questions they ask."""

    level = "session"
    range = (0.0, 100.0)

    def score(self, subject: Subject) -> Measurement:
        turns = turns_of_session(subject)
        asked = [turn.invocation.user_content.text for turn in turns if turn.invocation.user_content]
        task = subject.reference.task if subject.reference else None
        return Measurement(value=len(turns), details={"asked": [*asked], "task": task})


class _Earlier(Scorer):
    """Measures the number of turns before the invocation."""

    range = (0.0, 100.0)

    def score(self, subject: Subject) -> Measurement:
        names = [turn.invocation.invocation_id for turn in subject.earlier_turns]
        return Measurement(value=len(names), details={"earlier": [*names]})


def _turn(name: str, asked: str, reference: Reference | None = None) -> Turn:
    return Turn(Invocation(invocation_id=name, user_content=Content.of(asked)), reference)


def _scores(scorer: Scorer, turns: list[Turn]):  # type: ignore[no-untyped-def]
    plan = read_plan({"criteria": {}})
    metric = Metric("mine", None, scorer, digest_of("mine", scorer))
    measured = type(plan)(
        metrics=(metric,),
        trace_value=plan.trace_value,
        gate=plan.gate,
        sampling={"mine": 1.0},
        digest=plan.digest,
    )
    return asyncio.run(evaluate(measured, SESSION, turns, now=lambda: NOW, timeout_s=10))


def test_a_scorer_of_level_session_gets_all_turns_in_order_and_what_their_references_expect_of_the_session() -> None:
    turns = [_turn("a", "And Oslo?"), _turn("b", "And Paris?", Reference(task="Compare the weather."))]

    [score] = _scores(_Questions(), turns)

    assert (score.level, score.value) == ("session", 2.0)
    assert score.details["asked"] == ["And Oslo?", "And Paris?"]
    assert score.details["task"] == "Compare the weather."


def test_a_scorer_of_level_invocation_gets_the_turns_before_its_own() -> None:
    scores = _scores(_Earlier(), [_turn("a", "1"), _turn("b", "2"), _turn("c", "3")])

    earlier = [score.details["earlier"] for score in scores if score.level == "invocation"]
    assert earlier == [[], ["a"], ["a", "b"]]


def test_a_session_without_turns_has_no_value() -> None:
    with pytest.raises(MissingInput, match="no invocation"):
        turns_of_session(Subject(session=SESSION))
