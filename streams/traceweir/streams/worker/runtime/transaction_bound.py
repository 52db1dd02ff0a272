"""Bounds the bytes of a transaction by what the last transactions have moved a second.

Kafka aborts a transaction that is open for longer than its timeout, and the worker joins its group again. Without a bound, a
cluster that takes bytes slower than it gives them makes each transaction larger than the last, until one takes too long:
the worker then does the same work again, without end.
"""

from __future__ import annotations

import logging

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from traceweir.streams.base.errors import WorkerError

log = logging.getLogger(__name__)

TIMEOUT_NAME = "TRACEWEIR_TRANSACTION_TIMEOUT_S"
SHARE = 0.25
"""The part of the timeout that a transaction of the largest size takes: brokers can become slower while it is open."""
FIRST_BYTES_PER_S = 1_000_000
FIRST_BYTES = 15_000_000
"""The bound before the first measurement: a quarter of the timeout at `FIRST_BYTES_PER_S`, at most `FIRST_BYTES`.

With the maximum, a longer timeout helps a cluster that is slower than that.
"""
LEAST_BYTES = 1_000_000
"""The lowest bound: one full batch. A transaction takes some time whatever its size, so a lower bound would not help."""
MOST_BYTES = 64_000_000
"""The highest bound, for the memory of the worker and for a cluster that suddenly becomes slow."""
SLOW = 0.25
"""The part of its share of the timeout from which on a transaction of any size tells how fast the cluster is."""
GROWTH = 2
"""Largest factor by which the bound grows at a time."""
MOST_PER_BYTE = 4.0
"""The largest number of bytes that a byte of a record is expected to make."""


class TransactionTimedOutError(WorkerError):
    """Kafka has aborted a transaction because it was open for too long; the message contains its size and the limit."""


class TransactionBound:
    """The number of bytes that a transaction of this worker can have.

    >>> bound = TransactionBound(timeout_s=60)
    >>> bound.bytes
    15000000
    >>> bound.note(8_000_000, 8_000_000, seconds=40.0)
    >>> bound.bytes
    3000000
    """

    def __init__(self, timeout_s: float) -> None:
        """Starts with a bound for a slow cluster. The timeout is in seconds."""
        self.timeout_s = timeout_s
        """Seconds after which Kafka aborts a transaction."""
        self._goal_s = SHARE * timeout_s
        self.bytes = _within_limits(min(FIRST_BYTES, FIRST_BYTES_PER_S * self._goal_s))
        """Bytes of keys and values that a transaction can have."""
        self._taken = self._sent = 0.0
        self._measured = 0
        self._measured_s = 0.0
        self._largest = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes of records that the stages can take for one transaction.

        A stage writes more bytes than it takes: rows, and later the outputs. What it has taken and not written yet comes
        later, so that a byte of a record counts as one byte or more.
        """
        per_byte = self._sent / self._taken if self._taken else 1.0
        return int(self.bytes / min(MOST_PER_BYTE, max(1.0, per_byte)))

    def note(self, sent: int, taken: int, *, seconds: float) -> None:
        """Notes a committed transaction.

        The bound falls at once if the transaction was slow. It grows only after transactions have together taken as long
        as one of the largest size may take: brokers with a quota let the first bytes pass at full speed, and then accept
        none for seconds. It grows only if one of them was large: most of the time of a small one does not depend on its
        size.

        Args:
            sent: Its bytes of keys and values.
            taken: Bytes of the records that the stages took for it.
            seconds: The time from its begin to its commit.
        """
        self._taken = self._taken / 2 + taken
        self._sent = self._sent / 2 + sent
        self._measured = self._measured + sent
        self._measured_s = self._measured_s + seconds
        self._largest = max(self._largest, sent)
        if seconds > SLOW * self._goal_s and (found := sent / seconds * self._goal_s) < self.bytes:
            self._set(found)
        elif self._measured_s >= self._goal_s:
            if self._largest >= self.bytes / 2:
                self._set(max(self.bytes, min(GROWTH * self.bytes, self._measured / self._measured_s * self._goal_s)))
            self._begin_to_measure()
        if seconds > self.timeout_s / 2:
            log.warning("%s", self._in_words("a transaction", sent, seconds))

    def note_end(self, sent: int, *, seconds: float) -> None:
        """Notes a transaction that Kafka has ended: if it was open for too long, the next one is small."""
        if seconds >= self.timeout_s:
            self._set(min(self.bytes, sent) / seconds * self._goal_s)

    def _set(self, found: float) -> None:
        self.bytes = _within_limits(found)
        self._begin_to_measure()

    def _begin_to_measure(self) -> None:
        self._measured = 0
        self._measured_s = 0.0
        self._largest = 0

    def reason(self, error: BaseException, sent: int, *, seconds: float) -> BaseException:
        """Returns why a transaction has failed: `error`, or that it was open for too long."""
        if seconds < self.timeout_s or not isinstance(error, ProducerFenced | InvalidProducerEpoch):
            return error
        found = TransactionTimedOutError(
            f"{self._in_words('Kafka has aborted a transaction that', sent, seconds)}. Either the cluster takes bytes too "
            "slowly, for example because of a quota (producer_byte_rate) or a slow disk, or the worker was frozen, "
            "disconnected or starved of CPU. No data is lost; the worker goes on with small transactions. "
            f"If this happens again, raise {TIMEOUT_NAME}"
        )
        found.__cause__ = error
        return found

    def _in_words(self, what: str, sent: int, seconds: float) -> str:
        return (
            f"{what} took {seconds:.0f} s for {sent / 1e6:.1f} MB; the limit is {self.timeout_s:g} s ({TIMEOUT_NAME})"
        )


def _within_limits(found: float) -> int:
    return int(min(MOST_BYTES, max(LEAST_BYTES, found)))
