"""Reads the standard variables of an OTLP exporter (`OTEL_EXPORTER_OTLP_*`), as the OpenTelemetry specification has them.

A variable of the signal, such as `OTEL_EXPORTER_OTLP_LOGS_ENDPOINT`, comes before the one for all signals.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote, urlsplit

from traceweir.schemas.text import printable
from traceweir.streams.base.errors import InvalidSettingsError

Signal = Literal["logs", "traces"]
PREFIX = "OTEL_EXPORTER_OTLP_"
DEFAULT_TIMEOUT_MS = 10_000
"""The specification's time limit of a request."""
DEFAULT_SERVICE = "traceweir"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


@dataclass(frozen=True)
class OtlpEnvironment:
    """Where and how an OTLP exporter sends."""

    url: str = field(repr=False)
    """The whole address of the signal."""
    headers: Mapping[str, str] = field(repr=False)
    """Headers of each request, often with a key."""
    gzip: bool
    """Whether bodies are compressed."""
    timeout_s: float
    """Seconds that a request has."""
    tls: ssl.SSLContext | None
    """The certificates that are trusted, and the own one; None: the authorities of the system."""
    resource: Mapping[str, str]
    """Attributes of the sender, with `service.name`."""

    @property
    def host(self) -> str:
        """Scheme, host and port: what a log line can contain of the address."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


def read_otlp_environment(environment: Mapping[str, str], signal: Signal) -> OtlpEnvironment:
    """Returns what the variables say for a signal.

    Raises:
        InvalidSettingsError: a variable is missing or cannot be used; the message lists each of them, without values.
    """
    return _Reading(environment, signal).result()


class _Reading:
    def __init__(self, environment: Mapping[str, str], signal: Signal) -> None:
        self._environment = environment
        self._signal = signal
        self._problems: list[str] = []

    def result(self) -> OtlpEnvironment:
        url = self._url()
        resource = self._resource()
        headers = self._headers()
        compression = self._value("COMPRESSION", "none")[1]
        if compression not in {"gzip", "none"}:
            self._refuse("COMPRESSION", "must be `gzip` or `none`")
        protocol = self._value("PROTOCOL", "http/protobuf")[1]
        if protocol != "http/protobuf":
            self._refuse(
                "PROTOCOL",
                "must be `http/protobuf` or unset: this exporter sends OTLP/HTTP, which most backends receive on port 4318",
            )
        timeout_s = self._timeout_s()
        tls = self._tls()
        if self._problems:
            raise InvalidSettingsError("\n".join(self._problems))
        return OtlpEnvironment(url, headers, compression == "gzip", timeout_s, tls, resource)

    def _value(self, name: str, default: str = "") -> tuple[str, str]:
        """Returns the variable that counts, and its value. The specification reads an empty variable as unset."""
        for variable in (f"{PREFIX}{self._signal.upper()}_{name}", f"{PREFIX}{name}"):
            if value := self._environment.get(variable, "").strip():
                return variable, value
        return f"{PREFIX}{name}", default

    def _refuse(self, name: str, rule: str) -> None:
        self._problems.append(f"{self._value(name)[0]}: the value (not shown) {rule}")

    def _url(self) -> str:
        variable, value = self._value("ENDPOINT")
        if not value:
            self._problems.append(
                f"{variable} is not set: set it to the OTLP/HTTP address of your backend, such as http://127.0.0.1:4318, to which "
                f"/v1/{self._signal} is appended; or {PREFIX}{self._signal.upper()}_ENDPOINT to the whole address"
            )
            return ""
        try:
            parts = urlsplit(value)
            usable = (
                parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
            )
        except ValueError:
            usable = False
        if not usable or "@" in parts.netloc:
            self._refuse("ENDPOINT", f"must be http(s)://host:port/path, without a user: put keys into {PREFIX}HEADERS")
            return ""
        return value if variable != f"{PREFIX}ENDPOINT" else f"{value.rstrip('/')}/v1/{self._signal}"

    def _headers(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for pair in self._value("HEADERS")[1].split(","):
            name, equals, value = (unquote(part.strip()) for part in pair.partition("="))
            if not pair.strip():
                continue
            if not equals or not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                self._refuse(
                    "HEADERS",
                    "must be name=value, separated by commas, with special characters encoded as in a URL (%20)",
                )
                return {}
            found[name] = value
        return found

    def _timeout_s(self) -> float:
        value = self._value("TIMEOUT", str(DEFAULT_TIMEOUT_MS))[1]
        if not value.isdecimal() or not 0 < int(value) <= 3_600_000:
            self._refuse("TIMEOUT", "must be a whole number of milliseconds, from 1 to 3600000")
            return 0.0
        return int(value) / 1000

    def _tls(self) -> ssl.SSLContext | None:
        authorities, certificate, key = (
            self._value(name)[1] for name in ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
        )
        if bool(certificate) != bool(key):
            self._problems.append(f"{PREFIX}CLIENT_CERTIFICATE and {PREFIX}CLIENT_KEY go together; set both or none")
            return None
        if not authorities and not certificate:
            return None
        try:
            context = ssl.create_default_context(cafile=authorities or None)
            if certificate:
                context.load_cert_chain(certificate, key)
        except (OSError, ValueError) as error:
            self._problems.append(
                f"{PREFIX}CERTIFICATE, {PREFIX}CLIENT_CERTIFICATE or {PREFIX}CLIENT_KEY cannot be used "
                f"({printable(str(error), 200)}): name PEM files that this user can read"
            )
            return None
        return context

    def _resource(self) -> dict[str, str]:
        found = {"service.name": DEFAULT_SERVICE}
        for pair in self._environment.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
            name, equals, value = pair.partition("=")
            if pair.strip() and (not equals or not name.strip()):
                self._problems.append(
                    "OTEL_RESOURCE_ATTRIBUTES: must be name=value, separated by commas; the value is not shown"
                )
                break
            if name.strip():
                found[unquote(name.strip())] = unquote(value.strip())
        if service := self._environment.get("OTEL_SERVICE_NAME", "").strip():
            found["service.name"] = service
        return found
