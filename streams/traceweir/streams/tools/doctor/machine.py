"""Checks this machine: versions, state directory, disk, and the endpoint for telemetry."""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from importlib.metadata import version
from urllib.parse import urlsplit

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import StageName
from traceweir.streams.tools.doctor.finding import Finding
from traceweir.streams.worker.runtime.state_directory import state_folder

LEAST_FREE_BYTES = 1_000_000_000
"""Free space below which a warning is given: RocksDB needs room to rewrite its files."""
CONNECT_WITHIN_S = 3.0
_PORTS = {"http": 80, "https": 443}
_OTLP = "OTEL_EXPORTER_OTLP_ENDPOINT"


def check_machine(
    settings: Settings, stages: Collection[StageName], environment: Mapping[str, str]
) -> Iterator[Finding]:
    """Yields what is found about this machine."""
    yield Finding("versions", "ok", f"Traceweir {version('traceweir')}, Python {sys.version.split()[0]}")
    yield _state_directory(settings, stages)
    yield _disk(settings)
    yield _telemetry(environment)


def _state_directory(settings: Settings, stages: Collection[StageName]) -> Finding:
    folder = state_folder(settings, stages)
    existing = folder
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        return Finding(
            "state directory", "failure",
            f"{existing} cannot be written ({error.strerror}): give this user the right, or set TRACEWEIR_STATE_DIR to "
            "another folder",
        )  # fmt: skip
    if existing != folder:
        return Finding("state directory", "ok", f"{folder} can be created; a worker restores its state from Kafka")
    return Finding("state directory", "ok", f"{folder} can be written")


def _disk(settings: Settings) -> Finding:
    existing = settings.state_dir.absolute()
    while not existing.exists():
        existing = existing.parent
    free = shutil.disk_usage(existing).free
    if free < LEAST_FREE_BYTES:
        return Finding(
            "disk", "warning",
            f"{free / 1e9:.2f} GB are free at {existing}, and less than {LEAST_FREE_BYTES / 1e9:g} GB: a worker ends when "
            "its disk is full; free some space, or set TRACEWEIR_STATE_DIR to another disk",
        )  # fmt: skip
    return Finding("disk", "ok", f"{free / 1e9:.1f} GB are free at {existing}")


def _telemetry(environment: Mapping[str, str]) -> Finding:
    """Connects to the endpoint of OTLP, without sending anything."""
    address = environment.get(_OTLP, "")
    if not address:
        return Finding("telemetry", "not checked", f"{_OTLP} is not set, so workers send no traces and no metrics")
    try:
        parts = urlsplit(address)
        host = parts.hostname
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        host = port = None
    if not host or not port:
        return Finding(
            "telemetry", "failure", f"{_OTLP} is no address with http or https, such as http://127.0.0.1:4318"
        )
    try:
        socket.create_connection((host, port), CONNECT_WITHIN_S).close()
    except OSError as error:
        return Finding(
            "telemetry", "warning",
            f"{host}:{port} of {_OTLP} does not answer ({error.strerror or error}): workers run, and their traces and "
            "metrics are dropped; start the collector, or correct the address",
        )  # fmt: skip
    return Finding("telemetry", "ok", f"{host}:{port} of {_OTLP} takes connections")
