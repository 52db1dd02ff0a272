"""Computes what a deployment needs: cores, workers, memory, disks and bytes in Kafka, from measured figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.lab.sizing import figures
from traceweir.streams.lab.sizing.judging import JudgedCriterion
from traceweir.streams.lab.sizing.load import SessionLoad
from traceweir.streams.scoring.isolation.processes import why_one_process

DAY_S = 86_400
BUSY = 0.5
"""The share of a core that the main thread of a worker has at the peak; the rest is for a backlog after an outage."""
LEAST_WORKERS = 2
PARTITIONS_A_WORKER = 3
LEAST_PARTITIONS = 12
MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a deployment needs. Bytes are 10**6 for a megabyte; days are those of the load."""

    records_per_s: float
    """Mean of a day."""
    peak_records_per_s: float
    scores_per_session: float
    partitions: int
    workers: int
    cores: float
    """Of all workers with their scoring processes, as a mean of a day."""
    peak_cores: float
    broker_cores: float
    """Of the brokers together, at the peak, with one copy."""
    memory_mb: float
    """Of a worker and its scoring process, at the peak."""
    state_mb: float
    """Of all workers together: rows, in RocksDB."""
    restore_s: float
    """CPU to rebuild the state of one worker from the changelog, in seconds."""
    kafka_mb_per_day: dict[str, float]
    """Bytes that are written in a day, with one copy, by topic."""
    kafka_mb: float
    """Bytes that Kafka keeps, with all copies, after the longest retention."""
    store_mb: float
    """Of the dashboard's DuckDB file, after the time for which it keeps results."""


def needs_of(plan: Plan, load: SessionLoad, judged: Sequence[JudgedCriterion], settings: Settings) -> Needs:
    """Returns what a deployment needs for a load.

    Args:
        plan: The config.
        load: The load.
        judged: What its judges are asked.
        settings: The times and limits of the deployment.
    """
    per_s = load.sessions_per_day / DAY_S
    scores = _scores(plan, load)
    further = max(0.0, scores - figures.SCORES_OF_LOAD)
    main_us = (
        load.records * figures.ASSEMBLE.value
        + figures.GATE.value
        + further * figures.SCORE_OF_MAIN.value
        + load.spans * figures.SPAN.value
    )
    questions = sum(each.questions for each in judged) / load.sessions_per_day
    scoring_us = (
        figures.SCORING.value
        + further * (figures.SCORE.value - figures.SCORE_OF_MAIN.value)
        + questions * figures.QUESTION.value * 1e3
        + load.traces * load.embedding_ms * 1e3
    )
    cores = per_s * (main_us + scoring_us) / 1e6
    vectors = load.scopes * plan.gate.cache_size if load.dimensions else 0
    memory, state = _held(load, settings, per_s * load.peak, vectors)
    workers = max(
        LEAST_WORKERS,
        math.ceil(per_s * load.peak * main_us / 1e6 / BUSY),
        math.ceil(per_s * load.peak * scoring_us / 1e6 / _scoring_processes(plan, settings)),
        math.ceil(state / figures.WORKER_STATE.value),
    )
    light = workers * figures.LIGHT_WORKER.value
    partitions = max(LEAST_PARTITIONS, PARTITIONS_A_WORKER * workers)
    rocksdb = figures.ROCKSDB.value * math.ceil(partitions / workers)
    days = settings.topics.retention_days()
    written = _written(load, scores)
    topics = settings.topics
    kept_days = {
        "inputs": days[topics.invocations],
        "sessions": days[topics.sessions],
        "candidates": days[topics.candidates],
        "results": days[topics.results],
    }
    kept = sum(written[name] * number for name, number in kept_days.items()) + state * figures.CHANGELOG_KEPT.value
    return Needs(
        records_per_s=per_s * load.records,
        peak_records_per_s=per_s * load.peak * load.records,
        scores_per_session=scores,
        partitions=partitions,
        workers=workers,
        cores=cores + light,
        peak_cores=cores * load.peak + light,
        broker_cores=per_s * load.peak * load.records * figures.BROKER.value / 1e6
        + workers * figures.LIGHT_BROKER.value,
        memory_mb=figures.PROCESSES.value + rocksdb + memory / workers,
        state_mb=state,
        restore_s=state / workers / 1e3 * figures.RESTORE.value,
        kafka_mb_per_day=written,
        kafka_mb=kept * load.replication,
        store_mb=load.sessions_per_day * scores * figures.STORED.value * settings.store_results_days / MB,
    )


def _scores(plan: Plan, load: SessionLoad) -> float:
    """Returns the scores of a session: of each criterion for the session and each turn, and value and decision of traces."""
    criteria = sum(load.share_of(plan, metric) for metric in plan.metrics)
    return criteria * (1 + load.turns) + 2 * load.traces


def _scoring_processes(plan: Plan, settings: Settings) -> int:
    """Returns the scoring processes of a worker that has two cores."""
    return 1 if why_one_process(plan, settings.embedder) else settings.scoring_processes or 1


def _larger(load: SessionLoad) -> float:
    """Returns how many times as large as a session of the benchmarks a session is."""
    measured: int = SessionLoad._field_defaults["record_bytes"]
    return load.records / figures.RECORDS_OF_LOAD * max(1.0, load.record_bytes / measured)


def _held(load: SessionLoad, settings: Settings, per_s: float, vectors: int) -> tuple[float, float]:
    """Returns the memory and the rows of what all workers hold, in MB, at `per_s` sessions a second."""
    larger = _larger(load)
    opened = per_s * load.open_s
    graced = per_s * settings.grace_s
    guarded = per_s * settings.guard_s
    of_dimension = load.dimensions / SessionLoad._field_defaults["dimensions"]
    memory = (
        opened * figures.OPEN_MEMORY.value * larger
        + graced * figures.GRACE_MEMORY.value
        + guarded * figures.GUARD_MEMORY.value
        + vectors * figures.VECTOR_MEMORY.value * of_dimension
    )
    rows = (
        opened * figures.OPEN_ROWS.value * larger
        + graced * figures.GRACE_ROWS.value * larger
        + guarded * figures.GUARD_ROWS.value
        + vectors * figures.VECTOR_ROWS.value * of_dimension
    )
    return memory / MB, rows / MB


def _written(load: SessionLoad, scores: float) -> dict[str, float]:
    """Returns the MB that are written in a day, by topic."""
    values = load.records * load.record_bytes
    candidate = figures.CANDIDATE.value + load.dimensions * figures.VECTOR_BYTES
    a_session = {
        "inputs": values + load.records * figures.RECORD_OVERHEAD.value,
        "sessions": values * figures.SESSION_SHARE.value,
        "candidates": load.traces * candidate,
        "results": scores * figures.RESULT.value,
        "changelog": figures.CHANGELOG.value * _larger(load),
    }
    return {name: size * load.sessions_per_day / MB for name, size in a_session.items()}
