"""Sends metrics over OTLP in intervals, from a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import Queue
from typing import Any

from mode import Service
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.service_tasks import intervals, service_task
from traceweir.streams.worker.telemetry.catalogue import Instrument
from traceweir.streams.worker.telemetry.measured import Distribution, Point

log = logging.getLogger(__name__)

DEFAULT_INTERVAL_S = 60.0
WARNING_INTERVAL_S = 60.0
CLOSE_TIMEOUT_S = 2.0
_SCOPE = InstrumentationScope("traceweir.streams")
_CUMULATIVE = AggregationTemporality.CUMULATIVE


def interval_s(environment: Mapping[str, str]) -> float:
    """Returns the seconds between two exports.

    Raises:
        InvalidSettingsError: `OTEL_METRIC_EXPORT_INTERVAL` is no number of milliseconds.
    """
    text = environment.get("OTEL_METRIC_EXPORT_INTERVAL", "")
    if not text:
        return DEFAULT_INTERVAL_S
    if not (text.isascii() and text.isdecimal() and 100 <= int(text) <= 86_400_000):
        raise InvalidSettingsError(
            f"OTEL_METRIC_EXPORT_INTERVAL={printable(text, 100)}: must be milliseconds, from 100 to 86400000"
        )
    return int(text) / 1000


class MetricExport(Service):  # type: ignore[misc]  # Faust's services are untyped
    """Sends metrics while the worker runs; an endpoint that does not answer costs one line a minute, and no work.

    The metrics are read in the event loop, which changes them, and sent from a thread, which can wait.

    Args:
        exporter: Sends metrics over OTLP.
        points: Returns the present metrics.
        resource: What the metrics say about this process.
        every_s: Seconds between two exports.
        kwargs: Arguments of the service.
    """

    def __init__(
        self,
        exporter: MetricExporter,
        points: Callable[[], Iterable[Point]],
        resource: Resource,
        every_s: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._exporter = exporter
        self._points = points
        self._resource = resource
        self._every_s = every_s
        self._start_ns = time.time_ns()
        self._waiting: Queue[MetricsData | None] = Queue()
        self._failures = 0
        self._warned_s = float("-inf")
        self._thread = threading.Thread(target=self._send_all, name="metrics", daemon=True)

    async def on_start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    async def on_stop(self) -> None:
        """Sends the last metrics, for 2 s at most: no worker ends late because a backend does not answer."""
        self._read()
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_TIMEOUT_S)

    @service_task("reads the metrics for OTLP")
    async def _read_in_intervals(self) -> None:
        async for _ in intervals(self, self._every_s):
            # Else the endpoint has not answered the last one yet.
            if self._waiting.empty():
                self._read()

    def _read(self) -> None:
        self._waiting.put(metrics_data(list(self._points()), self._resource, self._start_ns, time.time_ns()))

    def _send_all(self) -> None:
        while (found := self._waiting.get()) is not None:
            self._send(found)
        self._exporter.shutdown()

    def _send(self, found: MetricsData) -> None:
        try:
            result = self._exporter.export(found)
            problem = "" if result is MetricExportResult.SUCCESS else "the endpoint did not accept them"
        except Exception as error:  # noqa: BLE001  # an exporter can raise what its HTTP client raises
            problem = f"{type(error).__name__}: {printable(str(error), 200)}"
        if not problem:
            return
        self._failures += 1
        if time.monotonic() - self._warned_s >= WARNING_INTERVAL_S:
            self._warned_s = time.monotonic()
            log.warning(
                "metrics were not delivered over OTLP, %d times so far (%s); check OTEL_EXPORTER_OTLP_ENDPOINT, or set "
                "OTEL_METRICS_EXPORTER=none. Scoring goes on",
                self._failures,
                problem,
            )


def metrics_data(points: Iterable[Point], resource: Resource, start_ns: int, now_ns: int) -> MetricsData:
    """Returns points in the data model of OpenTelemetry's SDK.

    Args:
        points: The points.
        resource: What they say about this process.
        start_ns: Since when counters count, in nanoseconds since 1970.
        now_ns: The time of the points, in nanoseconds since 1970.
    """
    by_instrument: dict[Instrument, list[Point]] = defaultdict(list)
    for point in points:
        by_instrument[point.instrument].append(point)
    metrics = [
        Metric(each.name, each.meaning, each.unit, _data(each, found, start_ns, now_ns))
        for each, found in by_instrument.items()
    ]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(_SCOPE, metrics, "")], "")])


def _data(instrument: Instrument, points: Sequence[Point], start_ns: int, now_ns: int) -> Sum | Gauge | Histogram:
    names = instrument.attributes
    if instrument.kind == "histogram":
        found = [
            HistogramDataPoint(
                dict(zip(names, point.attributes, strict=True)), start_ns, now_ns, point.value.count, point.value.total,
                list(point.value.buckets), list(point.value.bounds), None, None,  # type: ignore[arg-type]  # optional in OTLP
            )
            for point in points
            if isinstance(point.value, Distribution)
        ]  # fmt: skip
        return Histogram(found, _CUMULATIVE)
    numbers = [
        NumberDataPoint(dict(zip(names, point.attributes, strict=True)), start_ns, now_ns, point.value)
        for point in points
        if not isinstance(point.value, Distribution)
    ]
    return Sum(numbers, _CUMULATIVE, is_monotonic=True) if instrument.kind == "counter" else Gauge(numbers)
