"""Answers where quality stands in a span of time, from the figures per minute."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from traceweir.schemas.judge_config import Budget
from traceweir.schemas.score import GATE
from traceweir.scorers.evaluation.description import description_of
from traceweir.streams.base.statistics.rounded_values import rounded
from traceweir.streams.board.store.answers import (
    Change,
    Coverage,
    DayCost,
    Freshness,
    JudgedFigures,
    MetricFigures,
    Overview,
    SeriesPoint,
)
from traceweir.streams.board.store.figures import Place, judged_figures_of, rollups_of, rows_by_place
from traceweir.streams.board.store.missing_answers import JudgeSpending
from traceweir.streams.board.store.quantiles import quantiles_by_place, rounded_sql
from traceweir.streams.board.store.regressions import regressions
from traceweir.streams.board.store.selection import Readable, Selection, in_utc, stored
from traceweir.streams.board.store.tables import RESULT_DIMENSIONS

MAX_POINTS = 120
"""Maximum number of steps of a series."""
_STEPS_S = (60, 300, 900, 3_600, 21_600, 86_400, 604_800, 2_592_000)
_CHANGE_COLUMNS = f"metric, config_digest, {', '.join(RESULT_DIMENSIONS)}"


def overview(store: Readable, selection: Selection) -> Overview:
    """Returns the figures of all metrics in a span of time.

    Raises:
        StoreError: the store cannot answer.
    """
    step_s = step_of((selection.until - selection.since).total_seconds())
    changes = changes_in(store, selection)
    return Overview(
        since=selection.since,
        until=selection.until,
        step_s=step_s,
        metrics=figures_with_quantiles(store, selection),
        series=series_of(store, selection, step_s),
        changes=changes,
        regressions=regressions(store, selection, changes),
        coverage=_coverage(store, selection),
        freshness=_freshness(store, selection),
        costs=costs_by_day(store, selection),
    )


def step_of(span_s: float) -> int:
    """Returns the shortest step, in seconds, with which a span has at most `MAX_POINTS` steps.

    >>> step_of(3600), step_of(24 * 3600), step_of(30 * 24 * 3600)
    (60, 900, 21600)
    """
    return next((step for step in _STEPS_S if span_s / step <= MAX_POINTS), math.ceil(span_s / MAX_POINTS))


def figures_by_metric(store: Readable, selection: Selection) -> list[MetricFigures]:
    """Returns the figures of each metric and level without quantiles, which alone need the results themselves."""
    return [_metric_figures(place, judged_figures_of(rows)) for place, rows in rows_by_place(store, selection).items()]


def figures_with_quantiles(store: Readable, selection: Selection) -> list[MetricFigures]:
    """Returns the figures of each metric and level, with the quantiles of values without a threshold."""
    quantiles = quantiles_by_place(store, selection)
    return [
        each.model_copy(update=found._asdict())
        if (found := quantiles.get((each.metric, each.level))) is not None
        else each
        for each in figures_by_metric(store, selection)
    ]


def series_of(store: Readable, selection: Selection, step_s: int) -> list[SeriesPoint]:
    """Returns the figures of each metric and level in each step of time; a step without results is left out."""
    source, where, parameters = rollups_of(selection, step_s)
    rows = store.query(
        f"SELECT make_timestamp((epoch_us(minute) // {step_s * 1_000_000}) * {step_s * 1_000_000}) AS begins_at, metric, "
        f"level, sum(n) AS n, sum(evaluated) AS evaluated, sum(passed) AS passed, sum(failed) AS failed, sum(value_sum) AS value_sum "
        f"FROM {source} WHERE {where} GROUP BY ALL HAVING sum(n) > 0 ORDER BY begins_at, metric, level",
        parameters,
    )
    return [
        SeriesPoint(
            begins_at=in_utc(row["begins_at"]),
            metric=row["metric"],
            level=row["level"],
            results=int(row["n"]),
            evaluated=int(row["evaluated"]),
            passed=int(row["passed"]),
            failed=int(row["failed"]),
            mean=row["value_sum"] / int(row["evaluated"]) if row["evaluated"] else None,
        )
        for row in rows
    ]


def changes_in(store: Readable, selection: Selection) -> list[Change]:
    """Returns the agent versions, configs, models and judges whose first results are in the span, by time."""
    where, parameters = selection.where("minute")
    # The first results of a version can be older than the span: then the span has no change to it.
    by_value = " OR ".join(
        f"(kind = '{kind}' AND value IN (SELECT {kind} FROM hours WHERE {kind} IS NOT NULL))"
        for kind in ("config_digest", "model", "judge")
    )
    rows = store.query(
        f"""
        WITH hours AS (
        SELECT DISTINCT agent_name, agent_version, config_digest, model, judge FROM (
        SELECT minute, n, {_CHANGE_COLUMNS} FROM rollup_hours UNION ALL SELECT minute, n, {_CHANGE_COLUMNS} FROM rollup_changes
        ) AS figures WHERE n > 0 AND {where}),
        firsts AS (
        SELECT kind, value, agent_name, min(minute) AS first_seen_at FROM first_results GROUP BY kind, value, agent_name)
        SELECT kind, value, agent_name, first_seen_at FROM firsts
        WHERE first_seen_at >= $since AND first_seen_at < $until AND (
        (kind = 'agent_version' AND (value, coalesce(agent_name, '')) IN (
        SELECT agent_version, coalesce(agent_name, '') FROM hours WHERE agent_version IS NOT NULL))
        OR {by_value})
        """,
        parameters,
    )
    found = [Change(**row | {"first_seen_at": in_utc(row["first_seen_at"])}) for row in rows]
    return sorted(found, key=lambda change: (change.first_seen_at, change.kind, change.value))


def _metric_figures(place: Place, figures: JudgedFigures) -> MetricFigures:
    metric, level = place
    described = description_of(metric)
    return MetricFigures(
        metric=metric,
        level=level,
        direction=described.direction if described is not None else None,
        unit=described.unit if described is not None else None,
        **figures.model_dump(),
    )


def closed_sessions_before(store: Readable, before: Selection) -> int | None:
    """Returns the number of sessions (segments) that closed in a span; None if the store does not have the whole span.

    The store has a whole span if it has a session that is older.
    """
    where, parameters = before.where("last_record_at", of_results=False)
    older = store.query(
        "SELECT 1 AS n FROM sessions WHERE last_record_at < $since LIMIT 1", {"since": stored(before.since)}
    )
    if not older:
        return None
    (found,) = store.query(f"SELECT count(*) AS n FROM sessions WHERE {where}", parameters)
    return int(found["n"])


def judge_spending(store: Readable, now: datetime, budget: Budget | None) -> JudgeSpending:
    """Returns what judges were paid on the present day in UTC, for all agents, and the daily limits of a budget.

    A day begins when the budget of workers does. A verdict from the cache was not paid; what a replaced result cost was.

    Raises:
        StoreError: the store cannot answer.
    """
    since = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    until = since + timedelta(days=1)
    (row,) = store.query(
        "SELECT coalesce(sum(tokens), 0) AS tokens, coalesce(sum(usd), 0) AS usd FROM judge_costs "
        "WHERE evaluated_at >= $since AND evaluated_at < $until",
        {"since": stored(since), "until": stored(until)},
    )
    tokens = int(row["tokens"])
    usd = float(row["usd"])
    most_tokens = budget.tokens_per_day if budget is not None else None
    most_usd = budget.usd_per_day if budget is not None else None
    return JudgeSpending(
        since=since,
        until=until,
        tokens=tokens,
        usd=usd,
        tokens_per_day=most_tokens,
        usd_per_day=most_usd,
        tokens_left=max(0, most_tokens - tokens) if most_tokens is not None else None,
        usd_left=max(0.0, most_usd - usd) if most_usd is not None else None,
    )


def _coverage(store: Readable, selection: Selection) -> Coverage:
    source, where, parameters = rollups_of(selection, of_results=False)
    (gate,) = store.query(
        f"SELECT coalesce(sum(passed), 0) AS accepted, coalesce(sum(failed), 0) AS rejected FROM {source} "
        f"WHERE metric = '{GATE}' AND {where}",
        parameters,
    )
    where, parameters = selection.where("minute", of_results=False)
    reasons = store.query(
        "SELECT reason, rejected AS n FROM (SELECT reason, sum(n) AS rejected FROM "
        "(SELECT * FROM rejections UNION ALL SELECT * FROM rejection_changes) AS found "
        f"WHERE {where} GROUP BY reason) AS sums WHERE rejected > 0 ORDER BY n DESC, reason",
        parameters,
    )
    dead_letter_rows = store.query(
        "SELECT reason, count(*) AS n FROM dead_letters WHERE written_at >= $since AND written_at < $until "
        "GROUP BY reason ORDER BY n DESC, reason",
        selection.span,
    )
    where, parameters = selection.where("last_record_at", of_results=False)
    (closed,) = store.query(
        f"SELECT count(*) AS n, sum(events + traces) AS records FROM sessions WHERE {where}", parameters
    )
    return Coverage(
        sessions=int(closed["n"]),
        records=int(closed["records"]) if closed["n"] else None,
        accepted=int(gate["accepted"]),
        rejected=int(gate["rejected"]),
        rejected_because=_counts(reasons),
        dead_letters=_counts(dead_letter_rows),
    )


def _freshness(store: Readable, selection: Selection) -> Freshness:
    where, parameters = selection.where("occurred_at")
    # A later revision or attempt waited for late events, or for a judge.
    seconds = "(epoch_us(evaluated_at) - epoch_us(occurred_at)) / 1000000.0"
    shares = {"p50_s": 0.5, "p95_s": 0.95, "p99_s": 0.99}
    columns = ", ".join(f"min(seconds) FILTER (upto >= {share} * total) AS {name}" for name, share in shares.items())
    (row,) = store.query(
        f"SELECT {columns} FROM (SELECT seconds, sum(n) OVER (ORDER BY seconds) AS upto, sum(n) OVER () AS total FROM ("
        f"SELECT seconds, count(*) AS n FROM (SELECT {rounded_sql(seconds)} AS seconds FROM results "
        f"WHERE {where} AND revision = 0 AND attempt = 0) AS lags GROUP BY seconds) AS counted) AS ranked",
        parameters,
    )
    return Freshness(**{name: rounded(row[name]) if row[name] is not None else None for name in shares})


def costs_by_day(store: Readable, selection: Selection) -> list[DayCost]:
    """Returns what the judges of each metric were paid on each day in UTC, replaced results included.

    Raises:
        StoreError: the store cannot answer.
    """
    day = 86_400
    source, where, parameters = rollups_of(selection, day)
    rows = store.query(
        f"SELECT make_timestamp((epoch_us(minute) // {day * 1_000_000}) * {day * 1_000_000}) AS begins_at, metric, "
        f"sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(usd) AS usd FROM {source} AS every "
        f"WHERE {where} GROUP BY ALL HAVING sum(input_tokens) + sum(output_tokens) + sum(usd) > 0 ORDER BY begins_at, metric",
        parameters,
    )
    return [
        DayCost(
            begins_at=in_utc(row["begins_at"]),
            metric=row["metric"],
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
            usd=row["usd"],
        )
        for row in rows
    ]


def _counts(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    return {row["reason"]: int(row["n"]) for row in rows}
