"""A person is asked if judges can cost more than the budget, and sees what the estimate is based on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.shadows import make_definition

from traceweir.scorers.evaluation.limited_plan import limited
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.cli.shadow.run import estimate_text, reason_to_ask, summary
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.estimate import CostEstimate
from traceweir.streams.lab.shadow.run import Ended


def shadow(budget_usd: float | None) -> Definition:
    return make_definition(budget_usd=budget_usd)


def estimate(**changes: Any) -> CostEstimate:
    """Returns the estimate of nine sessions, all of which were read and will be scored, without questions."""
    fields: dict[str, Any] = {
        "sessions": 9, "questions": 0, "known": 0, "usd": 0.0, "unpriced": (), "looked_at": 9, "chosen": 9,
        "is_whole": True, "apps": (),
    }  # fmt: skip
    return CostEstimate(**(fields | changes))


def reason(budget_usd: float | None, found: CostEstimate, own_usd: float | None = None, *, judged: bool = True) -> str:
    """Returns why a person is asked, or nothing, for a config with this `judge.budget.usd`."""
    config: dict[str, Any] = {"criteria": {"safety_v1": 1.0} if judged else {}}
    if own_usd is not None:
        config["judge"] = {"budget": {"usd": own_usd}}
    return reason_to_ask(shadow(budget_usd), limited(read_plan(json.dumps(config)), budget_usd), found) or ""


UNLIMITED = "judges are asked, and neither --budget nor judge.budget.usd limits their cost"


@pytest.mark.parametrize(
    ("budget_usd", "own_usd", "usd", "expected"),
    [
        (None, None, 0.0, UNLIMITED),
        (5.0, None, 5.0, ""),
        (5.0, None, 5.01, "the estimate exceeds the budget of 5 USD (--budget)"),
        (5.0, 0.001, 0.12, "the estimate exceeds the budget of 0.001 USD (judge.budget.usd of the config)"),
        (0.1, 5.0, 0.12, "the estimate exceeds the budget of 0.1 USD (--budget)"),
        (None, 0.1, 0.12, "the estimate exceeds the budget of 0.1 USD (judge.budget.usd of the config)"),
        (None, 0.2, 0.12, ""),
    ],
)
def test_a_person_is_asked_unless_the_lower_one_of_both_budgets_covers_the_estimate(
    budget_usd: float | None, own_usd: float | None, usd: float, expected: str
) -> None:
    assert reason(budget_usd, estimate(questions=3, usd=usd), own_usd).partition(":")[0] == expected


def test_a_person_is_asked_if_a_model_has_no_price_because_no_budget_limits_it() -> None:
    message = "a model has no price, so that the budget does not limit its cost"
    assert reason(5.0, estimate(questions=3, unpriced=("openai/mine",))) == message
    unknown = estimate(chosen=0, is_whole=False, unpriced=("openai/mine",))
    assert reason(5.0, unknown) == message


def test_a_person_is_asked_if_the_sessions_that_were_read_say_nothing_about_the_questions() -> None:
    message = (
        "the number of questions to judges is unknown, and neither --budget nor judge.budget.usd limits their cost"
    )
    for found in (estimate(sessions=0, chosen=0, is_whole=False), estimate()):
        assert reason(None, found) == message
        assert reason(5.0, found) == ""
        assert reason(None, found, 5.0) == ""
        assert reason(None, found, judged=False) == ""
    assert reason(None, estimate(known=3)) == ""


def test_the_estimate_warns_if_no_session_that_was_read_is_selected() -> None:
    found = estimate(sessions=0, looked_at=800, chosen=0, is_whole=False, apps=("bank", "sh\x1bop"))
    definition = shadow(None).model_copy(update={"app": "shpo", "sample": 0.01})
    assert estimate_text(definition, found).splitlines() == [
        "shadow v2: about 0 sessions to score (estimated from 800 that were read)",
        (
            "  none of the 800 sessions that were read is of app 'shpo' and in a sample of 0.01; they are of 'bank', "
            r"'sh\\x1bop': check --app and --sample; sessions that were not read can be selected"
        ),
    ]


def test_the_estimate_says_what_it_is_based_on() -> None:
    found = estimate(
        sessions=1_000, questions=300, known=12, usd=1.5, unpriced=("openai/\x1bmine",), looked_at=200, chosen=200
    )
    text = estimate_text(shadow(None), found)
    assert text.splitlines() == [
        "shadow v2: about 1000 sessions to score (estimated from 200 that were read)",
        (
            "  judges: about 300 questions, about 1.5 USD by the price table with 250 tokens an answer; 12 "
            "more cost nothing, because their verdicts are stored"
        ),
        r"  without a price, counted as free: openai/\x1bmine",
    ]


def test_the_summary_names_what_was_not_scored_and_the_next_command() -> None:
    totals = {"score.scored": 5, "score.left_out": 2, "score.dead_lettered.poison": 1, "score.scores.PASSED": 9}
    done = summary(shadow(None), Ended(0, "finished", totals), "traceweir.results.shadow.v2", {})
    assert done.splitlines() == [
        (
            "shadow v2: this process: 5 sessions scored, 2 left out (another app, or not in the sample), 1 record unusable "
            "(no dead letter is written)"
        ),
        "the whole range is scored: traceweir.results.shadow.v2. Compare: traceweir diff results results.shadow.v2",
    ]
    stopped = summary(shadow(None), Ended(0, "interrupted", {}), "traceweir.results.shadow.v2", {})
    assert stopped.splitlines()[1] == "the shadow is not finished; `traceweir shadow --name v2` resumes it"


def test_the_summary_does_not_hide_sessions_that_expired_before_they_were_scored() -> None:
    done = summary(shadow(None), Ended(0, "finished", {}), "traceweir.results.shadow.v2", {0: 12, 2: 3})
    assert done.splitlines()[1] == (
        "the range is scored, except sessions that expired before they were scored (12 offsets of partition 0, "
        "3 offsets of partition 2): "
        "traceweir.results.shadow.v2. Compare: traceweir diff results results.shadow.v2"
    )
