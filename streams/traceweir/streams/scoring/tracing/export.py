"""Sends spans in batches, and says when they do not arrive."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from traceweir.schemas.text import printable
from traceweir.streams.base.otel_environment import resource
from traceweir.streams.scoring.tracing.sampling import share_of_environment
from traceweir.streams.scoring.tracing.session_spans import SessionSpans

log = logging.getLogger(__name__)

WARNING_INTERVAL_S = 60.0
CLOSE_TIMEOUT_S = 2.0


def session_spans(
    exporter: SpanExporter, environment: Mapping[str, str], *, delay_ms: int | None = None
) -> SessionSpans:
    """Returns what writes spans in batches to an exporter."""
    if environment.get("OTEL_BSP_SCHEDULE_DELAY"):
        delay_ms = None
    # The exporter logs each attempt; `_Reporting` says the same once a minute.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    return SessionSpans(share_of_environment(environment), SpanExport(exporter, delay_ms), resource())


class SpanExport:
    """Takes finished spans without waiting, and sends them in batches from a thread."""

    def __init__(self, exporter: SpanExporter, delay_ms: int | None) -> None:
        self._reporting = _Reporting(exporter)
        self._batches = BatchSpanProcessor(self._reporting, schedule_delay_millis=delay_ms)

    def on_end(self, span: ReadableSpan) -> None:
        """Takes a span. If 2,048 spans wait, the oldest one is lost (`OTEL_BSP_MAX_QUEUE_SIZE`)."""
        self._reporting.taken += 1
        self._batches.on_end(span)

    def close(self) -> None:
        """Sends what waits, for 2 s at most: no process ends late because a backend does not answer."""
        ending = threading.Thread(target=self._batches.shutdown, daemon=True)
        ending.start()
        ending.join(CLOSE_TIMEOUT_S)


class _Reporting(SpanExporter):
    """Counts what an exporter does not deliver, and says it once a minute."""

    def __init__(self, exporter: SpanExporter, clock: Callable[[], float] = monotonic) -> None:
        self._exporter = exporter
        self._clock = clock
        self._delivered = 0
        self._warned_s = float("-inf")
        self.taken = 0
        """Number of spans that the exporter should deliver."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends a batch."""
        try:
            result = self._exporter.export(spans)
            problem = "the endpoint did not accept them"
        except Exception as error:  # noqa: BLE001  # an exporter can raise what its HTTP client raises
            result = SpanExportResult.FAILURE
            problem = f"{type(error).__name__}: {printable(str(error), 200)}"
        if result is SpanExportResult.SUCCESS:
            self._delivered += len(spans)
        elif self._clock() - self._warned_s >= WARNING_INTERVAL_S:
            self._warned_s = self._clock()
            log.warning(
                "%d of %d spans were not delivered over OTLP so far (%s); check OTEL_EXPORTER_OTLP_ENDPOINT, or set "
                "OTEL_TRACES_EXPORTER=none. Scoring goes on",
                self.taken - self._delivered,
                self.taken,
                problem,
            )
        return result

    def shutdown(self) -> None:
        """Ends the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Waits until the exporter has sent what it holds."""
        return self._exporter.force_flush(timeout_millis)
