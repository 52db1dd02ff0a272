"""Tests whose change an alarm is said to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from traceweir.streams.base.statistics.change_point import Changed
from traceweir.streams.base.statistics.watched_judge import HOUR, JudgeChange, Side, WatchedJudge
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.judge_or_agent import (
    GUARD_MINUTES,
    AnchorEvidence,
    ScoresAlarm,
    judge_or_agent,
    verdicts_needed,
)

pytestmark = pytest.mark.slow
RAISED = 20 * DAY
ALARM = ScoresAlarm(RAISED, RAISED - 4 * HOUR, RAISED - HOUR, effect=-0.2, usual=0.9, is_judged=True)
LATE = RAISED + GUARD_MINUTES


def judge_until(minute: int, anchors: int = 200) -> WatchedJudge:
    """Returns a judge that has answered all anchors as always, ten in each hour up to a minute."""
    judge = WatchedJudge(1)
    for hour in range(minute // HOUR):
        verdicts = [(str(each % anchors), each % 2 == 0) for each in range(10 * hour, 10 * hour + 10)]
        assert judge.step(hour, verdicts) is None
    return judge


def change(side: Side, earliest: int, latest: int, found_at: int) -> JudgeChange:
    return JudgeChange(side, found_at, Changed(latest, earliest, latest, 30, 0.7, 0.6, 0.8, 0.98), (0.3, 0.2, 0.4))


JUDGE = judge_until(RAISED + DAY)
STRICTER = change("stricter", RAISED - 5 * HOUR, RAISED - 2 * HOUR, RAISED + 10 * HOUR)


def test_a_judge_that_changed_at_the_same_time_is_named_at_once() -> None:
    said = judge_or_agent(ALARM, AnchorEvidence(JUDGE, [STRICTER]), {})
    assert said.verdict == "judge"
    assert "30%" in said.reason


@pytest.mark.parametrize(
    "other",
    [
        replace(STRICTER, side="milder"),
        change("stricter", RAISED - 9 * DAY, RAISED - 8 * DAY, RAISED - 7 * DAY),
        replace(STRICTER, found_at=LATE + 1),
    ],
    ids=["to the other side", "another time", "after the guard"],
)
def test_another_change_of_the_judge_is_not_the_reason(other: JudgeChange) -> None:
    said = judge_or_agent(ALARM, AnchorEvidence(JUDGE, [other]), {})
    assert said.verdict == "agent"


def test_an_agent_is_named_only_when_enough_anchors_were_silent() -> None:
    early = judge_or_agent(ALARM, AnchorEvidence(judge_until(RAISED + 2 * HOUR)), {})
    assert early.verdict == "unknown"
    later = judge_or_agent(ALARM, AnchorEvidence(JUDGE), {})
    assert later.verdict == "agent"


def test_a_drop_that_few_anchors_could_miss_is_unknown_whatever_they_say() -> None:
    few = judge_until(RAISED + DAY, anchors=10)
    assert judge_or_agent(replace(ALARM, effect=-0.1), AnchorEvidence(few), {}).verdict == "unknown"
    assert verdicts_needed(few, "stricter", 0.11) is None
    needed = verdicts_needed(JUDGE, "stricter", 0.22)
    assert needed is not None
    assert needed < (verdicts_needed(JUDGE, "stricter", 0.15) or 0)


def test_a_config_that_changed_in_the_interval_is_named_unless_the_judge_has_changed() -> None:
    pushed = {"config 1a2b": RAISED - 2 * HOUR, "config of last week": RAISED - 7 * DAY}
    said = judge_or_agent(ALARM, AnchorEvidence(JUDGE), pushed)
    assert said.verdict == "config"
    assert said.reason.startswith("config 1a2b")
    assert judge_or_agent(ALARM, AnchorEvidence(JUDGE, [STRICTER]), pushed).verdict == "judge"
    outside = {"config of last week": RAISED - 7 * DAY}
    assert judge_or_agent(ALARM, AnchorEvidence(JUDGE), outside).verdict == "agent"


@pytest.mark.parametrize(
    ("anchors", "reason"),
    [(lambda: None, "no anchors"), (lambda: AnchorEvidence(judge_until(DAY)), "still learnt")],
    ids=["none", "learning"],
)
def test_without_evidence_nobody_is_named(anchors: Callable[[], AnchorEvidence | None], reason: str) -> None:
    said = judge_or_agent(ALARM, anchors(), {})
    assert said.verdict == "unknown"
    assert reason in said.reason


def test_scores_that_no_judge_gives_are_not_the_judges() -> None:
    alarm = replace(ALARM, is_judged=False)
    assert judge_or_agent(alarm, AnchorEvidence(JUDGE, [STRICTER]), {}).verdict == "agent"


def test_a_judge_moves_only_what_it_passes_or_only_what_it_fails() -> None:
    assert ALARM.share_moved == pytest.approx(0.2 / 0.9)
    rise = replace(ALARM, effect=0.05)
    assert rise.side == "milder"
    assert rise.share_moved == pytest.approx(0.5)
