"""Answers the median and the 95th percentile of the values that no threshold judges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from traceweir.schemas.score import INFORMATIONAL
from traceweir.streams.base.statistics.rounded_values import DIGITS, LARGEST, MEDIAN, P95, rounded
from traceweir.streams.board.store.figures import Place
from traceweir.streams.board.store.selection import Readable, Selection


def rounded_sql(value: str) -> str:
    """Returns SQL that rounds a value to four digits. The database counts rounded values, so that its memory is bounded."""
    # The place of the last digit; a value nearer to 0 than 1e-290 becomes 0.
    step = f"power(10.0, floor(ln(greatest(abs({value}), 1e-290)) / ln(10.0)) - {DIGITS - 1})"
    return f"least(greatest(floor({value} / {step} + 0.5) * {step}, -{LARGEST}), {LARGEST})"


class Quantiles(NamedTuple):
    """Quantiles of values, rounded to four digits."""

    median: float
    p95: float


def quantiles_by_place(store: Readable, selection: Selection) -> Mapping[Place, Quantiles]:
    """Returns the quantiles of each metric and level that has values without a threshold. Removed results have no part.

    Raises:
        StoreError: the store cannot answer.
    """
    where, parameters = selection.where("occurred_at")
    first, second = (f"min(rounded) FILTER (upto >= {share} * total)" for share in (MEDIAN, P95))
    rows = store.query(
        f"SELECT metric, level, {first} AS median, {second} AS p95 FROM ("
        "SELECT metric, level, rounded, sum(n) OVER (PARTITION BY metric, level ORDER BY rounded) AS upto, "
        "sum(n) OVER (PARTITION BY metric, level) AS total FROM ("
        "SELECT metric, level, rounded, count(*) AS n FROM ("
        f"SELECT metric, level, {rounded_sql('value')} AS rounded FROM results "
        f"WHERE status = '{INFORMATIONAL}' AND {where}) AS digits "
        "GROUP BY metric, level, rounded) AS counted) AS ranked GROUP BY metric, level",
        parameters,
    )
    return {(row["metric"], row["level"]): Quantiles(rounded(row["median"]), rounded(row["p95"])) for row in rows}
