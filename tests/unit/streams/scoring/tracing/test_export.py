"""Spans leave in batches; an endpoint that does not accept them costs one line a minute, and no work."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from traceweir.streams.scoring.tracing.export import session_spans
from traceweir.streams.scoring.tracing.session_spans import SessionSpans, assembled

EACH = {"OTEL_TRACES_SAMPLER": "always_on"}


class Refusing(SpanExporter):
    """An exporter whose endpoint refuses each batch, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.batches = error, 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.batches += 1
        if self.error is not None:
            raise self.error
        return SpanExportResult.FAILURE


def write(spans: SessionSpans, *names: str) -> None:
    for name in names:
        spans.write("assemble", assembled(name, 0, 0), None, 0)


def test_closing_sends_what_waits() -> None:
    exporter = InMemorySpanExporter()
    spans = session_spans(exporter, EACH)
    write(spans, "a", "b")
    spans.receiver.close()

    sent = exporter.get_finished_spans()
    assert [span.attributes and span.attributes["gen_ai.conversation.id"] for span in sent] == ["a", "b"]
    assert {span.resource.attributes["service.name"] for span in sent} == {"traceweir"}


def test_a_service_name_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "scoring-eu")
    spans = session_spans(InMemorySpanExporter(), EACH)
    assert spans.resource.attributes["service.name"] == "scoring-eu"
    spans.receiver.close()


@pytest.mark.parametrize("error", [None, ConnectionError("no\nroute")])
def test_batches_that_are_not_accepted_are_one_warning(
    error: Exception | None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    exporter = Refusing(error)
    spans = session_spans(exporter, EACH)
    with caplog.at_level(logging.WARNING):
        write(spans, "a", "b", "c")
        spans.receiver.close()

    assert exporter.batches == 3
    (line,) = [each.getMessage() for each in caplog.records if each.name.startswith("traceweir")]
    assert "spans were not delivered over OTLP so far" in line
    assert "\n" not in line
