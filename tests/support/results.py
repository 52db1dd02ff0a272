"""Builds scores, and writes them to the topic `results` of a broker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from confluent_kafka import Producer
from tests.support.scoring import NOW

from traceweir.schemas.score import Score, result_id
from traceweir.streams.base.stages.partitioner import partition_of


def make_score(
    session_id: str = "s", metric: str = "response_match_score", value: float | None = 0.5, **changes: Any
) -> Score:
    """Returns the score of a session, with the threshold 0.75."""
    status = "NOT_EVALUATED" if value is None else "PASSED" if value >= 0.75 else "FAILED"
    fields: dict[str, Any] = {
        "result_id": result_id(session_id, 0, "session", session_id, metric, "digest"),
        "revision": 0,
        "session_id": session_id,
        "segment": 0,
        "level": "session",
        "metric": metric,
        "value": value,
        "threshold": 0.75,
        "status": status,
        "not_evaluated_because": "missing_input" if value is None else None,
        "rationale": "words",
        "scorer_version": "1",
        "config_digest": "digest",
        "occurred_at": NOW,
        "evaluated_at": NOW,
        **changes,
    }
    return Score(**fields)


def put_scores(
    servers: str, scores: Sequence[Score | bytes], *, at: datetime = NOW, topic: str = "traceweir.results"
) -> None:
    """Writes scores as workers do, each to the partition of its session; bytes go to partition 0."""
    # The embedded broker keeps 5 MB of a partition, which are 80 s of a test under load without compression.
    producer = Producer({"bootstrap.servers": servers, "log_level": 0, "compression.type": "gzip"})
    for number, score in enumerate(scores):
        value, key = (score, b"forged") if isinstance(score, bytes) else (score.wire(), score.session_id.encode())
        partition = 0 if isinstance(score, bytes) else partition_of(key, 4)
        producer.produce(topic, value, key, partition, timestamp=int(at.timestamp() * 1000) + number)
    assert producer.flush(30) == 0
