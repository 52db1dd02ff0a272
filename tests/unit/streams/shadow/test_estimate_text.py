"""A person is asked if judges can cost more than the budget, and sees what the estimate is based on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from traceweir.streams.cli.shadow_run import estimate_text, reason_to_ask, summary
from traceweir.streams.shadow.definition import Definition
from traceweir.streams.shadow.estimate import Estimate
from traceweir.streams.shadow.run import Ended


def shadow(budget_usd: float | None) -> Definition:
    return Definition(
        name="v2",
        config=None,
        config_digest="d",
        since=None,
        until=None,
        app=None,
        sample=1,
        budget_usd=budget_usd,
        sessions_id="t",
        begins={0: 0},
        ends={0: 9},
        created_at=datetime(2026, 1, 31, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("budget_usd", "questions", "usd", "reason"),
    [
        (None, 0, 0.0, None),
        (None, 3, 0.0, "no --budget limits their cost"),
        (5.0, 3, 5.0, None),
        (5.0, 3, 5.01, "the estimate exceeds the budget of 5 USD"),
    ],
)
def test_a_person_is_asked_unless_the_budget_covers_the_estimate(
    budget_usd: float | None, questions: int, usd: float, reason: str | None
) -> None:
    found = reason_to_ask(shadow(budget_usd), Estimate(9, questions, 0, usd, (), 9))
    assert found is None if reason is None else reason in str(found)


def test_a_person_is_asked_if_a_model_has_no_price_because_no_budget_limits_it() -> None:
    found = reason_to_ask(shadow(5.0), Estimate(9, 3, 0, 0.0, ("openai/mine",), 9))
    assert found == "a model has no price, so that the budget does not limit its cost"


def test_the_estimate_says_what_it_is_based_on() -> None:
    text = estimate_text(shadow(None), Estimate(1_000, 300, 12, 1.5, ("openai/\x1bmine",), 200))
    assert text.splitlines() == [
        "shadow v2: about 1000 sessions to score (estimated from 200 that were read)",
        (
            "  judges: at most 300 questions, about 1.5 USD by the price table with 250 tokens an answer; 12 "
            "more cost nothing, because their verdicts are stored"
        ),
        r"  without a price, counted as free: openai/\x1bmine",
    ]


def test_the_summary_names_what_was_not_scored_and_the_next_command() -> None:
    totals = {"score.scored": 5, "score.left_out": 2, "score.dead_lettered.poison": 1, "score.scores.PASSED": 9}
    done = summary(shadow(None), Ended(0, "finished", totals), "traceweir.results.shadow.v2")
    assert done.splitlines() == [
        (
            "shadow v2: this process: 5 sessions scored, 2 left out (another app, or not in the sample), 1 record unusable "
            "(no dead letter is written)"
        ),
        "the whole range is scored: traceweir.results.shadow.v2. Compare: traceweir diff results results.shadow.v2",
    ]
    stopped = summary(shadow(None), Ended(0, "interrupted", {}), "traceweir.results.shadow.v2")
    assert stopped.splitlines()[1] == "the shadow is not finished; `traceweir shadow --name v2` resumes it"
