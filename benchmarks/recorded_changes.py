"""Plants changes in months of recorded sessions, and tabulates what the rule of alerts says, and when.

    python -m benchmarks.recorded_changes FILE

FILE is as that of `benchmarks.recorded`. A month is drawn from its sessions: each comes whole, with the verdicts of all
metrics, so that these depend on each other as they do in the recording. Equal seeds give equal tables.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.labelled import Labelled, read_labelled
from benchmarks.recorded import VARIABLE, VERDICTS, scored
from traceweir.schemas.alert import Alert
from traceweir.schemas.alert_rule import DEFAULT_ALERT_RULE
from traceweir.streams.base.statistics.intervals import Floats
from traceweir.streams.base.statistics.rate_intervals import exact_interval
from traceweir.streams.base.statistics.watched_stream import DAY
from traceweir.streams.tools.alerts.replay import replay
from traceweir.streams.tools.alerts.watched_scores import SortedScores, StreamName, WatchedScore

A_MINUTE = 1.0
"""Sessions a minute, on average."""
BEGIN = int(datetime(2026, 11, 2, tzinfo=UTC).timestamp()) // 60
CHANGE = 10 * DAY + 13 * 60
"""The minute of a month in which a change is planted."""
WATCHED_AFTER = 3 * DAY
"""Minutes that a change has to be found."""
CALM = 30 * DAY
RUNS = 4
BURST = 10
"""How many minutes one task lasts if tasks come in bursts."""
HEAD = (
    "| what is planted | metric, as a verdict | rate before and after | found | median minutes | onset in the interval | "
    "names the version |\n|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recorded sessions as numbers."""

    names: Sequence[str]
    """The metrics, in Markdown."""
    passed: NDArray[np.bool_]
    """By session and metric."""
    succeeded: NDArray[np.bool_]
    tasks: NDArray[np.intp]
    """The number of the task of each session."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A change, or none."""

    title: str
    chances: Floats
    """The probability of each session before the change; the sum is 1."""
    after: Floats | None = None
    """The same from the change on; None: nothing changes."""
    in_bursts: bool = False
    """Whether all sessions of some minutes are of one task."""


def calm(found: Recorded) -> list[Planted]:
    """Returns the cases without a change."""
    every = np.full(len(found.succeeded), 1 / len(found.succeeded))
    return [Planted("nothing", every), Planted("nothing; tasks come in bursts", every, in_bursts=True)]


def changes(found: Recorded) -> list[Planted]:
    """Returns the changes. A session that is replaced makes room for one of the others, with equal chances."""
    every = np.full(len(found.succeeded), 1 / len(found.succeeded))
    failed = _share_of(~found.succeeded)
    errors = _share_of(~found.passed[:, found.names.index("`no_tool_errors` >= 1")])
    half = (every + _replaced(every, found.succeeded, failed)) / 2
    return [
        Planted("a version that always fails", every, failed),
        Planted("a version that fails where half of the successes were", every, half),
        Planted("a tool that fails in a fifth of the sessions", every, 0.8 * every + 0.2 * errors),
    ]


def _share_of(chosen: NDArray[np.bool_]) -> Floats:
    found: Floats = chosen / chosen.sum()
    return found


def _replaced(chances: Floats, chosen: NDArray[np.bool_], others: Floats) -> Floats:
    found: Floats = np.where(chosen, 0.0, chances) + chances[chosen].sum() * others
    return found


def drawn(found: Recorded, planted: Planted, minutes: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Returns the sessions of a month: the minute, and the number of the recorded session, in order."""
    sessions: list[tuple[int, int]] = []
    for minute in range(minutes):
        is_after = planted.after is not None and minute >= CHANGE
        chances = planted.after if planted.after is not None and is_after else planted.chances
        if planted.in_bursts and minute % BURST == 0:
            task = found.tasks[random.choice(len(chances), p=chances)]
        if planted.in_bursts:
            chances = np.where(found.tasks == task, chances, 0.0)
            chances = chances / chances.sum()
        number = random.poisson(A_MINUTE)
        sessions += ((minute, int(each)) for each in random.choice(len(chances), number, p=chances))
    return sessions


def said(found: Recorded, planted: Planted, sessions: Sequence[tuple[int, int]]) -> Mapping[str, list[Alert]]:
    """Returns what the default rule says of each metric, with one stream each."""
    streams: dict[StreamName, list[WatchedScore]] = {StreamName(name, "session", ()): [] for name in found.names}
    for number, (minute, place) in enumerate(sessions):
        version = "2" if planted.after is not None and minute >= CHANGE else "1"
        suspects = (version, "gpt-4o", None, "1", "m", "d", None)
        for name, passed in zip(streams, found.passed[place].tolist(), strict=True):
            streams[name].append(WatchedScore(BEGIN + minute, f"s{number}", float(passed), suspects))
    alerts: dict[str, list[Alert]] = {name: [] for name in found.names}
    minutes = sorted({BEGIN + minute for minute, _ in sessions})
    for each in replay(SortedScores(streams, {}, minutes), DEFAULT_ALERT_RULE).alerts:
        alerts[each.stream.metric].append(each)
    return alerts


def recorded(sessions: Sequence[Labelled]) -> Recorded:
    """Returns the verdicts of the metrics that ask no model on sessions that have a reward, and all verdicts."""
    names: list[str] = []
    columns: list[NDArray[np.bool_]] = []
    kept = [each for each in sessions if each.succeeded is not None]
    for metric, options, by_question, threshold in VERDICTS:
        row = scored(kept, metric, options, by_question=by_question)
        passed = np.array([row.values.get(each.session_id, 0.0) >= threshold for each in kept])
        # Two metrics that agree on all sessions say the same, and would count twice.
        if len(row.values) == len(kept) and not any(np.array_equal(passed, each) for each in columns):
            names.append(f"{row} >= {threshold:g}")
            columns.append(passed)
    tasks = np.unique([each.task for each in kept], return_inverse=True)[1]
    return Recorded(names, np.array(columns).T, np.array([bool(each.succeeded) for each in kept]), tasks)


def tables(path: Path, runs: int = RUNS) -> str:
    """Returns the tables of a file, as Markdown.

    Args:
        path: The file.
        runs: How many months are drawn of each case.

    Raises:
        InputError: the file cannot be read.
    """
    found = recorded(read_labelled(path)[0])
    return "\n".join([*calm_rows(found, runs), "", *changed_rows(found, runs)]) + "\n"


def calm_rows(found: Recorded, runs: int) -> list[str]:
    """Returns the table of false alarms in months without a change."""
    rows = ["| what is planted | stream-months | false alarms |", "|---|---|---|"]
    for place, planted in enumerate(calm(found)):
        heard = [_heard(found, planted, CALM, (0, place, number)) for number in range(runs)]
        alarms = sum(len(alerts) for said_of in heard for alerts in said_of.values())
        rows.append(f"| {planted.title} | {runs * len(found.names)} | {alarms} |")
    return rows


def changed_rows(found: Recorded, runs: int) -> list[str]:
    """Returns the table of changes, with a last line about false alarms before them."""
    rows = [HEAD]
    false = 0
    change = datetime.fromtimestamp((BEGIN + CHANGE) * 60, UTC)
    for place, planted in enumerate(changes(found)):
        heard = [_heard(found, planted, CHANGE + WATCHED_AFTER, (1, place, number)) for number in range(runs)]
        false += sum(each.since < change for said_of in heard for alerts in said_of.values() for each in alerts)
        for column, name in enumerate(found.names):
            line = _line(found, planted, column, [said_of[name] for said_of in heard], change)
            rows.append(f"| {planted.title} | {line} |")
    return [*rows, "", f"False alarms before a change: {false}"]


def _heard(found: Recorded, planted: Planted, minutes: int, seed: tuple[int, int, int]) -> Mapping[str, list[Alert]]:
    return said(found, planted, drawn(found, planted, minutes, np.random.default_rng(seed)))


def _line(found: Recorded, planted: Planted, place: int, heard: Sequence[Sequence[Alert]], change: datetime) -> str:
    """Returns a row of the table without its first column."""
    assert planted.after is not None  # a calm month has no row
    before = float(planted.chances @ found.passed[:, place])
    after = float(planted.after @ found.passed[:, place])
    firsts = [first for alerts in heard if (first := next((each for each in alerts if each.since >= change), None))]
    cells = [found.names[place], f"{before:.3f}, {after:.3f}", f"{len(firsts)} of {len(heard)}"]
    if not firsts:
        return " | ".join([*cells, "none", "none", "none"])
    minutes = [(each.since - change).total_seconds() / 60 + 1 for each in firsts]
    inside = sum(each.onset.earliest <= change <= each.onset.latest for each in firsts)
    named = sum(any((one.field, one.value) == ("agent_version", "2") for one in each.suspects) for each in firsts)
    low, high = exact_interval(inside, len(firsts))
    cells += [
        f"{np.median(minutes):,.0f} ({min(minutes):,.0f} to {max(minutes):,.0f})",
        f"{inside} of {len(firsts)} ({low:.2f} to {high:.2f})",
        f"{named} of {len(firsts)}",
    ]
    return " | ".join(cells)


def run() -> None:
    """Prints the tables of the file that the environment names, or the reason why there are none."""
    if name := os.environ.get(VARIABLE):
        sys.stdout.write(tables(Path(name)))
    else:
        print(f"recorded-changes: skipped; set {VARIABLE} to a JSON file of recorded sessions")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded_changes", description=__doc__)
    parser.add_argument("file", type=Path, help="recorded sessions with their rewards and expected actions")
    sys.stdout.write(tables(parser.parse_args().file))
