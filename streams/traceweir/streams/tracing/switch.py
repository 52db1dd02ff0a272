"""Reads from the variables of OpenTelemetry whether traces are on. Imports nothing of its SDK, which needs time to load."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from traceweir.schemas.text import printable
from traceweir.streams.settings import InvalidSettingsError

if TYPE_CHECKING:
    from traceweir.streams.tracing.session_spans import SessionSpans

_SUPPORTED_PROTOCOL = "http/protobuf"


def spans_of_environment(
    environment: Mapping[str, str] = os.environ, *, delay_ms: int | None = None
) -> SessionSpans | None:
    """Returns what writes spans as the variables `OTEL_*` say; None if they do not switch traces on.

    `delay_ms` takes the place of OpenTelemetry's 5 s that spans wait for others, unless a variable sets it.

    Traces are on with `OTEL_TRACES_EXPORTER=otlp`, and without this variable if there is an endpoint for traces.

    Raises:
        InvalidSettingsError: a variable has a value that is not supported, or the exporter is not installed.
    """
    if not traces_are_on(environment):
        return None
    if importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise InvalidSettingsError(
            "the variables OTEL_* switch traces on, but the exporter is not installed: pip install '.[otel]', or set "
            "OTEL_TRACES_EXPORTER=none"
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    from traceweir.streams.tracing.export import session_spans

    return session_spans(OTLPSpanExporter(), environment, delay_ms=delay_ms)


def traces_are_on(environment: Mapping[str, str]) -> bool:
    """Returns whether the variables `OTEL_*` switch traces on.

    >>> traces_are_on({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    True
    >>> traces_are_on({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"})
    False

    Raises:
        InvalidSettingsError: the exporter or the protocol is not supported.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    endpoint = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    exporter = environment.get("OTEL_TRACES_EXPORTER") or ("otlp" if endpoint else "none")
    if exporter not in ("otlp", "none"):
        raise InvalidSettingsError(
            f"OTEL_TRACES_EXPORTER={printable(exporter, 100)}: the exporters are otlp and none; an OpenTelemetry Collector "
            "translates OTLP into other formats"
        )
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(name)
        if protocol and exporter == "otlp" and protocol != _SUPPORTED_PROTOCOL:
            raise InvalidSettingsError(
                f"{name}={printable(protocol, 100)}: a worker sends its traces as {_SUPPORTED_PROTOCOL}, usually to port "
                "4318; set this protocol, or OTEL_TRACES_EXPORTER=none"
            )
    return exporter == "otlp"
