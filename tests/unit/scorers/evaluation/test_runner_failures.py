"""Tests that a scorer that raises, hangs or returns an unusable result loses only its own scores."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from tests.support.fake_scorers import TURNS, Hangs, Raises, Returns, ScoresYes, plan_of, summary
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.base import JsonObject
from traceweir.scorers import Measurement, Measurements, MissingInput, Scorer, Subject


async def test_a_scorer_that_raises_loses_only_its_own_scores() -> None:
    scores = await scores_of(plan_of(Raises(), ScoresYes()), TURNS[:1])
    assert [(score.metric, score.status, score.not_evaluated_because) for score in scores] == [
        ("m0", "NOT_EVALUATED", "error"),
        ("m0", "NOT_EVALUATED", "error"),
        ("m1", "PASSED", None),
        ("m1", "PASSED", None),
    ]


async def test_an_error_is_one_printable_line_of_bounded_length() -> None:
    first, *_ = await scores_of(plan_of(Raises()), TURNS[:1])
    assert first.rationale.startswith("ZeroDivisionError: a\\nbccc")
    assert len(first.rationale) == 500


async def test_a_scorer_that_hangs_times_out_without_affecting_others() -> None:
    scores = await scores_of(plan_of(Hangs(), ScoresYes()), TURNS[:2], timeout_s=0.01)
    assert [summary(score) for score in scores if score.metric == "m0"] == [
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
    class This(Returns):
        returned = given

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


async def test_an_aggregate_knows_how_many_invocations_have_no_value() -> None:
    class Total(ScoresYes):
        """Counts the invocations with a value, and all."""

        def aggregate(self, measured: Measurements) -> float:
            return len(measured) / measured.invocations

        def summary(self, measured: Measurements) -> JsonObject:
            return {"of": measured.invocations}

    *_, session = await scores_of(plan_of(Total()), TURNS)
    assert (session.value, session.details["of"]) == (2 / 3, 3)


async def test_an_aggregate_of_a_plugin_receives_a_sequence() -> None:
    class Largest(ScoresYes):
        """Returns the largest value."""

        def aggregate(self, measured: Sequence[Measurement]) -> float:
            return max(each.value for each in measured)

    *_, session = await scores_of(plan_of(Largest()), TURNS)
    assert session.value == 1.0


@pytest.mark.parametrize(("former", "name"), [("aggregate_of", "aggregate"), ("summary_of", "summary")])
def test_a_method_that_nobody_calls_is_refused(former: str, name: str) -> None:
    with pytest.raises(TypeError, match=rf"^Late\.{former} would never be called; define {name}\(self, measured\)"):
        type("Late", (ScoresYes,), {former: lambda self, measured, invocations: 1.0})


async def test_a_session_has_the_most_severe_of_several_reasons() -> None:
    class Mixed(Scorer):
        """Lacks an input for one invocation, and fails at another."""

        def score(self, subject: Subject) -> Measurement:
            raise ValueError if subject.response else MissingInput("no answer")

    *_, session = await scores_of(plan_of(Mixed()), [make_turn("i1"), make_turn("i2", "yes")])
    assert session.not_evaluated_because == "error"


def test_a_rationale_that_is_not_a_string_is_rejected_by_measurement() -> None:
    with pytest.raises(TypeError, match="rationale must be a string, not int"):
        Measurement(value=0.5, rationale=3)  # type: ignore[arg-type]


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
async def test_a_scorer_that_raises_cancelled_error_loses_only_its_own_score(scorer: Scorer) -> None:
    found = [summary(score) for score in await scores_of(plan_of(scorer, ScoresYes()), TURNS[:1])]
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
