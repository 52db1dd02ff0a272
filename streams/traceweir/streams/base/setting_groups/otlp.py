"""Defines the settings of OpenTelemetry: topics, the endpoint `traceweir otlp`, and traces that become events."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from traceweir.schemas.trace import Visibility
from traceweir.streams.base.setting_groups.group import Count, Seconds, SettingGroup
from traceweir.streams.base.setting_groups.header_token import token_of_header
from traceweir.streams.base.topics import DEFAULT_OTLP_LOGS, DEFAULT_OTLP_SPANS

TopicName = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]


class OtlpSettings(SettingGroup):
    """Holds how spans come in, and when a trace becomes events."""

    otlp_spans_topic: TopicName = DEFAULT_OTLP_SPANS
    """Topic of OTLP trace requests for the stage `collect`, as the Collector's Kafka exporter names it; without the
    prefix."""
    otlp_logs_topic: TopicName = DEFAULT_OTLP_LOGS
    """Topic of OTLP log requests, likewise."""
    otlp_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address of `traceweir otlp`. Another than this machine's alone requires `TRACEWEIR_OTLP_TOKEN`. Use `0.0.0.0` in
    a container."""
    otlp_http_port: Annotated[int, Field(ge=0, le=65_535)] = 4318
    """Port of OTLP/HTTP. 0: any free port, which `traceweir otlp` prints."""
    otlp_grpc: Literal["auto", "on", "off"] = "auto"
    """Whether to serve OTLP/gRPC: `on`, `off`, or `auto`: if grpcio is installed (the extra `[grpc]`)."""
    otlp_grpc_port: Annotated[int, Field(ge=0, le=65_535)] = 4317
    """Port of OTLP/gRPC. 0: any free port, which `traceweir otlp` prints with `--json`."""
    otlp_token: SecretStr | None = None
    """Secret that clients send as `Authorization: Bearer`: 16 or more ASCII characters without spaces. Unset: none
    needed. Never printed."""
    otlp_max_request_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 20_000_000
    """Bytes of a request, as it arrives and decompressed; a larger one is refused. One larger than a Kafka record is
    split."""
    otlp_max_in_flight_bytes: Annotated[int, Field(ge=1_000)] = 100_000_000
    """Bytes of all requests in reading or not acknowledged by Kafka, at least one request. Further ones get 429, and
    their clients repeat them."""
    otlp_concurrency: Count = 200
    """Requests in work at the same time, 1 or more. Further ones get 429."""
    otlp_read_timeout_s: Seconds = 10.0
    """Seconds in which a client must have sent a request."""
    otlp_write_timeout_s: Annotated[float, Field(gt=0, le=300)] = 5.0
    """Seconds, up to 300, in which Kafka must acknowledge a request; else 503. OpenTelemetry's SDKs wait 10 s."""
    otlp_visibility: Visibility = "private"
    """Visibility of traces made from spans: `private`, `org` or `network`. The gate publishes only `network`."""
    trace_grace_s: Seconds = 5.0
    """Seconds from a trace's root span, in record time, after which the trace becomes events."""
    trace_idle_s: Seconds = 60.0
    """Seconds without a span, in record time, after which a trace without a root span becomes events."""
    trace_max_spans: Count = 10_000
    """Spans and log records of a trace, 1 or more. Further ones are dropped and counted."""
    trace_max_bytes: Annotated[int, Field(ge=1_000)] = 16_000_000
    """Their bytes, 1,000 or more, likewise."""
    partition_max_traces: Count = 100_000
    """Traces of a partition that wait for spans, and published ones remembered for late spans, 1 or more. One more
    publishes, or forgets, the one due first."""

    _is_token_safe_in_a_header = field_validator("otlp_token")(token_of_header)
