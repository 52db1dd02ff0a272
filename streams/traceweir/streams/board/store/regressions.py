"""Answers what got worse when something is known to have changed: a version, a config, a model or a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from traceweir.scorers.evaluation.description import description_of
from traceweir.streams.base.statistics.moments import Moments
from traceweir.streams.board.store.answers import Change, Regression, Regressions
from traceweir.streams.board.store.differences import DEPENDENT, Pair, Sample, TestedDifference, differences_of
from traceweir.streams.board.store.direction import direction_of_scorer
from traceweir.streams.board.store.figures import rollups_of
from traceweir.streams.board.store.selection import Readable, Selection, stored
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

SHOWN = 20
"""Maximum number of regressions of an answer."""
MAX_SPLITS = 12
"""Maximum number of times of changes, the latest ones."""
MAX_ROWS = 20_000
"""Maximum number of sums of one dimension; a dimension with more has too many values, and is left out."""
_SUMS = ("evaluated", "value_sum", "value_square_sum", "passed", "failed")
_Sums = Sequence[float]
_NOTHING: _Sums = (0.0,) * len(_SUMS)


class _Split(NamedTuple):
    """A time at which something changed."""

    at: datetime
    agent_name: str | None
    """The agent whose version changed; None: all agents are compared."""
    changes: tuple[Change, ...]


class _Slice(NamedTuple):
    """What is compared before and after a time: a metric at a level, of all results or of one value of a dimension."""

    metric: str
    level: str
    dimension: str
    """Empty for all results."""
    value: str


def regressions(store: Readable, selection: Selection, changes: Sequence[Change]) -> Regressions:
    """Returns which metrics and slices are worse after a change than before it, beyond chance; the surest one first.

    The results after a change up to the end of the span are compared with those before it, which begin a whole span earlier.
    After a new version of an agent, these are the results of this agent. P-values and intervals are corrected for all metrics,
    slices and times. Of the times after which a slice is worse, the one with the surest difference is returned.

    Args:
        store: The store.
        selection: The span and the dimensions.
        changes: What changed in the span, by time.

    Raises:
        StoreError: the store cannot answer.
    """
    times = _splits(changes)
    splits = times[-MAX_SPLITS:]
    since = _earlier(selection)
    if not splits:
        return Regressions(since=since, tested=0, found=[], found_left_out=0, times=0, times_left_out=0, left_out=[])
    sums: dict[_Slice, dict[str | None, list[_Sums]]] = {}
    left_out = []
    for name in ("", *RESULT_DIMENSIONS):
        rows = _rows(store, replace(selection, since=since), splits, name)
        if len(rows) > MAX_ROWS:
            left_out.append(name)
            continue
        for row in rows:
            slice_of_row = _Slice(row["metric"], row["level"], name, row["slice_value"])
            periods = sums.setdefault(slice_of_row, {}).setdefault(row["agent"], [_NOTHING] * (len(splits) + 1))
            periods[row["period"]] = [float(row[each]) for each in _SUMS]
    levels = _levels(sums)
    pairs = {
        (each, at): pair
        for each, by_agent in sums.items()
        # A metric that was stored between two queries has no level yet.
        if each.level == levels.get(each.metric)
        for at, split in enumerate(splits)
        if (pair := _pair(each.level, by_agent, split, at)) is not None
    }
    pairs = {key: pair for key, pair in pairs.items() if not _is_of_all(pairs, *key)}
    worse: dict[_Slice, tuple[int, TestedDifference]] = {}
    for (each, at), found in differences_of(pairs, simultaneous=True).items():
        is_surer = each not in worse or found.surely > worse[each][1].surely
        # The correction of intervals is stricter than that of p-values: a line whose interval has zero would contradict itself.
        if found.differs and found.surely and _is_worse(each.metric, found) and is_surer:
            worse[each] = at, found
    surest = sorted(worse, key=lambda each: (worse[each][1].p_value or 0.0, bool(each.dimension), each))
    return Regressions(
        since=since,
        tested=sum(pair.of is not None and pair.level != DEPENDENT for pair in pairs.values()),
        found=[_regression(each, splits[worse[each][0]], *_sides(pairs, each, worse[each])) for each in surest[:SHOWN]],
        found_left_out=max(0, len(surest) - SHOWN),
        times=len(splits),
        times_left_out=len(times) - len(splits),
        left_out=left_out,
    )


def _is_of_all(pairs: Mapping[tuple[_Slice, int], Pair], compared: _Slice, at: int) -> bool:
    """Returns whether a value of a dimension has all results that are compared, so that it would repeat their row."""
    whole = pairs.get((compared._replace(dimension="", value=""), at))
    if not compared.dimension or whole is None:
        return False
    own = pairs[compared, at]
    # The results of a value are a part of all results: if there are as many of them, they are the same.
    return (_number(own.first), _number(own.second)) == (_number(whole.first), _number(whole.second))


def _number(sample: Sample) -> tuple[int, int]:
    return sample.judged, sample.moments.number if sample.moments is not None else 0


def _sides(
    pairs: Mapping[tuple[_Slice, int], Pair], compared: _Slice, found: tuple[int, TestedDifference]
) -> tuple[Pair, TestedDifference]:
    return pairs[compared, found[0]], found[1]


def _splits(changes: Sequence[Change]) -> list[_Split]:
    """Returns the times, in their order; what changed at one time for all agents is one split."""
    found: dict[tuple[datetime, str | None], list[Change]] = {}
    for change in changes:
        found.setdefault((change.first_seen_at, change.agent_name), []).append(change)
    splits = [_Split(at, agent, tuple(each)) for (at, agent), each in found.items()]
    return sorted(splits, key=lambda split: (split.at, split.agent_name or ""))


def _earlier(selection: Selection) -> datetime:
    """Returns when the results before a change begin: a whole span before the span."""
    try:
        return selection.since - (selection.until - selection.since)
    except OverflowError:
        # It would begin before the year 1, when nothing was scored.
        return selection.since


def _rows(store: Readable, selection: Selection, splits: Sequence[_Split], name: str) -> list[dict[str, Any]]:
    """Returns the sums of each metric, level, agent, value of a dimension and period between two times."""
    source, where, parameters = rollups_of(selection, divided_at=[split.at for split in splits])
    period = " + ".join(f"CASE WHEN minute >= $split{at} THEN 1 ELSE 0 END" for at in range(len(splits)))
    times = {f"split{at}": stored(split.at) for at, split in enumerate(splits)}
    sums = ", ".join(f"sum({each}) AS {each}" for each in _SUMS)
    known = f"AND {name} IS NOT NULL " if name else ""
    return store.query(
        f"SELECT metric, level, agent_name AS agent, {name or repr('')} AS slice_value, {period} AS period, {sums} "
        f"FROM {source} AS every WHERE {where} {known}GROUP BY ALL HAVING sum(evaluated) > 0 LIMIT {MAX_ROWS + 1}",
        {**parameters, **times},
    )


def _levels(compared: Mapping[_Slice, Mapping[str | None, Sequence[_Sums]]]) -> dict[str, str]:
    """Returns the level of each metric that is compared: that of sessions, or else the one with most values."""
    values: dict[str, dict[str, float]] = {}
    for each, by_agent in compared.items():
        if not each.dimension:
            values.setdefault(each.metric, {})[each.level] = sum(_added(periods)[0] for periods in by_agent.values())
    return {
        metric: max(levels, key=lambda level: (level == "session", levels[level])) for metric, levels in values.items()
    }


def _pair(level: str, by_agent: Mapping[str | None, Sequence[_Sums]], split: _Split, at: int) -> Pair | None:
    """Returns the results before and after a time; None if the agent has none of them."""
    agents = by_agent if split.agent_name is None else {split.agent_name} & by_agent.keys()
    if not agents:
        return None
    before = _added([period for agent in agents for period in by_agent[agent][: at + 1]])
    after = _added([period for agent in agents for period in by_agent[agent][at + 1 :]])
    return Pair(level, _sample(before), _sample(after))


def _added(periods: Iterable[_Sums]) -> _Sums:
    return [sum(each) for each in zip(_NOTHING, *periods, strict=True)]


def _sample(sums: _Sums) -> Sample:
    evaluated, total, squares, passed, failed = sums
    moments = Moments.of_sums(int(evaluated), total, squares) if evaluated else None
    return Sample(int(passed), int(passed + failed), moments)


def _is_worse(metric: str, found: TestedDifference) -> bool:
    if found.of == "pass rate":
        return found.difference < 0
    direction = direction_of_scorer(metric)
    return found.difference < 0 if direction == "higher" else direction == "lower" and found.difference > 0


def _regression(compared: _Slice, split: _Split, pair: Pair, found: TestedDifference) -> Regression:
    before, after = (
        side.passed / side.judged if found.of == "pass rate" else side.moments.mean if side.moments is not None else 0.0
        for side in (pair.first, pair.second)
    )
    described = description_of(compared.metric)
    return Regression(
        metric=compared.metric,
        level=compared.level,
        dimension=compared.dimension or None,
        value=compared.value or None,
        at=split.at,
        agent_name=split.agent_name,
        changes=list(split.changes),
        of=found.of,
        unit=described.unit if described is not None else None,
        before=before,
        before_results=found.numbers[0],
        after=after,
        after_results=found.numbers[1],
        difference=found.difference,
        difference_low=found.low,
        difference_high=found.high,
        p_value=found.p_value,
    )
