"""OpenTelemetry's variables switch traces on, or are refused with the way out."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.otel_environment import is_sent
from traceweir.streams.scoring.tracing.switch import spans_of_environment

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("environment", "on"),
    [
        ({}, False),
        (ENDPOINT, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (ENDPOINT | {"OTEL_TRACES_EXPORTER": ""}, True),
        (ENDPOINT | {"OTEL_SDK_DISABLED": "True"}, False),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
    ],
)
def test_an_endpoint_or_an_exporter_switches_traces_on(environment: Mapping[str, str], on: bool) -> None:
    assert is_sent("TRACES", environment) is on


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin\n"}, r"OTEL_TRACES_EXPORTER=zipkin\n: the exporters are otlp and none"),
        (
            ENDPOINT | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: a worker sends http/protobuf",
        ),
        (ENDPOINT | {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, "set this protocol, or OTEL_TRACES_EXPORTER"),
    ],
)
def test_what_is_not_supported_is_refused_with_the_way_out(environment: Mapping[str, str], message: str) -> None:
    with pytest.raises(InvalidSettingsError) as refused:
        spans_of_environment(environment)
    assert message in str(refused.value)


def test_a_missing_exporter_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    with pytest.raises(InvalidSettingsError, match=r"pip install '\.\[otel\]'"):
        spans_of_environment(ENDPOINT)
