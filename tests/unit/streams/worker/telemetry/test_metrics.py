"""Metrics count what was committed, have bounded attributes, and are the same for Prometheus and over OTLP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka import TopicPartition
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.resources import Resource
from prometheus_client.parser import text_string_to_metric_families
from tests.support.metrics import samples
from tests.support.results import make_score

from traceweir.streams.base.stages.base import Output
from traceweir.streams.scoring.isolation.activity import EmbedderCall, ScoringActivity
from traceweir.streams.scoring.judges.model_calls import Attempt
from traceweir.streams.worker.telemetry import catalogue
from traceweir.streams.worker.telemetry.catalogue import CATALOGUE
from traceweir.streams.worker.telemetry.checkpoint_times import CheckpointTimes
from traceweir.streams.worker.telemetry.committed_work import CommittedWork
from traceweir.streams.worker.telemetry.measured import MAX_SERIES, Distribution, Measured
from traceweir.streams.worker.telemetry.otlp import metrics_data
from traceweir.streams.worker.telemetry.prometheus import exposition
from traceweir.streams.worker.telemetry.scoring_work import ScoringWork

NOW = datetime(2026, 1, 31, 12, 0, 10, tzinfo=UTC)
BUCKETS = "score_freshness_seconds_bucket"


def test_each_metric_has_a_name_of_its_own_that_prometheus_accepts() -> None:
    names = [instrument.prometheus_name for instrument in CATALOGUE]
    assert len(set(names)) == len(names) == len({instrument.name for instrument in CATALOGUE})
    declared = [family.name for family in text_string_to_metric_families(exposition([]).decode())]
    assert declared == [name.removesuffix("_total") for name in names]


def test_a_committed_checkpoint_counts_its_records_scores_and_cost() -> None:
    measured = Measured()
    work = CommittedWork(measured, "results", lambda: NOW)
    scores = [
        make_score("a", value=0.5, occurred_at=NOW - timedelta(seconds=2)),
        make_score("b", value=None, occurred_at=NOW - timedelta(seconds=40)),
        make_score(
            "c", "judged", 1.0, occurred_at=NOW, judge="one", cost={"input_tokens": 7, "output_tokens": 2, "usd": 0.25}
        ),
        make_score("d", "counted", 3.0, occurred_at=NOW, threshold=None),
    ]
    outputs = [Output("results", 0, b"k", score.wire()) for score in scores]
    counts = {"assemble.consumed": 5, "assemble.joined": 3, "assemble.dead_lettered.late": 2, "gate.rejected": 2}
    work.committed(
        {**counts, "gate.rejected.private": 2, "score.scores.PASSED": 9}, [*outputs, Output("network", 0, b"", None)]
    )

    found = samples(exposition(measured.points()))
    assert found["records_consumed_total", "assemble"] == 5
    assert found["stage_events_total", "assemble", "joined"] == 3
    assert found["dead_letters_total", "assemble", "late"] == 2
    assert found["gate_decisions_total", "rejected"] == found["gate_rejections_total", "private"] == 2
    assert found["records_produced_total", "results"] == 4
    assert found["scores_total", "response_match_score", "NOT_EVALUATED", "missing_input", ""] == 1
    assert found["scores_total", "judged", "PASSED", "", "one"] == 1
    assert found["scores_total", "counted", "INFORMATIONAL", "", ""] == 1
    assert found["score_value_sum", "judged"] == 1.0
    assert [found[BUCKETS, bound] for bound in ("0.1", "2.5", "30.0", "60.0", "+Inf")] == [2, 3, 3, 4, 4]
    assert found["judge_tokens_total", "input"] == 7
    assert found["judge_cost_usd_total",] == 0.25


def test_what_the_scoring_process_says_is_measured() -> None:
    measured = Measured()
    ScoringWork(measured).record(
        ScoringActivity(
            attempts=[
                Attempt("m", "answered", 0.2),
                Attempt("m", "answered", 3.0),
                Attempt("m", "refused", 0.01, "judge_refused"),
                Attempt("m", "unusable", 0.1, "judge_unparsable"),
                Attempt("other", "unusable", 0.1, "judge_unparsable"),
                Attempt("m", "unusable", 0.1, "judge_unparsable"),
            ],
            batches=[EmbedderCall(3, 0.02), EmbedderCall(64, 0.5)],
            texts_reused=5,
        )
    )

    found = samples(exposition(measured.points()))
    assert found["judge_request_duration_seconds_count", "m", "answered"] == 2
    assert found["judge_request_duration_seconds_sum", "m", "refused"] == 0.01
    assert {key[1:]: n for key, n in found.items() if key[0] == "judge_request_failures_total"} == {
        ("m", "judge_refused"): 1,
        ("m", "judge_unparsable"): 2,
        ("other", "judge_unparsable"): 1,
    }
    assert (found["embedder_texts_total", "model"], found["embedder_texts_total", "cache"]) == (67, 5)
    assert found["embedder_duration_seconds_sum",] == pytest.approx(0.52)
    assert [found["embedder_batch_bucket", bound] for bound in ("2.0", "4.0", "64.0")] == [0, 1, 2]


def test_hostile_and_countless_attributes_are_escaped_and_bounded() -> None:
    measured = Measured()
    measured.add(catalogue.PRODUCED, 1, 'a"}\n# HELP \x1b[31m' + "x" * 1_000)
    for number in range(2 * MAX_SERIES):
        measured.add(catalogue.PRODUCED, 1, f"topic-{number}")

    found = samples(exposition(measured.points()))
    assert len(found) == MAX_SERIES + 1
    assert found["records_produced_total", "other"] == MAX_SERIES + 1
    (hostile,) = [labels[1] for labels in found if labels[1].startswith('a"')]
    assert len(hostile) <= 120
    assert hostile.isprintable()


def test_a_value_on_a_bound_is_in_its_bucket() -> None:
    found = Distribution((0.0, 1.0))
    for value in (-1.0, 0.0, 0.5, 1.0, 2.0):
        found.add(value)
    assert (found.buckets, found.count, found.total) == ([2, 2, 1], 5, 2.5)


def test_metrics_over_otlp_are_those_of_prometheus() -> None:
    measured = Measured()
    measured.add(catalogue.RECORDS, 5, "score")
    measured.record(catalogue.CHECKPOINT_DURATION, 0.03)
    data = metrics_data(measured.points(), Resource({"service.name": "t"}), 1, 2)
    (metrics,) = [scope.metrics for each in encode_metrics(data).resource_metrics for scope in each.scope_metrics]

    counter, histogram = metrics
    (point,) = counter.sum.data_points
    assert (counter.name, counter.unit, counter.sum.is_monotonic) == ("traceweir.records.consumed", "{record}", True)
    assert (point.as_double or point.as_int, point.attributes[0].value.string_value) == (5, "score")
    (distribution,) = histogram.histogram.data_points
    assert (distribution.count, distribution.sum) == (1, 0.03)
    assert list(distribution.explicit_bounds) == list(catalogue.CHECKPOINT_DURATION.bounds)


PLACE = TopicPartition("changelog", 0)


class Sending:
    """A delivery whose clock advances while it sends, and that can fail."""

    def __init__(self, times: list[float], error: Exception | None = None) -> None:
        self.times, self.error = times, error

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(self, rows: Any, outputs: Any, offsets: Any, further: Any = None) -> dict[TopicPartition, int]:
        self.times[0] += 0.2
        if self.error is not None:
            raise self.error
        return {PLACE: 7}


async def test_a_checkpoint_is_timed_and_a_failure_is_counted() -> None:
    clock, measured = [10.0], Measured()
    times = CheckpointTimes(measured, lambda: clock[0])
    assert await times.timed(Sending(clock)).send({PLACE: []}, [], {}) == {PLACE: 7}
    with pytest.raises(ConnectionError):
        await times.timed(Sending(clock, ConnectionError())).send({}, [], {})

    found = samples(exposition(measured.points()))
    assert found["checkpoint_duration_seconds_count",] == 1
    assert found["checkpoint_duration_seconds_sum",] == pytest.approx(0.2)
    assert found["checkpoint_failures_total",] == 1
    assert times.age_s() == 0.0
