"""Tests that what anchors say is listed by criterion, also where there are only anchors or only verdicts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.anchors import anchor, verdict, watched
from tests.support.scoring import NOW

from traceweir.streams.base.statistics.watched_judge import Side
from traceweir.streams.tools.anchors.listing import KnownAnchor, listed_criteria


def test_a_criterion_with_anchors_alone_is_not_judged_and_one_with_verdicts_alone_is_listed_too() -> None:
    known = [KnownAnchor.of(anchor("a")), KnownAnchor.of(anchor("b", "fail", drawn="flagged"))]
    verdicts = [verdict("x", criterion="helpful"), verdict("y", criterion="helpful", due_at=NOW + timedelta(minutes=6))]
    helpful, safety = (each.known for each in listed_criteria(known, watched(verdicts), NOW))
    assert (safety.passing, safety.failing, safety.random) == (1, 1, 1)
    assert (safety.state, safety.verdicts, safety.days, safety.agreement) == ("not judged", 0, [], None)
    assert (helpful.passing, helpful.verdicts, helpful.state, helpful.judges) == (0, 2, "learning", ["openai/local"])
    assert helpful.agreement is not None
    # The exact interval of 2 of 2 begins at the square root of 0.025.
    assert helpful.agreement.agree == 2
    assert helpful.agreement.low == pytest.approx(0.025**0.5)


@pytest.mark.parametrize(
    ("sides", "state"),
    [
        ([], "learning"),
        (["milder"], "watched for milder, else learning"),
        (["stricter", "milder"], "watched"),
    ],
)
def test_the_state_says_which_changes_can_be_found(sides: list[Side], state: str) -> None:
    (found,) = listed_criteria([], watched([verdict("a")]), NOW)
    assert found.known.model_copy(update={"watched": sides}).state == state


def test_the_last_days_are_counted_from_today_in_utc() -> None:
    (found,) = listed_criteria([], watched([verdict("a", due_at=NOW - timedelta(days=6)), verdict("a")]), NOW)
    assert [(f"{each.day:%m-%d}", each.verdicts) for each in found.known.days] == [
        ("01-31", 1), ("01-30", 0), ("01-29", 0), ("01-28", 0), ("01-27", 0), ("01-26", 0), ("01-25", 1),
    ]  # fmt: skip
