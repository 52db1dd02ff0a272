"""Makes what writes spans, if the variables of OpenTelemetry switch traces on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from traceweir.streams.base.otel_environment import is_sent

if TYPE_CHECKING:
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans


def spans_of_environment(
    environment: Mapping[str, str] = os.environ, *, delay_ms: int | None = None
) -> SessionSpans | None:
    """Returns what writes spans as the variables `OTEL_*` say; None if they do not switch traces on.

    `delay_ms` takes the place of OpenTelemetry's 5 s that spans wait for others, unless a variable sets it.

    Raises:
        InvalidSettingsError: a variable has a value that is not supported, or the exporter is not installed.
    """
    if not is_sent("TRACES", environment):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    from traceweir.streams.scoring.tracing.export import session_spans

    return session_spans(OTLPSpanExporter(), environment, delay_ms=delay_ms)
