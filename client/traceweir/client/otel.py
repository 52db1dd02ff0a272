"""Defines KafkaSpanExporter: writes the spans of the OpenTelemetry SDK to the topic that Traceweir's collect reads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from traceweir.client.delivery import Transport
from traceweir.client.kafka import MAX_RECORD_BYTES, KafkaOptions, KafkaTransport, refusal_of
from traceweir.client.problems import ThrottledLog

_POLL_S = 0.05


class KafkaSpanExporter(SpanExporter):
    """Exports spans as OTLP requests in protobuf, as the OpenTelemetry Collector's Kafka exporter writes them.

    A record has spans of one trace, and the 16 bytes of the trace id as its key: they arrive on the partition where
    Traceweir keeps the trace, and no worker has to forward them. Use it with a `BatchSpanProcessor`, whose thread waits
    for Kafka in place of the agent.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        topic: str = "otlp_spans",
        timeout_s: float = 10.0,
        max_record_bytes: int = 900_000,
        kafka: KafkaOptions | None = None,
        connect: Callable[[], Transport] | None = None,
    ) -> None:
        """Checks the arguments; connects with the first export.

        Args:
            bootstrap_servers: Brokers of Kafka, `host:port`, separated by commas.
            topic: The topic, as `TRACEWEIR_OTLP_SPANS_TOPIC` of the workers.
            timeout_s: How long an export may take, and how long the end of the SDK waits.
            max_record_bytes: Spans that need more are written as several records. Traceweir takes spans of up to 900 kB.
            kafka: Options of librdkafka, for example for TLS and passwords.
            connect: Returns another way to Kafka than confluent-kafka, for tests.

        Raises:
            ValueError: an argument is outside its range.
        """
        if not bootstrap_servers and connect is None:
            raise ValueError("bootstrap_servers is empty; name the brokers, such as '127.0.0.1:9092'")
        if timeout_s <= 0:
            raise ValueError(f"timeout_s must be above 0, got {timeout_s}")
        if not 1_000 <= max_record_bytes <= MAX_RECORD_BYTES:
            raise ValueError(f"max_record_bytes must be from 1000 to {MAX_RECORD_BYTES}, got {max_record_bytes}")
        options: KafkaOptions = {
            # An export waits for its records.
            "linger.ms": 5,
            "message.timeout.ms": max(int(timeout_s * 1_000), 1),
            **(kafka or {}),
        }
        self._connect = connect or (lambda: KafkaTransport(bootstrap_servers, options))
        self._topic = topic
        self._timeout_s = timeout_s
        self._max_record_bytes = max_record_bytes
        self._problems = ThrottledLog()
        self._is_shut_down = False
        self._abandoned: list[Transport] = []
        self._transport: Transport | None = None
        self._begin()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Writes spans, and waits for Kafka; raises nothing.

        Returns:
            SUCCESS if Kafka has all spans. FAILURE if a span is too large for a record, Kafka refused a record or did not
            acknowledge it in time, or after `shutdown`. The SDK then drops the batch, as its specification says.
        """
        if self._is_shut_down:
            self._problems.report("shutdown", "spans came after the exporter was shut down; they are dropped")
            return SpanExportResult.FAILURE
        deadline = time.monotonic() + self._timeout_s
        self._renew_after_fork()
        try:
            with self._lock:
                is_written = self._write(spans, deadline)
        except Exception as error:  # noqa: BLE001  # an unusual span may not break the agent
            # The text of the error could have what a span contains.
            self._problems.report("export", f"{len(spans)} spans were not exported: {type(error).__name__}")
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS if is_written else SpanExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Waits until Kafka has the records of earlier exports, or gave them up; returns False after the timeout."""
        deadline = time.monotonic() + timeout_millis / 1_000
        self._renew_after_fork()
        if not self._lock.acquire(timeout=max(timeout_millis / 1_000, 0)):
            return False
        try:
            return self._settle(deadline)
        finally:
            self._lock.release()

    def shutdown(self) -> None:
        """Waits for the records of earlier exports for at most the timeout, and ends the exporter."""
        if self._is_shut_down:
            return
        self._is_shut_down = True
        self.force_flush(int(self._timeout_s * 1_000))
        transport = self._transport
        self._transport = None
        if transport is not None:
            transport.close()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._pending = 0

    def _renew_after_fork(self) -> None:
        if self._process != os.getpid():
            if self._transport is not None:
                # Freed, it would wait for threads that the child does not have.
                self._abandoned.append(self._transport)
            self._transport = None
            self._begin()

    def _write(self, spans: Sequence[ReadableSpan], deadline: float) -> bool:
        transport = self._connected()
        if transport is None:
            return False
        failures: list[str] = []

        def done(reason: str) -> None:
            self._pending -= 1
            if reason:
                failures.append(reason)

        for key, value in self._records(spans, failures):
            while True:
                try:
                    transport.send(self._topic, key, value, done)
                except BufferError:
                    if time.monotonic() >= deadline:
                        failures.append("the buffer of the Kafka client is full")
                        break
                    transport.poll(_POLL_S)
                except Exception as error:  # noqa: BLE001  # a record that is refused costs no other
                    failures.append(f"the Kafka client refused a record: {refusal_of(error)}")
                    break
                else:
                    self._pending += 1
                    break
        if not self._settle(deadline):
            failures.append(f"Kafka did not acknowledge the spans within {self._timeout_s:g} s")
        if failures:
            self._problems.report("failed", f"spans were not exported: {failures[0]}")
        return not failures

    def _connected(self) -> Transport | None:
        if self._transport is None:
            try:
                self._transport = self._connect()
            except Exception as error:  # noqa: BLE001  # a wrong option may not break the agent
                self._problems.report("connect", f"the Kafka client cannot be started: {type(error).__name__}: {error}")
        return self._transport

    def _settle(self, deadline: float) -> bool:
        """Waits until no record is on its way; returns False if the deadline passes before."""
        transport = self._transport
        while self._pending and transport is not None:
            remaining = deadline - time.monotonic()
            transport.poll(max(min(remaining, _POLL_S), 0))
            if self._pending and remaining <= 0:
                return False
        return True

    def _records(self, spans: Sequence[ReadableSpan], failures: list[str]) -> Iterator[tuple[bytes, bytes]]:
        """Yields the key and the value of each record; adds a reason to `failures` for a span that is too large."""
        traces: dict[int, list[ReadableSpan]] = {}
        for span in spans:
            context = span.get_span_context()
            if context is not None:
                traces.setdefault(context.trace_id, []).append(span)
        for trace_id, parts in traces.items():
            waiting = [parts]
            while waiting:
                part = waiting.pop()
                value, problem = self._encoded(part)
                if not problem:
                    yield trace_id.to_bytes(16, "big"), value
                elif len(part) > 1:
                    # A span that cannot be written costs no other.
                    half = len(part) // 2
                    waiting += [part[half:], part[:half]]
                else:
                    failures.append(problem)

    def _encoded(self, spans: Sequence[ReadableSpan]) -> tuple[bytes, str]:
        """Returns the value of a record with these spans, and why it cannot be written; empty if it can."""
        try:
            value = encode_spans(spans).SerializeToString()
        except Exception as error:  # noqa: BLE001  # its text could have what the span contains
            return b"", f"a span cannot be encoded ({type(error).__name__})"
        if len(value) > self._max_record_bytes:
            return b"", (
                f"a span has {len(value)} bytes, above max_record_bytes {self._max_record_bytes}; "
                "limit its attributes with OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
            )
        return value, ""
