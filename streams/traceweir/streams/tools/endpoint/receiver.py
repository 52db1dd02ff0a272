"""Does the work of one request: checks it, writes it to Kafka, and only then acknowledges it."""

from __future__ import annotations

import asyncio
import hmac
import logging
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.scorers.redaction.redaction import redact_text
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.otlp.acceptance import AcceptedRequest, accept
from traceweir.streams.intake.otlp.errors import OtlpError
from traceweir.streams.intake.otlp.json_requests import Signal
from traceweir.streams.tools.endpoint.in_flight import Admission, InFlight
from traceweir.streams.tools.endpoint.refusals import Reason, Refusal
from traceweir.streams.tools.endpoint.turns import Turns

log = logging.getLogger(__name__)

LARGE_BYTES = 200_000
"""A check of this size or more runs in a thread, so that the event loop goes on; below, the thread costs more."""
JSON_OBJECT_BYTES = 100
"""How many bytes of a body in protobuf take as long to check as an object in JSON."""

WARN_EVERY_S = 10.0
"""Seconds between two warnings of one kind; the counters count all."""
_QUOTED_CHARS = 1_000


class WriteError(Exception):
    """Kafka has not taken the records; the message contains the reason."""


class Writer(Protocol):
    """Writes records to Kafka."""

    max_record_bytes: int
    """The largest value of a record, in bytes."""

    @property
    def problem(self) -> str | None:
        """Why nothing can be written now; None if records can be written, as far as is known."""

    async def write(self, signal: Signal, values: Sequence[bytes]) -> None:
        """Writes the values to the topic of the signal, and returns when Kafka has all of them.

        Raises:
            WriteError: Kafka has not acknowledged a record in time.
        """


class Receiver:
    """Receives requests whatever their transport.

    Args:
        settings: The token and the limits.
        writer: Where accepted requests go.
    """

    def __init__(self, settings: Settings, writer: Writer) -> None:
        self._writer = writer
        self._token = None if settings.otlp_token is None else settings.otlp_token.get_secret_value().encode()
        self._write_timeout_s = settings.otlp_write_timeout_s
        self.max_request_bytes = settings.otlp_max_request_bytes
        """The largest body, as it arrives and decompressed."""
        self.in_flight = InFlight(settings.otlp_concurrency, settings.otlp_max_in_flight_bytes)
        """The requests in work."""
        self.counts: Counter[str] = Counter()
        """What was received since the start."""
        self._warned_at: dict[str, float] = {}
        self._large_checks = Turns()
        self.stopping = False
        """Whether new requests are refused, because the process ends."""

    @property
    def problem(self) -> str | None:
        """Why the endpoint takes no requests now; None if it takes them."""
        return "the endpoint is stopping" if self.stopping else self._writer.problem

    def begin(self, authorization: str | None) -> Admission:
        """Admits a request by its header `Authorization`, before its body is read; release the admission afterwards.

        Raises:
            Refusal: the token is missing or wrong, too many requests are in work, or the process ends.
        """
        self.counts["requests"] += 1
        if self._token is not None and not self._is_allowed(authorization):
            raise Refusal(
                Reason.UNAUTHENTICATED,
                "the header Authorization must be Bearer with the token of this endpoint; set "
                "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20TOKEN",
            )
        if self.stopping:
            raise Refusal(Reason.UNAVAILABLE, "the endpoint is stopping; send the request again")
        return self.in_flight.admit()

    async def receive(self, admission: Admission, signal: Signal, body: bytes, *, json: bool) -> AcceptedRequest:
        """Checks a body and writes what can be used; returns when Kafka has acknowledged all of it.

        The memory of the request counts until Kafka has answered, even if the client is answered before.

        Raises:
            Refusal: the body holds nothing usable, or Kafka has not acknowledged it in time.
        """
        limit = self._writer.max_record_bytes
        try:
            # In JSON, the time depends on the number of objects rather than on the bytes.
            size = len(body) + JSON_OBJECT_BYTES * (body.count(b"{") if json else 0)
            if size < LARGE_BYTES:
                found = accept(body, signal, json=json, max_record_bytes=limit)
            else:
                # A thread cannot be cancelled. If the client goes away, its check keeps its place until it ends.
                checking = asyncio.ensure_future(self._check_large(signal, body, size, json=json))
                admission.share()
                checking.add_done_callback(lambda done: _settle(done, admission))
                found = await asyncio.shield(checking)
        except OtlpError as error:
            raise Refusal(Reason.BAD_DATA, str(error)) from None
        if found.records:
            await self._write(admission, signal, found.records)
        self.counts[signal] += found.accepted
        self.counts["bytes"] += len(body)
        if found.rejected:
            self.counts[f"rejected.{signal}"] += found.rejected
            what = counted(found.rejected, "span" if signal == "spans" else "log record")
            self._warn(f"rejected.{signal}", f"rejected {what} of a request: ", quoting=found.problem)
        return found

    async def _check_large(self, signal: Signal, body: bytes, size: int, *, json: bool) -> AcceptedRequest:
        # One at a time: a check needs up to 40 times the memory of its body, and threads share one core.
        async with self._large_checks.turn(size):
            limit = self._writer.max_record_bytes
            return await asyncio.to_thread(accept, body, signal, json=json, max_record_bytes=limit)

    def refused(self, refusal: Refusal) -> None:
        """Counts a refusal, and logs it."""
        name = f"refused.{refusal.reason.label}"
        self.counts[name] += 1
        message = f"a request is refused ({refusal.reason.label}): "
        if refusal.reason is Reason.BAD_DATA:
            self._warn(name, message, quoting=str(refusal))
        else:
            self._warn(name, f"{message}{refusal}")

    def failed(self, error: Exception) -> Refusal:
        """Logs an error that nobody foresaw, and returns the refusal that the client gets, without the error's text."""
        self._warn(f"failed.{type(error).__name__}", f"a request failed: {error!r}", error=error)
        return Refusal(Reason.INTERNAL, f"the endpoint failed ({type(error).__name__}); its log has the reason")

    def _warn(self, name: str, message: str, *, quoting: str = "", error: Exception | None = None) -> None:
        """Logs a message, for each kind at most once in `WARN_EVERY_S`: a client sends the same request again and again.

        What follows the message can quote the request, so secrets and identifiers are tokens in it; the answer has it as it
        is, because the client knows its own values. An error that nobody foresaw is logged as such, with its traceback.
        """
        now = asyncio.get_running_loop().time()
        if now - self._warned_at.get(name, -math.inf) >= WARN_EVERY_S:
            self._warned_at[name] = now
            level = logging.WARNING if error is None else logging.ERROR
            quoted = redact_text(quoting[:_QUOTED_CHARS]) if quoting else ""
            log.log(level, "%s", printable(message + quoted, _QUOTED_CHARS), exc_info=error)

    async def _write(self, admission: Admission, signal: Signal, records: Sequence[bytes]) -> None:
        writing = asyncio.ensure_future(self._writer.write(signal, records))
        admission.share()
        writing.add_done_callback(lambda done: _settle(done, admission))
        # The writing goes on if it takes longer, or if the client goes away.
        done, _ = await asyncio.wait((writing,), timeout=self._write_timeout_s)
        if not done:
            raise Refusal(
                Reason.UNAVAILABLE,
                f"Kafka has not acknowledged the request within {self._write_timeout_s:g} s; send the request again",
            )
        try:
            writing.result()
        except WriteError as error:
            raise Refusal(
                Reason.UNAVAILABLE, f"Kafka has not taken the request ({error}); send the request again"
            ) from None
        except Exception as error:  # noqa: BLE001  # Kafka's client raises other errors too
            # The client still has the request.
            self._warn(f"write_failed.{type(error).__name__}", f"writing to Kafka failed: {error!r}", error=error)
            raise Refusal(
                Reason.UNAVAILABLE, f"Kafka has not taken the request ({type(error).__name__}); send the request again"
            ) from None

    def _is_allowed(self, authorization: str | None) -> bool:
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip().encode("utf-8", "surrogateescape")
        # The comparison takes the same time wherever the tokens differ.
        return hmac.compare_digest(given, self._token or b"") and scheme.lower() == "bearer"


def _settle(work: asyncio.Future[Any], admission: Admission) -> None:
    if not work.cancelled():
        # Taken here too: the request can have been answered before.
        work.exception()
    admission.release()
