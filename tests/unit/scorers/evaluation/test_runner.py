"""Tests the runner: the measured subjects, the effect of a failing scorer, and the resulting status."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.support.scoring import NOW, expecting, make_candidate, make_session, make_trace, make_turn, scores_of

from traceweir.schemas.config import GateConfig
from traceweir.schemas.invocation import FunctionCall, Level
from traceweir.schemas.score import Cost, Score
from traceweir.schemas.turns import Turn
from traceweir.scorers import Measurement, Metric, MissingInput, Plan, Scorer, Subject, TraceValue, read_plan
from traceweir.scorers.evaluation.runner import MAX_NAMED_INVOCATIONS, evaluate, sampling_point
from traceweir.scorers.evaluation.score_writer import decision_score, trace_value_score
from traceweir.scorers.judge import BudgetSpent, Judge, JudgeFailed, Question, Reply

TURNS = [make_turn("i1", "yes"), make_turn("i2", "no"), make_turn("i3")]


def plan_of(*scorers: Scorer, threshold: float = 0.5, share: float = 1.0) -> Plan:
    metrics = tuple(
        Metric(f"m{number}", threshold, scorer, f"digest {number}") for number, scorer in enumerate(scorers)
    )
    return Plan(metrics, TraceValue(), GateConfig(), {metric.name: share for metric in metrics}, "config")


def said(score: Score) -> tuple[Any, ...]:
    """Returns the level, the subject, the status, the reason and the value of a Score."""
    return score.level, score.invocation_id, score.status, score.not_evaluated_because, score.value


class Answers(Scorer):
    """Measures 1 for yes, 0 for no."""

    version: ClassVar[str] = "7"

    def score(self, subject: Subject) -> Measurement:
        if not subject.response:
            raise MissingInput("no answer")
        cost = Cost(input_tokens=3, usd=0.5)
        return Measurement(
            value=float(subject.response == "yes"), rationale="read it", details={"was": subject.response}, cost=cost
        )


class Fails(Scorer):
    """Raises an error for every subject."""

    def score(self, subject: Subject) -> Measurement:
        raise ZeroDivisionError("a\nb" + "c" * 1_000)


class Hangs(Scorer):
    """Never returns a value for no."""

    async def score(self, subject: Subject) -> Measurement:
        if subject.response != "yes":
            await asyncio.Event().wait()
        return Measurement(value=1.0)


class Gives(Scorer):
    """Returns the object that the test sets."""

    gives: ClassVar[Any] = None

    def score(self, subject: Subject) -> Measurement:
        found: Measurement = self.gives
        return found


async def test_scores_are_in_the_order_of_invocations_with_the_session_last() -> None:
    assert [said(score) for score in await scores_of(plan_of(Answers()), TURNS)] == [
        ("invocation", "i1", "PASSED", None, 1.0),
        ("invocation", "i2", "FAILED", None, 0.0),
        ("invocation", "i3", "NOT_EVALUATED", "missing_input", None),
        ("session", None, "PASSED", None, 0.5),
    ]


async def test_a_session_names_the_invocations_without_a_value() -> None:
    *_, session = await scores_of(plan_of(Answers()), TURNS)
    assert session.details == {
        "invocations": 3,
        "measured": 2,
        "not_evaluated": {"missing_input": {"count": 1, "invocations": ["i3"]}},
    }
    assert session.rationale == "over 2 of 3 invocations"


async def test_a_session_names_a_bounded_number_of_invocations_without_a_value() -> None:
    *_, session = await scores_of(plan_of(Answers()), [TURNS[0], *(make_turn(f"n{n}") for n in range(1_000))])
    named: Any = session.details["not_evaluated"]
    assert (named["missing_input"]["count"], len(named["missing_input"]["invocations"])) == (
        1_000,
        MAX_NAMED_INVOCATIONS,
    )


async def test_a_score_contains_the_measurement_and_its_subject() -> None:
    ended = NOW - timedelta(hours=1)
    session = make_session("s", segment=2, revision=3, last_record_at=ended)
    first, *_ = await scores_of(plan_of(Answers()), TURNS, session)
    assert (first.rationale, first.details, first.cost) == ("read it", {"was": "yes"}, Cost(input_tokens=3, usd=0.5))
    assert (first.session_id, first.segment, first.revision, first.scorer_version) == ("s", 2, 3, "7")
    assert (first.config_digest, first.threshold, first.occurred_at, first.evaluated_at) == ("config", 0.5, ended, NOW)


async def test_the_cost_of_a_session_is_on_its_invocations_only() -> None:
    scores = await scores_of(plan_of(Answers()), TURNS)
    assert [score.cost.usd for score in scores] == [0.5, 0.5, 0.0, 0.0]


async def test_a_value_at_the_threshold_passes() -> None:
    scores = await scores_of(plan_of(Answers(), threshold=1.0), TURNS[:1])
    assert [score.status for score in scores] == ["PASSED", "PASSED"]


async def test_a_session_of_which_no_invocation_has_a_value_is_not_evaluated() -> None:
    *_, session = await scores_of(plan_of(Answers()), [make_turn("i1"), make_turn("i2")])
    assert said(session) == ("session", None, "NOT_EVALUATED", "missing_input", None)


async def test_a_session_without_an_invocation_is_not_evaluated() -> None:
    assert [said(score) for score in await scores_of(plan_of(Answers()), [])] == [
        ("session", None, "NOT_EVALUATED", "missing_input", None)
    ]


async def test_a_scorer_that_raises_loses_only_its_own_scores() -> None:
    scores = await scores_of(plan_of(Fails(), Answers()), TURNS[:1])
    assert [(score.metric, score.status, score.not_evaluated_because) for score in scores] == [
        ("m0", "NOT_EVALUATED", "error"),
        ("m0", "NOT_EVALUATED", "error"),
        ("m1", "PASSED", None),
        ("m1", "PASSED", None),
    ]


async def test_an_error_is_one_printable_line_of_bounded_length() -> None:
    first, *_ = await scores_of(plan_of(Fails()), TURNS[:1])
    assert first.rationale.startswith("ZeroDivisionError: a\\nbccc")
    assert len(first.rationale) == 500


async def test_a_scorer_that_hangs_times_out_without_affecting_others() -> None:
    scores = await scores_of(plan_of(Hangs(), Answers()), TURNS[:2], timeout_s=0.01)
    assert [said(score) for score in scores if score.metric == "m0"] == [
        ("invocation", "i1", "PASSED", None, 1.0),
        ("invocation", "i2", "NOT_EVALUATED", "timeout", None),
        ("session", None, "PASSED", None, 1.0),
    ]
    assert scores[1].rationale == "timed out after 0.01 s"
    assert [score.status for score in scores if score.metric == "m1"] == ["PASSED", "FAILED", "PASSED"]


async def test_a_timeout_error_of_a_scorer_is_an_error_and_not_a_timeout() -> None:
    class Impatient(Scorer):
        """Raises its own TimeoutError."""

        async def score(self, subject: Subject) -> Measurement:
            raise TimeoutError("the model did not answer")

    first, *_ = await scores_of(plan_of(Impatient()), TURNS[:1])
    assert (first.not_evaluated_because, first.rationale) == ("error", "TimeoutError: the model did not answer")


async def test_asynchronous_scorers_run_concurrently() -> None:
    class Meets(Scorer):
        """Returns only when all subjects are being measured."""

        barrier: ClassVar[asyncio.Barrier] = asyncio.Barrier(6)

        async def score(self, subject: Subject) -> Measurement:
            await self.barrier.wait()
            return Measurement(value=1.0)

    scores = await scores_of(plan_of(Meets(), Meets()), TURNS)
    assert {score.status for score in scores} == {"PASSED"}


async def test_a_cancelled_session_is_cancelled() -> None:
    class Reached(Scorer):
        """Sets an event when it runs, and then hangs."""

        reached: ClassVar[asyncio.Event] = asyncio.Event()

        async def score(self, subject: Subject) -> Measurement:
            self.reached.set()
            return await asyncio.Future[Measurement]()

    task = asyncio.create_task(scores_of(plan_of(Reached()), TURNS))
    await Reached.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("given", "rationale"),
    [
        (None, "TypeError: the scorer returned NoneType, not a Measurement"),
        (0.5, "TypeError: the scorer returned float, not a Measurement"),
        (Measurement(value=0.5, details={"x": {1, 2}}), "the scorer's measurement cannot be published: "),  # type: ignore[dict-item]
        (Measurement(value=0.5, details={"x": float("nan")}), "the scorer's measurement cannot be published: "),
    ],
)
async def test_a_result_that_is_not_a_measurement_is_an_error(given: object, rationale: str) -> None:
    class This(Gives):
        gives = given

    first, *_ = await scores_of(plan_of(This()), TURNS[:1])
    assert (first.status, first.not_evaluated_because) == ("NOT_EVALUATED", "error")
    assert first.rationale.startswith(rationale)


async def test_an_awaited_result_that_is_not_a_measurement_is_an_error() -> None:
    class Promises(Scorer):
        """Returns no Measurement."""

        async def score(self, subject: Subject) -> Measurement:
            return None  # type: ignore[return-value]

    first, *_ = await scores_of(plan_of(Promises()), TURNS[:1])
    assert first.rationale == "TypeError: the scorer returned NoneType, not a Measurement"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
async def test_a_value_that_is_not_finite_is_an_error(value: float) -> None:
    class Infinite(Scorer):
        """Returns a value that is not a finite number, or aggregates to such a value."""

        once: bool = False

        def score(self, subject: Subject) -> Measurement:
            return Measurement(value=1.0 if self.once else value)

        def aggregate(self, measured: Any) -> float:
            return value

    scores = await scores_of(plan_of(Infinite(), Infinite(once=True)), TURNS[:1])
    assert [score.not_evaluated_because for score in scores] == ["error", "error", None, "error"]


async def test_a_session_has_the_most_severe_of_several_reasons() -> None:
    class Mixed(Scorer):
        """Lacks an input for one invocation, and fails at another."""

        def score(self, subject: Subject) -> Measurement:
            raise ValueError if subject.response else MissingInput("no answer")

    *_, session = await scores_of(plan_of(Mixed()), [make_turn("i1"), make_turn("i2", "yes")])
    assert session.not_evaluated_because == "error"


async def test_other_levels_have_a_score_per_subject() -> None:
    class Counts(Scorer):
        """Counts a trace's steps, or a session's traces."""

        level: ClassVar[Level] = "trace"

        def score(self, subject: Subject) -> Measurement:
            return Measurement(value=float(len(subject.trace.steps if subject.trace else subject.session.traces)))  # type: ignore[union-attr]

    class OfSession(Counts):
        level: ClassVar[Level] = "session"

    session = make_session(traces=[make_trace(id="kp:trace:a"), make_trace(id="kp:trace:b")])
    scores = await scores_of(plan_of(Counts(), OfSession()), TURNS, session)
    assert [(score.level, score.trace_id, score.value) for score in scores] == [
        ("trace", "kp:trace:a", 1.0),
        ("trace", "kp:trace:b", 1.0),
        ("session", None, 2.0),
    ]


async def test_an_unsupported_metric_has_a_single_not_evaluated_score() -> None:
    scores = await scores_of(read_plan({"criteria": {"response_evaluation_score": 1}}), TURNS)
    assert [said(score) for score in scores] == [("session", None, "NOT_EVALUATED", "unsupported", None)]


async def test_a_session_outside_the_sample_has_one_score_per_metric() -> None:
    plan = plan_of(Answers(), Fails(), share=0.0)
    assert [said(score) for score in await scores_of(plan, TURNS)] == [
        ("session", None, "NOT_EVALUATED", "sampled_out", None)
    ] * 2


async def test_outside_the_sample_no_scorer_is_called() -> None:
    class Spends(Scorer):
        """Returns measurements with a cost."""

        calls: ClassVar[list[Subject]] = []

        def score(self, subject: Subject) -> Measurement:
            self.calls.append(subject)
            return Measurement(value=1.0)

    await scores_of(plan_of(Spends(), share=0.0), TURNS)
    assert Spends.calls == []
    await scores_of(plan_of(Spends()), TURNS)
    assert len(Spends.calls) == len(TURNS)


async def test_a_session_is_measured_by_every_metric_whose_share_includes_it() -> None:
    point = sampling_point("session-1")
    shares = {"response_match_score": point, "tool_trajectory_avg_score": min(1.0, point + 1e-9)}
    plan = read_plan({"criteria": dict.fromkeys(shares, 1.0), "sampling": dict(shares)})
    assert {score.metric: score.not_evaluated_because for score in await scores_of(plan, [])} == {
        "response_match_score": "sampled_out",
        "tool_trajectory_avg_score": "missing_input",
    }


def test_a_share_of_the_sessions_is_that_share() -> None:
    taken = sum(sampling_point(f"session {number}") < 0.1 for number in range(10_000))
    assert 900 < taken < 1_100


async def test_the_same_measurement_has_the_same_result_id_and_another_has_another() -> None:
    async def ids(criterion: Any, session_id: str = "s", segment: int = 0) -> list[str]:
        plan = read_plan({"criteria": {"tool_trajectory_avg_score": criterion}})
        return [score.result_id for score in await scores_of(plan, TURNS, make_session(session_id, segment=segment))]

    again = await ids({"threshold": 0.1, "matchType": "exact"})
    assert await ids(1.0) == again
    everything = [again, await ids({"ignoreArgs": True}), await ids(1.0, "t"), await ids(1.0, "s", 1)]
    assert len({one for row in everything for one in row}) == 4 * 4


async def test_every_score_reads_back_from_its_json() -> None:
    tool = FunctionCall(name="도구", args={"a": [1, None, {"b": 0.1}]})
    turns: list[Turn] = [
        *TURNS,
        make_turn("#3", "예약했습니다 \u2028 🙂", [tool], expecting("예약했습니다", [])),
        make_turn("", "", [], expecting("", [tool])),
    ]
    plan = read_plan(
        {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8, "response_evaluation_score": 1}}
    )
    scores = await scores_of(plan, turns)
    assert len(scores) == 13
    assert [Score.model_validate_json(score.model_dump_json()) for score in scores] == scores


def test_the_trace_value_is_compared_with_the_gates_threshold() -> None:
    plan = read_plan({"gate": {"threshold": 0.5}})
    measured = [Measurement(value=value, rationale="so", details={"novelty": 0.1}) for value in (0.5, 0.49)]
    scores = [trace_value_score(plan, make_candidate(), found, NOW) for found in measured]
    assert [(score.metric, score.level, score.value, score.threshold, score.status) for score in scores] == [
        ("trace_value", "trace", 0.5, 0.5, "PASSED"),
        ("trace_value", "trace", 0.49, 0.5, "FAILED"),
    ]
    assert (scores[0].trace_id, scores[0].invocation_id, scores[0].details) == ("kp:trace:1", None, {"novelty": 0.1})


def test_a_decision_is_a_score_with_its_reasons() -> None:
    plan = read_plan(None)
    yes = decision_score(plan, make_candidate(), True, [], {"offset": 3}, NOW)
    no = decision_score(plan, make_candidate(), False, ["visibility", "privacy"], {}, NOW)
    assert (yes.metric, yes.value, yes.threshold, yes.status) == ("gate", 1.0, 1.0, "PASSED")
    assert yes.details == {"offset": 3, "decision": "accepted", "reasons": []}
    assert (no.value, no.status, no.rationale) == (0.0, "FAILED", "rejected: visibility, privacy")
    assert no.details == {"decision": "rejected", "reasons": ["visibility", "privacy"]}
    assert yes.result_id == no.result_id


@pytest.mark.parametrize("value", [True, 1, np.float32(1), np.float64(1)])
async def test_what_counts_as_a_number_in_python_is_one_on_the_wire(value: Any) -> None:
    class This(Gives):
        gives = Measurement(value=value)

    for score in await scores_of(plan_of(This()), TURNS[:1]):
        assert score.wire() == Score.model_validate_json(score.wire()).wire()
        assert json.loads(score.wire())["value"] is not True


async def test_text_that_utf_8_cannot_encode_is_published_with_question_marks() -> None:
    class This(Gives):
        gives = Measurement(value=1.0, rationale="half \ud83d 🙂", details={"\ud83d": ["\ud83d", 10**30, "예"]})

    first, *_ = await scores_of(plan_of(This()), TURNS[:1])
    read = Score.model_validate_json(first.wire())
    assert read == first
    assert (read.rationale, read.details) == ("half ? 🙂", {"?": ["?", 10**30, "예"]})


def test_a_rationale_that_is_not_a_string_is_rejected_by_measurement() -> None:
    with pytest.raises(TypeError, match="rationale must be a string, not int"):
        Measurement(value=0.5, rationale=3)  # type: ignore[arg-type]


async def test_the_schema_reads_the_scores_of_the_runner() -> None:
    for score in await scores_of(plan_of(Gives()), TURNS):
        assert Score.model_validate_json(score.wire()) == score
        assert Score.model_validate_json(score.model_dump_json()) == score


class Cancels(Scorer):
    """Raises the exception that a client raises when its connection closes."""

    def score(self, subject: Subject) -> Measurement:
        raise asyncio.CancelledError


class CancelsLater(Scorer):
    """Raises the same exception while it waits."""

    async def score(self, subject: Subject) -> Measurement:
        await asyncio.sleep(0)
        raise asyncio.CancelledError


@pytest.mark.parametrize("scorer", [Cancels(), CancelsLater()])
async def test_a_scorer_that_raises_timeout_error_loses_only_its_own_score(scorer: Scorer) -> None:
    found = [said(score) for score in await scores_of(plan_of(scorer, Answers()), TURNS[:1])]
    assert found == [
        ("invocation", "i1", "NOT_EVALUATED", "error", None),
        ("session", None, "NOT_EVALUATED", "error", None),
        ("invocation", "i1", "PASSED", None, 1.0),
        ("session", None, "PASSED", None, 1.0),
    ]


async def test_the_caller_of_evaluate_can_be_cancelled() -> None:
    task = asyncio.create_task(scores_of(plan_of(Hangs()), TURNS))
    for _ in range(3):  # evaluate starts, its scorers start, and they wait
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Asks(Scorer):
    judged: ClassVar[bool] = True

    async def score(self, subject: Subject) -> Measurement:
        assert subject.judge is not None
        question = Question(metric="m", version="1", model="some", prompt="Is it?")
        reply = await subject.judge.ask(question)
        return Measurement(value=float(reply.text), cost=reply.cost)


class Says:
    """A judge that always returns the same reply, or fails."""

    def __init__(self, said: str | Exception) -> None:
        self._said = said

    async def ask(self, question: Question) -> Reply:
        if isinstance(self._said, Exception):
            raise self._said
        return Reply(text=self._said, cost=Cost(input_tokens=7))


@pytest.mark.parametrize(
    ("judge", "outcome"),
    [
        (Says("0.75"), ("PASSED", None, "")),
        (Says(BudgetSpent("0 of 5 USD are left today")), ("NOT_EVALUATED", "budget", "0 of 5 USD are left today")),
        (Says(JudgeFailed("it\x1b hung up")), ("NOT_EVALUATED", "error", "JudgeFailed: it\\x1b hung up")),
        (None, ("NOT_EVALUATED", "error", "there is no judge to ask")),
    ],
)
async def test_a_judge_answers_or_its_error_is_the_reason(judge: Judge | None, outcome: tuple[Any, ...]) -> None:
    scores = await evaluate(plan_of(Asks()), make_session(), TURNS[:1], now=lambda: NOW, timeout_s=1, judge=judge)
    first = scores[0]
    assert (first.status, first.not_evaluated_because, first.rationale) == outcome
    assert first.cost.input_tokens == (7 if first.value is not None else 0)
