"""Defines the two signals of OTLP that the endpoint receives, and how each is called on the wire."""

from __future__ import annotations

from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from traceweir.streams.intake.otlp.json_requests import Signal


class SignalNames(NamedTuple):
    """The names of a signal."""

    signal: Signal
    path: str
    """The path of OTLP/HTTP."""
    service: str
    """The service of OTLP/gRPC, whose only method is `Export`."""
    response: Any
    """The class of the response."""
    rejected: str
    """The field of a partial success that counts what was rejected."""


SIGNALS = (
    SignalNames(
        "spans",
        "/v1/traces",
        "opentelemetry.proto.collector.trace.v1.TraceService",
        ExportTraceServiceResponse,
        "rejected_spans",
    ),
    SignalNames(
        "logs",
        "/v1/logs",
        "opentelemetry.proto.collector.logs.v1.LogsService",
        ExportLogsServiceResponse,
        "rejected_log_records",
    ),
)


def response_of(names: SignalNames, rejected: int, problem: str) -> Any:
    """Returns the response of a request that was accepted, in full or in part."""
    response = names.response()
    if rejected:
        setattr(response.partial_success, names.rejected, rejected)
        response.partial_success.error_message = problem
    return response
