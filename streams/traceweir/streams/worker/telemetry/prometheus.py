"""Writes metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from traceweir.streams.worker.telemetry.catalogue import CATALOGUE, Instrument
from traceweir.streams.worker.telemetry.measured import Distribution, Point

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(points: Iterable[Point], instruments: Sequence[Instrument] = CATALOGUE) -> bytes:
    """Returns the points as Prometheus reads them; an instrument without a point is declared without a sample."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Points(list(points), instruments))
    return generate_latest(registry)


class _Points(Collector):
    def __init__(self, points: Sequence[Point], instruments: Sequence[Instrument]) -> None:
        self._points = points
        self._instruments = instruments

    def collect(self) -> Iterator[Metric]:
        for instrument in self._instruments:
            yield _family(instrument, [point for point in self._points if point.instrument is instrument])


def _family(instrument: Instrument, points: Sequence[Point]) -> Metric:
    name = instrument.prometheus_name
    labels = instrument.attributes
    if instrument.kind == "histogram":
        histogram = HistogramMetricFamily(name, instrument.meaning, labels=labels)
        for point in points:
            if isinstance(point.value, Distribution):
                histogram.add_metric(point.attributes, _buckets(point.value), point.value.total)
        return histogram
    family = (CounterMetricFamily if instrument.kind == "counter" else GaugeMetricFamily)(
        name, instrument.meaning, labels=labels
    )
    for point in points:
        if not isinstance(point.value, Distribution):
            family.add_metric(point.attributes, point.value)
    return family


def _buckets(found: Distribution) -> list[tuple[str, float]]:
    """Returns the number of values up to each bound, as Prometheus adds buckets up."""
    total = 0
    buckets = list[tuple[str, float]]()
    for bound, number in zip([*map(str, found.bounds), "+Inf"], found.buckets, strict=True):
        total += number
        buckets.append((bound, total))
    return buckets
