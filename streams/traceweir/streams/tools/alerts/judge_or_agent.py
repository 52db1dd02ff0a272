"""Says whose change an alarm shows: the agent's, the judge's, or that of the config.

Frozen sessions can be moved by their judge only, so a change that they show is the judge's. An alarm on scores and one on
anchors are one change if they tell of the same direction, the intervals of their onsets overlap, and they are raised within
the guard time of each other (Li 2026, arXiv:2606.15474, has the guard; overlap is asked in addition). That the anchors
are silent means that the agent has changed only if there were enough of them to show such a change; else nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from traceweir.streams.base.statistics.watched_judge import JudgeChange, Side, WatchedJudge, least_moved
from traceweir.streams.base.statistics.watched_stream import DAY

AlarmCause = Literal["agent", "judge", "config", "unknown"]
GUARD_MINUTES = 7 * DAY
"""For how long an alarm on scores waits for one on anchors."""
SURE = 2
"""Silence of so many times the verdicts that show a change on average means that there is none."""


@dataclass(frozen=True, slots=True)
class ScoresAlarm:
    """What an alarm on scores says about its change; times are minutes since 1970."""

    raised_at: int
    earliest: int
    """Beginning of the interval that contains the onset."""
    latest: int
    """End of this interval."""
    effect: float
    """The change of the rate or mean, from -1 to 1; below 0 if fewer pass."""
    usual: float
    """The rate or mean before."""
    is_judged: bool
    """Whether a judge gives the scores."""

    @property
    def side(self) -> Side:
        """What the judge would be if it had caused the change."""
        return "stricter" if self.effect < 0 else "milder"

    @property
    def share_moved(self) -> float:
        """The share of the verdicts of a side that a judge would have to change for this effect."""
        of_side = self.usual if self.effect < 0 else 1 - self.usual
        return min(abs(self.effect) / of_side, 1.0) if of_side > 0 else 1.0


@dataclass(frozen=True, slots=True)
class AnchorEvidence:
    """What the anchors of the alarm's criterion say about its judge."""

    judge: WatchedJudge
    changes: Sequence[JudgeChange] = ()
    """The changes of the judge so far."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Whose change an alarm shows."""

    verdict: AlarmCause
    reason: str
    """A sentence for people."""


def judge_or_agent(
    alarm: ScoresAlarm,
    anchors: AnchorEvidence | None,
    configs: Mapping[str, int],
    guard: int = GUARD_MINUTES,
) -> Attribution:
    """Returns whose change an alarm shows, as far as it is known now.

    Args:
        alarm: The alarm on scores.
        anchors: The evidence of the anchors of its metric; None: there are none.
        configs: What was changed by people, such as a config or the digest of the metric, with the minute since 1970.
        guard: For how many minutes the alarm waits for anchors.
    """
    joined = None if anchors is None or not alarm.is_judged else _joined(alarm, anchors.changes, guard)
    if joined is not None:
        reason = (
            f"the judge is {joined.side} since about {_time(joined.change.at)}: it judges {joined.moved[0]:.0%} more of "
            "such anchors differently than before, and the sessions of anchors do not change"
        )
        return Attribution("judge", reason)
    pushed = [(at, what) for what, at in configs.items() if alarm.earliest <= at <= alarm.latest]
    if pushed:
        at, what = min(pushed, key=lambda each: abs(2 * each[0] - alarm.earliest - alarm.latest))
        return Attribution("config", f"{what} changed at {_time(at)}, when the scores changed")
    if not alarm.is_judged:
        return Attribution("agent", "no judge gives these scores, and no config changed")
    if anchors is None:
        return Attribution("unknown", "the criterion has no anchors: `traceweir anchors add` makes them of labels")
    side = alarm.side
    if not anchors.judge.is_watched(side):
        what = "pass" if side == "stricter" else "fail"
        return Attribution("unknown", f"what the judge usually says on anchors that {what} is still learnt")
    number = anchors.judge.watched_since(side, alarm.latest)
    needed = verdicts_needed(anchors.judge, side, alarm.share_moved)
    seen = f"since the change {number:,} verdicts on anchors were compared"
    if needed is None:
        return Attribution("unknown", f"{seen}, and no number of them would show so small a change")
    if number >= needed:
        return Attribution("agent", f"{seen}, and the judge has not changed so much; {needed:,} show it")
    return Attribution("unknown", f"{seen}, and about {needed:,} are needed to know")


def verdicts_needed(judge: WatchedJudge, side: Side, moved: float) -> int | None:
    """Returns after how many verdicts the silence of anchors means that the judge has not changed so much; None: never.

    Args:
        judge: The judge.
        side: Which change.
        moved: The share of the verdicts of this side on all subjects that would be different. On the anchors it can be less.
    """
    needed = judge.verdicts_needed(side, least_moved(moved, judge.anchors(side)))
    return None if needed is None or math.isinf(needed) else math.ceil(SURE * needed)


def _joined(alarm: ScoresAlarm, changes: Sequence[JudgeChange], guard: int) -> JudgeChange | None:
    for each in changes:
        overlaps = each.change.earliest <= alarm.latest and alarm.earliest <= each.change.latest
        if each.side == alarm.side and overlaps and abs(each.found_at - alarm.raised_at) <= guard:
            return each
    return None


def _time(minute: int) -> str:
    return f"{datetime.fromtimestamp(minute * 60, UTC):%Y-%m-%d %H:%M} UTC"
