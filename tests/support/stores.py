"""Builds records of the output topics, and reads what a store has made of them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.results import make_score
from tests.support.scoring import NOW

from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.streams.board.store.duckdb_store import DuckDBStore
from traceweir.streams.board.store.opening import Store
from traceweir.streams.board.store.rollups import FIGURES, ROLLUP_COLUMNS
from traceweir.streams.board.store.rows import Batch, RowReader, SourcePartition
from traceweir.streams.board.store.tables import CHANGES, REASONS, RESULT_DIMENSIONS, TableName

OpenStore = Callable[..., Store]
"""Opens a store: takes, optionally, who opens it and when."""

CLICKHOUSE = (
    pytest.mark.clickhouse,
    pytest.mark.skipif(find_spec("chdb") is None, reason="chdb is not installed; `make test-clickhouse` installs it"),
)
"""The marks of a test that needs the ClickHouse engine in this process."""

TOPICS: dict[str, TableName] = {
    "results": "results",
    "sessions": "sessions",
    "network": "network",
    "dead-letters": "dead_letters",
    "labels": "labels",
    "alerts": "alerts",
}


LATER = NOW + timedelta(days=365)
"""When records are read, so that their own times alone say what is ahead."""


@dataclass(frozen=True)
class FakeRecord:
    """A record of Kafka."""

    value: bytes | None
    offset: int = 0
    key: bytes | None = b"key"
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int = 0
    timestamp: int = int(NOW.timestamp() * 1000)


def open_store(file: Path, holder: str = "this test", opened_at: datetime = NOW) -> DuckDBStore:
    """Opens a store in a file."""
    return DuckDBStore(file, holder, opened_at)


@contextmanager
def chdb_database() -> Iterator[str]:
    """Yields the address of an empty database of the ClickHouse engine in this process, within the block."""
    import clickhouse_connect

    name = f"test_{secrets.token_hex(6)}"
    client = clickhouse_connect.get_client(dsn="chdb://memory")
    client.command(f"CREATE DATABASE {name}")
    try:
        yield f"chdb://memory/{name}"
    finally:
        client.command(f"DROP DATABASE {name}")
        client.close()


def batch_of(topic: str, *records: FakeRecord) -> Batch:
    """Returns the batch that a feed makes of records of one topic and partition."""
    batch = Batch()
    RowReader(TOPICS, now=lambda: LATER).add(batch, topic, records)
    if records:
        batch.offsets[SourcePartition(topic, records[0].partition)] = records[-1].offset + 1
    return batch


def send_labels(store: Store, *labels: Label) -> None:
    """Stores labels, at consecutive offsets of partition 0."""
    records = (FakeRecord(each.wire(), number, each.label_id.encode()) for number, each in enumerate(labels))
    store.write(batch_of("labels", *records))


def scores_batch(*scores: Score, offset: int = 0) -> Batch:
    """Returns a batch of scores, at consecutive offsets of partition 0."""
    records = (FakeRecord(score.wire(), offset + number) for number, score in enumerate(scores))
    return batch_of("results", *records)


def every_change() -> dict[str, Any]:
    """Returns the cells of a result that is the first one of each kind."""
    return {kind: f"a-new-{kind}" for kind in CHANGES}


def without_a_threshold() -> list[Score]:
    """Returns scores without a threshold: now, and a day ago; of metrics that accept none, and of a judge's ratings."""
    return [
        make_score(name, metric, 0.9, threshold=None, config_digest="auto", occurred_at=NOW - timedelta(days=days))
        for name, metric, days in (
            ("a", "token_usage_v1", 0),
            ("b", "token_usage_v1", 1),
            ("c", "response_match_score", 0),
            ("d", "response_match_score", 1),
        )
    ]


def figures(store: Store) -> list[dict[str, Any]]:
    """Returns the figures per minute and group, added up, without the groups in which all changes cancel out."""
    groups = [name for name in ROLLUP_COLUMNS if name not in FIGURES]
    sums = ", ".join(f"round(sum({name}), 6) AS {name}" for name in FIGURES)
    return store.query(
        f"SELECT {', '.join(groups)}, {sums} FROM (FROM rollups UNION ALL FROM rollup_changes) "
        "GROUP BY ALL HAVING sum(n) <> 0 ORDER BY ALL"
    )


def recomputed_figures(store: Store) -> list[dict[str, Any]]:
    """Returns the figures that the rows in `results` give, and what they and the replaced ones have cost, computed by SQL."""
    reasons = ", ".join(
        f"count(*) FILTER (counts AND not_evaluated_because = '{reason}') AS {reason}" for reason in REASONS
    )
    columns = ", ".join(
        (
            *("occurred_at", "metric", "level", "config_digest", "scorer_version", *RESULT_DIMENSIONS),
            *("value", "status", "not_evaluated_because", "cost_input_tokens", "cost_output_tokens", "cost_usd"),
        )
    )
    return store.query(
        f"""
        SELECT date_trunc('minute', occurred_at) AS minute, metric, level, config_digest, scorer_version,
        {", ".join(RESULT_DIMENSIONS)}, count(*) FILTER (counts) AS n, count(value) FILTER (counts) AS evaluated,
        round(coalesce(sum(value) FILTER (counts), 0), 6) AS value_sum,
        round(coalesce(sum(value * value) FILTER (counts), 0), 6) AS value_square_sum,
        count(*) FILTER (counts AND status = 'PASSED') AS passed,
        count(*) FILTER (counts AND status = 'FAILED') AS failed, {reasons},
        CAST(sum(cost_input_tokens) AS DOUBLE) AS input_tokens,
        CAST(sum(cost_output_tokens) AS DOUBLE) AS output_tokens, round(sum(cost_usd), 6) AS usd
        FROM (SELECT {columns}, true AS counts FROM results UNION ALL SELECT {columns}, false FROM replaced_results) AS found
        GROUP BY ALL HAVING count(*) FILTER (counts) > 0 ORDER BY ALL
        """
    )
