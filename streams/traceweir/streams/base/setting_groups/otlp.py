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
    """Topic with OTLP trace requests, which the stage `collect` reads: the name that the OpenTelemetry Collector's
    Kafka exporter writes to. The prefix is not added."""
    otlp_logs_topic: TopicName = DEFAULT_OTLP_LOGS
    """Topic with OTLP log requests, which the stage `collect` reads. The prefix is not added."""
    otlp_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address on which `traceweir otlp` receives OTLP. Any other address than one of this machine alone requires
    `TRACEWEIR_OTLP_TOKEN`. Use `0.0.0.0` in a container."""
    otlp_http_port: Annotated[int, Field(ge=0, le=65_535)] = 4318
    """Port of OTLP/HTTP. 0: any free port, which `traceweir otlp` prints."""
    otlp_grpc: Literal["auto", "on", "off"] = "auto"
    """Whether `traceweir otlp` serves OTLP/gRPC: `auto` if grpcio is installed (the extra `[grpc]`), `on` or `off`."""
    otlp_grpc_port: Annotated[int, Field(ge=0, le=65_535)] = 4317
    """Port of OTLP/gRPC. 0: any free port, which `traceweir otlp` prints with `--json`."""
    otlp_token: SecretStr | None = None
    """Secret that clients of `traceweir otlp` send as `Authorization: Bearer`: 16 characters or more, in ASCII and
    without spaces. Unset: no client needs one. Never printed."""
    otlp_max_request_bytes: Annotated[int, Field(ge=1_000, le=1_000_000_000)] = 20_000_000
    """Bytes of a request to `traceweir otlp`, as it arrives and decompressed. A larger one is refused. Requests that are
    larger than a Kafka record are split."""
    otlp_max_in_flight_bytes: Annotated[int, Field(ge=1_000)] = 100_000_000
    """Bytes of all requests that `traceweir otlp` reads or that Kafka has not acknowledged yet, at least those of one
    request. Further requests are refused with 429, and their clients send them again."""
    otlp_concurrency: Count = 200
    """Requests that `traceweir otlp` works on at the same time, 1 or more. Further ones are refused with 429."""
    otlp_read_timeout_s: Seconds = 10.0
    """Seconds in which a client of `traceweir otlp` must have sent a request."""
    otlp_write_timeout_s: Annotated[float, Field(gt=0, le=300)] = 5.0
    """Seconds in which Kafka must have acknowledged a request, up to 300. Then `traceweir otlp` answers 503, and the client
    sends the request again. OpenTelemetry's SDKs wait 10 s for an answer."""
    otlp_visibility: Visibility = "private"
    """Visibility of the traces that are made from spans: `private`, `org` or `network`. Only with `network` can the
    gate publish them."""
    trace_grace_s: Seconds = 5.0
    """Seconds from the root span of a trace, in record time, after which the trace becomes events. Spans of other
    processes can arrive after the root span."""
    trace_idle_s: Seconds = 60.0
    """Seconds without a span, in record time, after which a trace without a root span becomes events."""
    trace_max_spans: Count = 10_000
    """Number of spans and log records of a trace, 1 or more. Further ones are dropped and counted."""
    trace_max_bytes: Annotated[int, Field(ge=1_000)] = 16_000_000
    """Bytes of the spans and log records of a trace, 1,000 or more. Further ones are dropped and counted."""
    partition_max_traces: Count = 100_000
    """Number of traces of one partition that wait for spans, and number of published traces that it remembers for late
    spans, 1 or more. One more trace publishes, or forgets, the trace that is due first."""

    _is_token_safe_in_a_header = field_validator("otlp_token")(token_of_header)
