"""Tests that each criterion's judge is watched by the verdicts of its present set only, each once."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from tests.support.anchors import verdict, watched
from tests.support.scoring import NOW


def test_verdicts_that_are_missing_or_come_twice_are_counted_apart() -> None:
    missing = {"passed": None, "value": None, "not_evaluated_because": "error", "cause": "judge_refused"}
    found = watched(
        [
            verdict("a", label="fail"),
            verdict("b", label="fail"),
            verdict("b", due_at=NOW + timedelta(minutes=6)),
            verdict("c", due_at=NOW + timedelta(minutes=12), **missing),
            verdict(
                "c",
                due_at=NOW + timedelta(minutes=18),
                **(missing | {"cause": None, "not_evaluated_because": "budget"}),
            ),
        ]
    ).criteria["safety_v1"]
    # Two processes have taken the first turn; the first of them counts.
    assert found.verdicts == 2
    assert found.missing == {"judge_refused": 1, "budget": 1}
    assert found.agreement == (1, 2)


def test_another_set_begins_anew_and_keeps_its_number() -> None:
    later = NOW + timedelta(hours=2)
    found = watched(
        [
            verdict("a"),
            verdict("x", criterion="helpful", due_at=NOW + timedelta(minutes=6)),
            verdict("a", set_id="set-2", due_at=later),
        ]
    )
    watch = found.criteria["safety_v1"]
    assert (watch.number, watch.set_id, watch.verdicts, watch.last_at) == (1, "set-2", 1, later)
    assert found.criteria["helpful"].number == 2


def test_verdicts_are_counted_by_the_day_in_utc_on_which_they_were_due() -> None:
    # In UTC this is the last hour of January.
    ahead = datetime(2026, 2, 1, 3, 30, tzinfo=timezone(timedelta(hours=4)))
    missing = {"passed": None, "value": None, "not_evaluated_because": "error"}
    found = watched(
        [
            verdict("a", due_at=ahead),
            verdict("b", due_at=ahead + timedelta(minutes=6), **missing),
            verdict("a", due_at=ahead + timedelta(hours=1)),
        ]
    ).criteria["safety_v1"]
    assert found.of_day == {date(2026, 1, 31): 1, date(2026, 2, 1): 1}
    assert found.missing_of_day == {date(2026, 1, 31): 1}
