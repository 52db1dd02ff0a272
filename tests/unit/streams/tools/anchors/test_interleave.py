"""Tests that anchors are judged evenly, each as often as another, and the same ones after a restart."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from traceweir.streams.tools.anchors.interleave import drawn_anchor, latest_due, next_due

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
ANCHORS = {"helpful": [f"h-{number}" for number in range(20)], "safe": ["s-0"]}


def turns(per_day: int, number: int) -> list[datetime]:
    found = [next_due(BEGIN, per_day)]
    while len(found) < number:
        found.append(next_due(found[-1], per_day))
    return found


@pytest.mark.parametrize("per_day", [1, 7, 240, 999, 86_400])
def test_the_turns_of_a_day_are_as_many_as_asked_for_and_even(per_day: int) -> None:
    found = turns(per_day, per_day)
    assert found[-1] == BEGIN + timedelta(days=1)
    assert [latest_due(at, per_day) for at in found[:9]] == found[:9]
    gaps = {later - earlier for earlier, later in zip([BEGIN, *found], found, strict=False)}
    assert max(gaps) - min(gaps) <= timedelta(microseconds=1)


def test_criteria_take_turns_and_the_anchors_of_each_are_drawn_equally_often() -> None:
    drawn = [drawn_anchor(at, 240, ANCHORS) for at in turns(240, 4_800)]
    assert drawn[::2] == ["s-0"] * 2_400 or drawn[1::2] == ["s-0"] * 2_400
    counts = Counter(drawn)
    assert counts["s-0"] == 2_400
    # 120 on average, with a standard deviation of 10.7.
    assert all(75 <= counts[name] <= 165 for name in ANCHORS["helpful"])


def test_a_turn_does_not_depend_on_when_a_process_has_started() -> None:
    [first, second] = turns(240, 2)
    assert next_due(first + (second - first) / 2, 240) == second
    assert drawn_anchor(second, 240, ANCHORS) == drawn_anchor(
        second, 240, {name: ids[::-1] for name, ids in ANCHORS.items()}
    )
