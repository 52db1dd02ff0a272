"""Simulates alerts on scores: the rule of `monitoring/alerts.yaml` as it is written, and the e-detector, side by side.

Counts false alarms with nothing changed, and minutes from a drop to the alarm, beside a CUSUM that knows the pass rate
before and after. Nothing depends on the machine: equal seeds give equal tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom, binom, chi2

from traceweir.streams.base.statistics.baseline import (
    HOURS,
    SUMS,
    baseline_lines,
    hour_of,
    hours_of,
    is_weekend,
    value_sums,
)
from traceweir.streams.base.statistics.betting import (
    BETS,
    alarm_threshold,
    averaged,
    evidence_after,
    log_drop_growth,
    stream_weight,
)
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.rate_intervals import exact_interval
from traceweir.streams.base.statistics.watched_stream import (
    ACCEPTED_LINE_ERROR,
    DAY,
    LINE_ERROR,
    Promise,
    WatchedStream,
)
from traceweir.streams.tools.alerts.arrivals import SLOT, usual_interval
from traceweir.streams.tools.alerts.rule_stream import BACK_ODDS
from traceweir.streams.tools.alerts.usual_limit import SAMPLE, usual_limit

PROMISED_DAYS = 60
TOLERATED = 0.02
BASELINE_DAYS = 7
DAYS = 30
MONTH = 30 * DAY
MONDAY = 4 * DAY
"""A minute since 1970 at which a week began."""
EVERY = 5
"""Minutes between two evaluations of the old rule."""
HELD = 15 // EVERY
"""How many evaluations after the first one the old rule must hold."""
LIKENESS = 0.3
"""Correlation of two results of one session."""


@dataclass(frozen=True, slots=True)
class World:
    """What happens to each stream of a row."""

    rate: float
    """Sessions an hour."""
    passing: float
    """The pass rate in the baseline."""
    dropped: float = 0.0
    """By how much it drops a day after the baseline."""
    of_session: int = 1
    """Results of a session."""
    rhythm: float = 0.0
    """By how much the pass rate moves up and down in a day."""
    weekend: float = 0.0
    """By how much the pass rate is lower on Saturdays and Sundays."""
    baseline_days: int = BASELINE_DAYS
    """Days of the baseline, which ends on a Sunday."""
    drift: float = 0.0
    """By how much the pass rate has fallen at the end of 30 days."""
    streams: int = 1
    """How many streams the rule has."""
    families: int = 100
    """How often all streams are drawn."""
    tail: float = 0.0
    """Index of the Pareto law of values, whose share above a learnt limit is watched; 0: the pass rate is watched."""
    grown: float = 1.0
    """By which factor values grow a day after the baseline."""

    def passes(self, minute: int) -> float:
        """Returns the pass rate at a minute; the baseline ends at 0."""
        calm = self.weekend * bool(is_weekend(np.array(MONDAY + minute)))
        drift = self.drift * (minute + BASELINE_DAYS * DAY) / (MONTH + BASELINE_DAYS * DAY)
        wave = self.rhythm * np.sin(2 * np.pi * minute / DAY)
        return float(np.clip(self.passing + wave - calm - drift - (self.dropped if minute >= DAY else 0), 0, 1))

    @property
    def has_change(self) -> bool:
        """Whether something changes a day after the baseline."""
        return bool(self.dropped) or self.grown != 1

    @property
    def numbers(self) -> NDArray[np.intp]:
        """The number of each stream, of all families."""
        return np.tile(np.arange(1, self.streams + 1), self.families)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a detector said in all streams of a world."""

    false: int
    """Alarms with nothing changed, or before the change."""
    days: float
    """Days without a change in which they could come, of all streams together."""
    delays: Floats
    """Minutes from the change to the alarm, by stream; infinite if there was none within the time."""


class Sessions:
    """Draws the sessions of each minute, with results that resemble each other within a session."""

    def __init__(self, world: World, random: np.random.Generator) -> None:
        self._world = world
        self._random = random
        self.values = np.arange(world.of_session + 1) / world.of_session

    def chances(self, minute: int) -> Floats:
        """Returns the probability of each value of a session."""
        return _chances(self._world.passes(minute), self._world.of_session)

    def drawn(self, minute: int, hours: float, streams: int) -> NDArray[np.int64]:
        """Returns how many sessions have each value, by stream, in a span that begins at a minute."""
        found: NDArray[np.int64] = self._random.poisson(
            self.chances(minute) * self._world.rate * hours, (streams, len(self.values))
        )
        return found


class Limits(Sessions):
    """Draws how many sessions of each minute are beyond a limit that each stream has learnt."""

    def __init__(self, world: World, random: np.random.Generator) -> None:
        super().__init__(world, random)
        half = world.rate * HOURS * BASELINE_DAYS / 2
        known = [1 + random.pareto(world.tail, min(random.poisson(half), SAMPLE)) for _ in world.numbers]
        self._limits = np.array([usual_limit(each.tolist(), is_upper=True) for each in known])

    def chances(self, minute: int) -> Floats:
        """Returns the probabilities of a session beyond the limit, and of another one, by stream."""
        grown = self._world.grown if minute >= DAY else 1.0
        above = np.minimum((self._limits / grown) ** -self._world.tail, 1)
        return np.stack((above, 1 - above), axis=1)


def sessions_of(world: World, random: np.random.Generator) -> Sessions:
    """Returns the sessions of a world."""
    return Limits(world, random) if world.tail else Sessions(world, random)


def baselines(world: World, sessions: Sessions) -> Floats:
    """Returns the bound of each stream by hour of the day, as `WatchedStream` learns it."""
    hours = hours_of(world.baseline_days)
    found = np.empty((len(world.numbers), hours))
    sums = np.zeros((len(world.numbers), hours, SUMS))
    # What a session with each value adds.
    added = np.array([value_sums(np.array([value])) for value in sessions.values])
    # A limit is learnt from the first half of the days.
    for hour in range(-HOURS * world.baseline_days // (2 if world.tail else 1), 0):
        counts = sessions.drawn(hour * 60 + 30, 1, len(world.numbers))
        sums[:, hour_of(MONDAY + hour * 60, hours)] += counts @ added
    for place, number in enumerate(world.numbers.tolist()):
        found[place] = baseline_lines(sums[place], LINE_ERROR * stream_weight(number)).lowest
    return found


def detector(world: World, random: np.random.Generator, days: int) -> Seen:
    """Returns what the e-detector says. After a false alarm it begins again with the same baseline."""
    sessions = sessions_of(world, random)
    lines = baselines(world, sessions) - TOLERATED
    growth = log_drop_growth(sessions.values, lines[..., np.newaxis])
    thresholds = np.array(
        [
            alarm_threshold(number, PROMISED_DAYS * DAY, LINE_ERROR + ACCEPTED_LINE_ERROR)
            for number in world.numbers.tolist()
        ]
    )
    evidence = np.zeros((len(world.numbers), BETS))

    def rings(minute: int, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        some = np.flatnonzero(counts.any(axis=1))
        step = np.einsum(
            "sv,svb->sb", counts[some].astype(float), growth[some, hour_of(MONDAY + minute, lines.shape[1])]
        )
        evidence[some] = evidence_after(evidence[some], step)
        rung: NDArray[np.bool_] = averaged(evidence) >= thresholds
        evidence[rung] = 0
        return rung

    return _seen(world, sessions, rings, days)


def oracle(world: World, random: np.random.Generator, days: int) -> Seen:
    """Returns what a CUSUM says that knows the pass rate before and after the change, and shares the promise equally."""
    sessions = sessions_of(world, random)
    threshold = np.log(PROMISED_DAYS * DAY * world.streams)
    sums = np.zeros(len(world.numbers))
    ratios = np.log(sessions.chances(DAY)) - np.log(sessions.chances(0))

    def rings(minute: int, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        some = counts.any(axis=1)
        sums[some] = np.maximum(sums[some], 0) + (counts * ratios).sum(axis=1)[some]
        rung: NDArray[np.bool_] = sums >= threshold
        sums[rung] = 0
        return rung

    return _seen(world, sessions, rings, days)


def old_rule(world: World, random: np.random.Generator, days: int) -> Seen:
    """Returns what a Prometheus rule over a window says, evaluated every five minutes, with a day before the first minute.

    For 15 minutes, the pass rate of an hour with 50 scores or more is below 0.8 times that of the same hour yesterday.
    """
    sessions = Sessions(world, random)
    hour = 60 // EVERY
    day = DAY // EVERY
    counts = np.array(
        [sessions.drawn(minute, EVERY / 60, len(world.numbers)) for minute in range(-DAY - 60, days * DAY, EVERY)]
    )
    passed = np.cumsum(counts @ (sessions.values * world.of_session), axis=0)
    judged = np.cumsum(counts.sum(axis=2) * world.of_session, axis=0)
    passed_in = passed[hour:] - passed[:-hour]
    judged_in = judged[hour:] - judged[:-hour]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = passed_in / judged_in
    below = (rates[day:] < 0.8 * rates[:-day]) & (judged_in[day:] >= 50)
    held = below.copy()
    for back in range(1, HELD + 1):
        held[back:] &= below[:-back]
        held[:back] = False
    begins = held & ~np.vstack((np.zeros((1, held.shape[1]), bool), held[:-1]))
    # Row 0 is the end of the hour before minute 0.
    change = day if world.dropped else len(begins)
    after = held[change:]
    first = np.where(after.any(axis=0), (after.argmax(axis=0) + 1) * EVERY, np.inf) if len(after) else _never(world)
    return Seen(int(begins[:change].sum()), len(world.numbers) * (1 if world.dropped else days), first)


def _seen(
    world: World,
    sessions: Sessions,
    rings: Callable[[int, NDArray[np.int64]], NDArray[np.bool_]],
    days: int,
) -> Seen:
    delays = _never(world)
    false = 0
    for minute in range(days * DAY):
        rung = rings(minute, sessions.drawn(minute, 1 / 60, len(world.numbers)))
        if world.has_change and minute >= DAY:
            delays[rung & np.isinf(delays)] = minute - DAY + 1
            if np.isfinite(delays).all():
                break
        else:
            false += int(rung.sum())
    return Seen(false, len(world.numbers) * (1 if world.has_change else days), delays)


def _never(world: World) -> Floats:
    return np.full(len(world.numbers), np.inf)


CALM = (
    *(World(rate, passing) for rate in (60, 500, 5_000) for passing in (0.5, 0.7, 0.9, 0.99)),
    World(500, 0.9, of_session=5),
    World(500, 0.9, rhythm=0.05),
    World(5_000, 0.8, rhythm=0.1),
    World(500, 0.9, drift=0.01),
    World(100, 0.9, streams=10, families=10),
    World(60, 0.9, streams=1_000, families=1),
)
DROPS = (
    *(World(rate, 0.9, dropped=0.1, families=300) for rate in (100, 500, 5_000)),
    *(World(rate, 0.9, dropped=drop) for rate in (60, 500, 5_000) for drop in (0.05, 0.2)),
    World(500, 0.5, dropped=0.1),
    World(500, 0.99, dropped=0.05),
    World(500, 0.9, dropped=0.1, of_session=5),
    World(500, 0.9, dropped=0.1, streams=10, families=10),
    World(500, 0.9, dropped=0.1, streams=1_000, families=1),
    World(5_000, 0.9, dropped=0.02),
)
CALM_LIMITS = (World(60, 0.9, tail=1.2), World(500, 0.9, tail=1.2))
CALM_WEEKS = tuple(World(rate, 0.9, weekend=0.1, baseline_days=days) for rate in (60, 500) for days in (7, 14))
DROPPED_WEEKS = tuple(
    World(rate, 0.9, dropped=0.1, weekend=weekend, baseline_days=14) for rate in (100, 500) for weekend in (0.0, 0.1)
)
GROWN_LIMITS = tuple(World(rate, 0.9, tail=1.2, grown=grown) for rate in (60, 500) for grown in (1.5, 2.0))
ARRIVALS = ((20, 24, 7), (5, 24, 7), (1, 24, 28), (20, 16, 7))
"""Sessions an hour, in how many hours of the day they come, and days of the baseline."""
RISEN_CATEGORY = World(500, 0.95, dropped=0.1)
"""A category of 5 % of the scores becomes one of 15 %."""
ON_LINE = ((0.9, 1), (0.9, 5), (0.5, 5), (0.98, 3), (0.1, 3))
"""Pass rates that lie on the line, and sessions of a step, which is a minute with scores."""
PROMISED_STEPS = 1_000
ON_LINE_RUNS = 2_000
STATED = (
    *(World(rate, 0.9, dropped=0.1, families=150) for rate in (100, 500, 5_000)),
    World(500, 0.9, dropped=0.05, families=150),
    World(100, 0.9, dropped=0.3, families=150),
    World(500, 0.9, dropped=0.1, of_session=5, families=150),
    World(500, 0.8, dropped=0.15, rhythm=0.05, families=150),
)
AFTER_DROP = 8
"""Days that a drop is simulated, with the day before it."""


def run(days: int = DAYS) -> None:
    """Prints the false alarms without a change, and the minutes to find drops."""
    print("| world | stream-months | promise | old rule | e-detector |")
    print("|---|---|---|---|---|")
    for place, world in enumerate(CALM):
        old = old_rule(world, np.random.default_rng(place), days)
        new = detector(world, np.random.default_rng(place), days)
        # Over all streams of a rule, and so for each of them.
        promise = DAYS / PROMISED_DAYS / world.streams
        months = new.days / DAYS
        print(f"| {_title(world)} | {months:.0f} | {promise:.2g} | {_per_month(old)} | {_per_month(new)} |", flush=True)
    print(
        "\n| world | drop | runs | old rule: in a day | e-detector: in 7 days | median minutes | CUSUM that knows both |"
    )
    print("|---|---|---|---|---|---|---|")
    for place, world in enumerate(DROPS):
        old = old_rule(world, np.random.default_rng(place), 2)
        new = detector(world, np.random.default_rng(place), AFTER_DROP)
        known = oracle(world, np.random.default_rng(place), AFTER_DROP)
        shares = f"{np.isfinite(old.delays).mean():.0%} | {np.isfinite(new.delays).mean():.0%}"
        medians = f"{_median(new.delays)} | {_median(known.delays)}"
        print(f"| {_title(world)} | {world.dropped} | {len(new.delays)} | {shares} | {medians} |", flush=True)
    run_worlds(CALM_LIMITS, (*GROWN_LIMITS, RISEN_CATEGORY), days)
    run_freshness(days)
    run_worlds(CALM_WEEKS, DROPPED_WEEKS, days)
    print("\n| world | drop | alarms | onset covered | minutes before and after | effect covered | width |")
    print("|---|---|---|---|---|---|---|")
    for place, world in enumerate(STATED):
        print(f"| {_title(world)} | {world.dropped} | {_stated(world, np.random.default_rng(place))} |", flush=True)
    print("\n| rate on the line | sessions a minute | runs | mean time to an alarm |")
    print("|---|---|---|---|")
    for place, (passing, sessions) in enumerate(ON_LINE):
        print(f"| {passing} | {sessions} | {on_line(passing, sessions, np.random.default_rng(place))} |", flush=True)


def run_worlds(calm: Sequence[World], changed: Sequence[World], days: int = DAYS) -> None:
    """Prints the same of other worlds, without the old rule: those without a change, and those with one."""
    print("\n| world | stream-months | promise | e-detector |")
    print("|---|---|---|---|")
    for place, world in enumerate(calm):
        new = detector(world, np.random.default_rng(place), days)
        months = new.days / DAYS
        print(f"| {_title(world)} | {months:.0f} | {DAYS / PROMISED_DAYS} | {_per_month(new)} |", flush=True)
    print("\n| world | drop | runs | e-detector: in 7 days | median minutes | CUSUM that knows both |")
    print("|---|---|---|---|---|---|")
    for place, world in enumerate(changed):
        new = detector(world, np.random.default_rng(place), AFTER_DROP)
        known = oracle(world, np.random.default_rng(place), AFTER_DROP)
        found = f"{np.isfinite(new.delays).mean():.0%} | {_median(new.delays)} | {_median(known.delays)}"
        print(f"| {_title(world)} | {world.dropped} | {len(new.delays)} | {found} |", flush=True)


def run_freshness(days: int = DAYS) -> None:
    """Prints how often a stream is taken for one that has stopped, and how soon one is that has."""
    print(
        "\n| sessions | interval | stream-months | promise | e-detector | stops: in 7 days | median minutes | one who knows |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for place, (rate, hours, learnt) in enumerate(ARRIVALS):
        calm, interval = arrivals(rate, hours, learnt, days, None, np.random.default_rng(place), 30)
        # In the middle of the hours in which sessions come.
        stopped, _ = arrivals(rate, hours, learnt, AFTER_DROP, DAY + 4 * 60, np.random.default_rng(place), 60)
        # Each slot without a session is as much evidence as sessions usually come in it.
        knows = SLOT * np.ceil(np.log(PROMISED_DAYS * DAY / SLOT) / (rate * SLOT / 60))
        found = f"{np.isfinite(stopped.delays).mean():.0%} | {_median(stopped.delays)} | {knows:,.0f}"
        name = f"{rate} an hour, baseline of {learnt} days" + (
            f", none in {24 - hours} hours of the day" if hours < 24 else ""
        )
        months = calm.days / DAYS
        row = f"{interval:.0f} min | {months:.0f} | {DAYS / PROMISED_DAYS} | {_per_month(calm)} | {found}"
        print(f"| {name} | {row} |", flush=True)


def arrivals(
    rate: float, hours: int, learnt: int, days: int, stop: int | None, random: np.random.Generator, families: int
) -> tuple[Seen, float]:
    """Returns what is said of streams of which some sessions come, and the median length of their intervals.

    Args:
        rate: Sessions an hour, while some come.
        hours: In how many hours of the day they come.
        learnt: How many days the baseline has.
        days: For how many days after the baseline.
        stop: The minute after the baseline from which on none comes; None: they go on.
        random: Draws them.
        families: How many streams there are.
    """
    half = learnt * DAY // 2
    delays: list[float] = []
    lengths: list[int] = []
    false = 0
    slots = np.arange((2 * half + days * DAY) // SLOT) * SLOT
    comes = np.where(slots // 60 % HOURS < hours, -np.expm1(-rate * SLOT / 60), 0.0)
    if stop is not None:
        comes[slots >= 2 * half + stop] = 0
    for _ in range(families):
        came = random.random(len(slots)) < comes
        interval = usual_interval(came[: half // SLOT], 0)
        if interval is None:
            continue
        lengths.append(interval)
        stream = WatchedStream(1, Promise(TOLERATED, PROMISED_DAYS, learnt / 2, interval, BACK_ODDS))
        found = np.inf
        for start in range(-(-half // interval) * interval, len(slots) * SLOT - interval + 1, interval):
            some = came[start // SLOT : (start + interval) // SLOT].any()
            said = stream.step(start, np.array([float(some)]))
            if said is None or said.state != "raised":
                continue
            delay = start + interval - 2 * half - (stop or 0)
            if stop is None or delay <= 0:
                false += 1
            else:
                found = min(found, delay)
                break
        delays.append(found)
    watched = days if stop is None else stop / DAY
    return Seen(false, watched * len(lengths), np.array(delays)), float(np.median(lengths))


def on_line(passing: float, sessions: int, random: np.random.Generator, runs: int = ON_LINE_RUNS) -> str:
    """Returns the mean time to an alarm at a rate on the line, as a share of the promised one, as columns of a row.

    No rate that the rule allows has more false alarms.
    """
    growth = log_drop_growth(np.array([0.0, 1.0]), passing)
    evidence = np.zeros((runs, BETS))
    lengths: list[int] = []
    step = 0
    while len(evidence):
        step += 1
        passed = random.binomial(sessions, passing, len(evidence))
        evidence = evidence_after(evidence, np.outer(sessions - passed, growth[0]) + np.outer(passed, growth[1]))
        over = averaged(evidence) >= PROMISED_STEPS
        lengths += [step] * int(over.sum())
        evidence = evidence[~over]
    shares = np.array(lengths) / PROMISED_STEPS
    return f"{len(shares):,} | {shares.mean():.2f} +/- {1.96 * shares.std() / len(shares) ** 0.5:.2f}"


def _stated(world: World, random: np.random.Generator) -> str:
    """Returns how often the intervals of an alarm contain the change, and how wide they are, as columns of a row."""
    sessions = Sessions(world, random)
    promise = Promise(TOLERATED, PROMISED_DAYS, BASELINE_DAYS)
    rows = []

    def drawn(minute: int, hours: float) -> Floats:
        return np.repeat(sessions.values, sessions.drawn(minute, hours, 1)[0])

    for _ in range(world.families):
        stream = WatchedStream(1, promise)
        for hour in range(-BASELINE_DAYS * HOURS, 0):
            stream.step(hour * 60, drawn(hour * 60, 1))
        # Half a day before the change, and at most three after it.
        for minute in range(DAY // 2, 4 * DAY):
            values = drawn(minute, 1 / 60)
            said = stream.step(minute, values) if len(values) else None
            if said is not None and said.change is not None and said.effect is not None:
                change = said.change
                _, low, high = said.effect
                covered = change.earliest <= DAY <= change.latest
                right = low <= -world.dropped <= high
                rows.append((covered, DAY - change.earliest, change.latest - DAY, right, high - low))
                break
    found = np.array(rows, float)
    _, before, after, _, width = np.median(found, axis=0)
    shares = [_share(int(found[:, column].sum()), len(found)) for column in (0, 3)]
    return f"{len(found)} | {shares[0]} | {before:,.0f} and {after:,.0f} | {shares[1]} | {width:.2f}"


def _share(number: int, of: int) -> str:
    low, high = exact_interval(number, of)
    return f"{number / of:.2f} ({low:.2f} to {high:.2f})"


def _title(world: World) -> str:
    what = f"values with a Pareto tail of {world.tail}" if world.tail else f"{world.passing}"
    parts = [f"{world.rate:,.0f} an hour, {what}"]
    parts += [f"that grow {world.grown:g} times"] if world.grown != 1 else []
    parts += [f"{world.of_session} results of a session"] if world.of_session > 1 else []
    parts += [f"daily rhythm of +/- {world.rhythm}"] if world.rhythm else []
    parts += [f"{world.weekend} lower on weekends"] if world.weekend else []
    parts += [f"baseline of {world.baseline_days} days"] if world.baseline_days != BASELINE_DAYS else []
    parts += [f"falls by {world.drift} in the time"] if world.drift else []
    parts += [f"{world.streams:,} streams"] if world.streams > 1 else []
    return ", ".join(parts)


def _per_month(seen: Seen) -> str:
    """Returns the false alarms of a stream in 30 days, with the exact interval of a Poisson count (Garwood 1936)."""
    months = seen.days / DAYS
    low = chi2.ppf(0.025, 2 * seen.false) / 2 / months if seen.false else 0.0
    high = chi2.ppf(0.975, 2 * seen.false + 2) / 2 / months
    return f"{seen.false / months:.3g} ({low:.2g} to {high:.2g})"


def _median(delays: Floats) -> str:
    """Returns the median with its interval by the order of the runs."""
    ordered: Sequence[float] = np.sort(delays).tolist()
    first, last = (int(place) for place in binom.ppf((0.025, 0.975), len(ordered), 0.5))
    found = (ordered[(len(ordered) - 1) // 2], ordered[first], ordered[min(last, len(ordered) - 1)])
    median, low, high = (f"{each:,.0f}" if np.isfinite(each) else "none" for each in found)
    return f"{median} ({low} to {high})"


@lru_cache
def _chances(passing: float, of_session: int) -> Floats:
    if of_session == 1:
        return np.array([1 - passing, passing])
    strength = 1 / LIKENESS - 1
    found: Floats = betabinom.pmf(np.arange(of_session + 1), of_session, passing * strength, (1 - passing) * strength)
    whole: Floats = found / found.sum()
    return whole
