"""Builds the metrics of a worker, and what sends them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.otel_environment import is_sent
from traceweir.streams.worker.telemetry.checkpoint_times import CheckpointTimes
from traceweir.streams.worker.telemetry.committed_work import CommittedWork
from traceweir.streams.worker.telemetry.measured import Measured, Point
from traceweir.streams.worker.telemetry.present_state import LoopLag, ObservedScoring, ObservedWorker, PresentState
from traceweir.streams.worker.telemetry.prometheus import exposition
from traceweir.streams.worker.telemetry.scoring_work import ScoringWork


def check_metrics(environment: Mapping[str, str]) -> None:
    """Checks the variables of OpenTelemetry before the worker starts.

    Raises:
        InvalidSettingsError: a variable has a value that is not supported, or the exporter is not installed.
    """
    if is_sent("METRICS", environment):
        from traceweir.streams.worker.telemetry.otlp import interval_s

        interval_s(environment)


class WorkerMetrics:
    """The metrics of a worker.

    Args:
        results: The name of the topic `results`.
    """

    def __init__(self, results: str) -> None:
        self._measured = Measured()
        self.work = CommittedWork(self._measured, results, utc_now)
        """Measures what checkpoints commit."""
        self.times = CheckpointTimes(self._measured)
        """Measures the checkpoints."""
        self._state: PresentState | None = None

    def services(
        self,
        worker: ObservedWorker,
        scoring: ObservedScoring | None,
        problems: Callable[[], Sequence[str]],
        config_problems: Callable[[], Sequence[str]] = tuple,
        challenger_problems: Callable[[], Sequence[str]] = tuple,
        clock_ahead_s: Callable[[], float | None] = lambda: None,
    ) -> list[Any]:
        """Returns the services that measure and send while the worker runs."""
        loop_lag = LoopLag()
        if scoring is not None:
            scoring.on_activity(ScoringWork(self._measured).record)
        self._state = PresentState(
            worker,
            scoring,
            problems,
            self.times.age_s,
            loop_lag.longest_s,
            config_problems,
            challenger_problems,
            clock_ahead_s,
        )
        if not is_sent("METRICS", os.environ):
            return [loop_lag]
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        from traceweir.streams.base.otel_environment import resource
        from traceweir.streams.worker.telemetry.otlp import MetricExport, interval_s

        return [loop_lag, MetricExport(OTLPMetricExporter(), self.points, resource(), interval_s(os.environ))]

    def points(self) -> Iterator[Point]:
        """Yields all metrics."""
        yield from self._measured.points()
        if self._state is not None:
            yield from self._state.points()

    def exposition(self) -> bytes:
        """Returns all metrics in the text format of Prometheus."""
        return exposition(self.points())
