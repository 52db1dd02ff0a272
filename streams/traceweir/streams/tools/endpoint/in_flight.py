"""Bounds the requests in work, and the bytes that they hold in memory."""

from __future__ import annotations

from traceweir.streams.tools.endpoint.refusals import Reason, Refusal


class InFlight:
    """Counts the requests in work and the bytes of their bodies, and refuses what is above the limits.

    A request never waits for memory: its client holds a copy anyway, and sends it again after a refusal.

    Args:
        max_requests: The most requests in work.
        max_bytes: The most bytes of all their bodies, compressed and decompressed.
    """

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        self.max_requests = max_requests
        self._max_bytes = max_bytes
        self.requests = 0
        """Number of requests in work."""
        self.bytes = 0
        """Bytes that these requests hold."""

    def admit(self) -> Admission:
        """Admits a request.

        Raises:
            Refusal: too many requests are in work.
        """
        if self.requests >= self.max_requests:
            raise Refusal(
                Reason.OVERLOADED,
                f"{self.requests} requests are in work; at most {self.max_requests} are allowed "
                "(TRACEWEIR_OTLP_CONCURRENCY)",
            )
        self.requests += 1
        return Admission(self)

    def hold(self, size: int) -> None:
        """Counts bytes.

        Raises:
            Refusal: the requests in work hold too many bytes.
        """
        if self.bytes + size > self._max_bytes:
            raise Refusal(
                Reason.OVERLOADED,
                f"the requests in work hold {self.bytes} bytes; at most {self._max_bytes} are allowed "
                "(TRACEWEIR_OTLP_MAX_IN_FLIGHT_BYTES)",
            )
        self.bytes += size


class Admission:
    """The place and the bytes of a request in work, until everybody who holds the admission has released it."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._bytes = 0
        self._holders = 1

    def hold_bytes(self, size: int) -> None:
        """Counts bytes that the request holds from now on.

        Raises:
            Refusal: the requests in work hold too many bytes.
        """
        self._in_flight.hold(size)
        self._bytes += size

    def share(self) -> None:
        """Adds a holder, who calls `release` too."""
        self._holders += 1

    def release(self) -> None:
        """Gives back the place and the bytes when the last holder calls it."""
        self._holders -= 1
        if not self._holders:
            self._in_flight.bytes -= self._bytes
            self._in_flight.requests -= 1
