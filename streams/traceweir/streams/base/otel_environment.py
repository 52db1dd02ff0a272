"""Reads the variables of OpenTelemetry that switch a signal on. Imports nothing of its SDK, which needs time to load."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import InvalidSettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

Signal = Literal["TRACES", "METRICS"]
_SUPPORTED_PROTOCOL = "http/protobuf"


def is_sent(signal: Signal, environment: Mapping[str, str]) -> bool:
    """Returns whether the variables switch the OTLP exporter of a signal on: by its name, or by an endpoint.

    >>> is_sent("TRACES", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"})
    True
    >>> is_sent("TRACES", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"})
    False

    Raises:
        InvalidSettingsError: the exporter or the protocol is not supported, or the exporter is not installed.
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    endpoint = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or environment.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT"
    )
    exporter = environment.get(f"OTEL_{signal}_EXPORTER") or ("otlp" if endpoint else "none")
    if exporter not in ("otlp", "none"):
        raise InvalidSettingsError(
            f"OTEL_{signal}_EXPORTER={printable(exporter, 100)}: the exporters are otlp and none; an OpenTelemetry Collector "
            "translates OTLP into other formats"
        )
    if exporter == "none":
        return False
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(name)
        if protocol and protocol != _SUPPORTED_PROTOCOL:
            raise InvalidSettingsError(
                f"{name}={printable(protocol, 100)}: a worker sends {_SUPPORTED_PROTOCOL}, usually to port 4318; set this "
                f"protocol, or OTEL_{signal}_EXPORTER=none"
            )
    if importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        raise InvalidSettingsError(
            f"the variables OTEL_* switch {signal.lower()} on, but the exporter is not installed: pip install '.[otel]', or "
            f"set OTEL_{signal}_EXPORTER=none"
        )
    return True


def resource() -> Resource:
    """Returns what spans and metrics say about this process; `OTEL_SERVICE_NAME` takes the place of `traceweir`."""
    from importlib.metadata import version

    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    found = Resource.create()
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "traceweir", "service.version": version("traceweir")}))
    return found
