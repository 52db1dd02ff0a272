"""Simulates agents, judges and anchors, and counts whom an alarm names: the agent, or its judge.

An agent's sessions and the anchors are judged by one judge. The judge changes under the same name, or the agent gets worse,
or nothing happens. Nothing depends on the machine: equal seeds give equal tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.alerts import BASELINE_DAYS, PROMISED_DAYS, TOLERATED
from traceweir.streams.base.statistics.baseline import HOURS
from traceweir.streams.base.statistics.rate_intervals import exact_interval
from traceweir.streams.base.statistics.watched_judge import HOUR, JudgeChange, WatchedJudge
from traceweir.streams.base.statistics.watched_stream import DAY, Promise, StreamAlarm, WatchedStream
from traceweir.streams.tools.alerts.judge_or_agent import (
    GUARD_MINUTES,
    AnchorEvidence,
    Attribution,
    ScoresAlarm,
    judge_or_agent,
)

RUNS = 60
ANCHORS = 200
PER_DAY = 240
RIGHT = 0.9
"""How often the judge's usual verdict on an anchor is that of the person."""
FIRST = BASELINE_DAYS * DAY
"""The minute at which the agent's baseline ends."""
CHANGE = FIRST + 7 * DAY
"""The minute of the change: the anchors learn longer than the agent's stream, because each first needs a verdict."""
CALM_DAYS = 60
WINDOW = 200
"""Verdicts of the rolling z-test."""


@dataclass(frozen=True, slots=True)
class JudgeWorld:
    """What happens to a judge and an agent."""

    stricter: float = 0.0
    """Share of the subjects that the judge passed and fails after the change."""
    milder: float = 0.0
    """Share of the subjects that the judge failed and passes after the change."""
    dropped: float = 0.0
    """By how much the share of the agent's good answers drops."""
    an_hour: float = 500
    """Sessions of the agent an hour."""
    passing: float = 0.9
    """The agent's pass rate before."""
    per_day: int = PER_DAY
    """Verdicts on anchors a day."""
    noise: float = 0.02
    """How often a verdict is not the usual one of its subject."""
    label_passes: float = 0.5
    """Share of the anchors that people passed."""


@dataclass(frozen=True, slots=True)
class Run:
    """What was said in one run."""

    alarm: StreamAlarm | None
    """The alarm on the agent's scores; None: there was none in the time."""
    judge: JudgeChange | None
    """The first change of the judge that was found after it happened."""
    said: Attribution | None
    """The final verdict on the alarm."""
    known_after: int | None
    """Minutes from the alarm until the verdict was as in the end."""


class Anchors:
    """Draws the verdicts of a judge on anchors, hour by hour."""

    def __init__(self, world: JudgeWorld, random: np.random.Generator) -> None:
        self._world = world
        self._random = random
        self.labels = random.random(ANCHORS) < world.label_passes
        self._usual = np.where(random.random(ANCHORS) < RIGHT, self.labels, ~self.labels)
        moved = random.random(ANCHORS) < np.where(self._usual, world.stricter, world.milder)
        self._later = self._usual ^ moved

    def drawn(self, hour: int, change: int) -> list[tuple[str, bool]]:
        """Returns the verdicts of an hour; the judge changes at this minute."""
        begins = self._world.per_day * hour // HOURS
        number = self._world.per_day * (hour + 1) // HOURS - begins
        chosen = self._random.integers(0, ANCHORS, number)
        usual = (self._later if hour * HOUR >= change else self._usual)[chosen]
        verdicts = usual ^ (self._random.random(number) < self._world.noise)
        return [(str(anchor), bool(passed)) for anchor, passed in zip(chosen, verdicts, strict=True)]


def simulated(world: JudgeWorld, random: np.random.Generator) -> Run:
    """Returns what is said in a run: the change comes a week after the baseline, and is waited for the guard time."""
    anchors = Anchors(world, random)
    judge = WatchedJudge(1)
    changes: list[JudgeChange] = []
    for hour in range(CHANGE // HOUR):
        _step(judge, hour, anchors.drawn(hour, CHANGE), changes)
    alarm, effect = _agent_alarm(world, random)
    if alarm is None or effect is None:
        for hour in range(CHANGE // HOUR, CHANGE // HOUR + 14 * HOURS):
            _step(judge, hour, anchors.drawn(hour, CHANGE), changes)
        return Run(None, _first(changes), None, None)
    known: list[tuple[int, Attribution]] = []
    for hour in range(CHANGE // HOUR, (alarm.raised_at + GUARD_MINUTES) // HOUR + 2):
        _step(judge, hour, anchors.drawn(hour, CHANGE), changes)
        now = (hour + 1) * HOUR
        if now >= alarm.raised_at:
            known.append((now - alarm.raised_at, judge_or_agent(alarm, AnchorEvidence(judge, changes), {})))
    last = known[-1][1]
    same_from = next(
        after
        for place, (after, _) in enumerate(known)
        if all(said.verdict == last.verdict for _, said in known[place:])
    )
    return Run(effect, _first(changes), last, same_from)


def _step(judge: WatchedJudge, hour: int, verdicts: Sequence[tuple[str, bool]], changes: list[JudgeChange]) -> None:
    found = judge.step(hour, verdicts) if verdicts else None
    if found is not None:
        changes.append(found)


def _first(changes: Sequence[JudgeChange]) -> JudgeChange | None:
    return next((each for each in changes if each.found_at >= CHANGE), None)


def _agent_alarm(world: JudgeWorld, random: np.random.Generator) -> tuple[ScoresAlarm | None, StreamAlarm | None]:
    """Returns the alarm on the agent's scores within a day of the change."""
    after = world.passing - world.dropped
    after += (1 - after) * world.milder - after * world.stricter
    if after >= world.passing - TOLERATED:
        return None, None
    stream = WatchedStream(1, Promise(TOLERATED, PROMISED_DAYS, BASELINE_DAYS))

    def values(rate: float, hours: float) -> NDArray[np.float64]:
        return (random.random(random.poisson(world.an_hour * hours)) < rate).astype(float)

    for hour in range(BASELINE_DAYS * HOURS):
        stream.step(hour * HOUR, values(world.passing, 1))
    # Half a day before the change.
    for minute in range(CHANGE - DAY // 2, CHANGE + DAY):
        drawn = values(after if minute >= CHANGE else world.passing, 1 / HOUR)
        said = stream.step(minute, drawn) if len(drawn) else None
        if said is not None and said.change is not None and said.effect is not None:
            _, usual = stream.baseline
            alarm = ScoresAlarm(
                said.at, said.change.earliest, said.change.latest, said.effect[0], usual or 0.0, is_judged=True
            )
            return alarm, said
    return None, None


def calm(world: JudgeWorld, random: np.random.Generator, days: int = CALM_DAYS) -> tuple[bool, bool]:
    """Returns whether the anchors give an alarm without a change, and whether a rolling z-test does."""
    anchors = Anchors(world, random)
    judge = WatchedJudge(1)
    rang = False
    gaps: list[float] = []
    for hour in range((BASELINE_DAYS + days) * HOURS):
        verdicts = anchors.drawn(hour, 1 << 40)
        rang = (judge.step(hour, verdicts) is not None) or rang
        gaps += [float(passed) - float(anchors.labels[int(anchor)]) for anchor, passed in verdicts]
    return rang, _z_test(np.array(gaps), BASELINE_DAYS * world.per_day)


def _z_test(gaps: NDArray[np.float64], learnt: int) -> bool:
    """Returns whether the mean of judge less label in a rolling window is ever 1.96 standard errors from the first mean."""
    first = gaps[:learnt]
    sums = np.concatenate(([0.0], np.cumsum(gaps[learnt:])))
    means = (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW
    return bool((np.abs(means - first.mean()) > 1.96 * first.std() / WINDOW**0.5).any())


BUMPS = (
    JudgeWorld(stricter=0.1),
    JudgeWorld(stricter=0.2),
    JudgeWorld(stricter=0.1, per_day=1_000),
    JudgeWorld(stricter=0.1, an_hour=5_000),
    JudgeWorld(stricter=0.1, noise=0.1),
    JudgeWorld(stricter=0.1, label_passes=0.9),
)
DROPS = tuple(JudgeWorld(dropped=drop, per_day=per_day) for drop in (0.1, 0.2) for per_day in (PER_DAY, 1_000))
QUIET = (
    JudgeWorld(stricter=0.05, milder=0.45),
    JudgeWorld(milder=0.1),
    JudgeWorld(milder=0.2),
)
CALM = (JudgeWorld(), replace(JudgeWorld(), noise=0.1), replace(JudgeWorld(), per_day=1_000))


def run(runs: int = RUNS) -> None:
    """Prints whom alarms name after a change of the judge and of the agent, and what calm streams say."""
    print("| change | runs | alarms on scores | judge | agent | unknown | hours to the verdict | judge found |")
    print("|---|---|---|---|---|---|---|---|")
    for place, world in enumerate((*BUMPS, *DROPS, *QUIET)):
        found = [simulated(world, np.random.default_rng((place, number))) for number in range(runs)]
        said = [each.said.verdict for each in found if each.said is not None]
        named = " | ".join(str(said.count(verdict)) for verdict in ("judge", "agent", "unknown"))
        after = [each.known_after / 60 for each in found if each.known_after is not None]
        hours = f"{np.median(after):.0f}" if after else "-"
        judge = [(each.judge.found_at - CHANGE) / 60 for each in found if each.judge is not None]
        later = f"{len(judge)}, after {np.median(judge):.0f} h" if judge else "0"
        print(f"| {title(world)} | {runs} | {len(said)} | {named} | {hours} | {later} |", flush=True)
    print(f"\n| calm for {CALM_DAYS} days | runs | anchors: runs with an alarm | rolling z-test: runs with an alarm |")
    print("|---|---|---|---|")
    for place, world in enumerate(CALM):
        rang = [calm(world, np.random.default_rng((100 + place, number))) for number in range(2 * runs)]
        shares = " | ".join(_share(sum(each[column] for each in rang), len(rang)) for column in (0, 1))
        print(f"| {title(world)} | {len(rang)} | {shares} |", flush=True)


def title(world: JudgeWorld) -> str:
    """Returns the words of a row."""
    parts = [f"judge fails {world.stricter:.0%} of what passed"] if world.stricter else []
    parts += [f"judge passes {world.milder:.0%} of what failed"] if world.milder else []
    parts += [f"agent drops by {world.dropped:g}"] if world.dropped else []
    parts += [f"{world.an_hour:,.0f} sessions an hour"] if world.an_hour != JudgeWorld().an_hour else []
    parts += [f"{world.per_day:,} verdicts a day"]
    parts += [f"{world.noise:.0%} of the verdicts vary"] if world.noise != JudgeWorld().noise else []
    parts += [f"{world.label_passes:.0%} of the labels pass"] if world.label_passes != JudgeWorld().label_passes else []
    return ", ".join(parts)


def _share(number: int, of: int) -> str:
    low, high = exact_interval(number, of)
    return f"{number / of:.1%} ({low:.1%} to {high:.1%})"
