"""Delivers records to Kafka from a bounded queue, in a thread of its own, so that the sender never waits."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from traceweir.client.at_exit import call_at_exit
from traceweir.client.problems import ThrottledLog

Done = Callable[[str], None]
"""Called once for each record that a transport took: with an empty text if the broker has it, else with the reason."""

_POLL_S = 0.05
"""How long the thread waits for acknowledgements before it looks for new records again."""


class Transport(Protocol):
    """A client of a broker. Only one thread at a time calls it."""

    def send(self, topic: str, key: bytes, value: bytes, done: Done) -> None:
        """Takes a record without waiting.

        Raises:
            BufferError: the transport has no room now.
            Exception: the record cannot be sent, at no time.
        """

    def poll(self, timeout_s: float) -> None:
        """Calls `done` for records whose fate is known; waits at most `timeout_s` for the first of them."""

    def close(self) -> None:
        """Gives up what is not delivered yet, without waiting for the broker."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the events: `recorded = delivered + dropped + failed + pending`."""

    recorded: int
    """Events that were recorded in this process."""
    delivered: int
    """Events that the broker acknowledged."""
    dropped: int
    """Events that were dropped, because the queue was full or the recorder closed."""
    failed: int
    """Events that could not be delivered: the broker refused them, or was not there for too long."""
    pending: int
    """Events on their way."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The bounds of what waits for the broker."""

    events: int = 10_000
    """Maximum number of events, at least 1."""
    bytes: int = 32_000_000
    """Maximum size of all values together."""

    def __post_init__(self) -> None:
        """Checks the bounds.

        Raises:
            ValueError: a bound is below 1.
        """
        if self.events < 1 or self.bytes < 1:
            raise ValueError(f"events and bytes of QueueLimits must be at least 1, got {self.events} and {self.bytes}")


DEFAULT_LIMITS = QueueLimits()
"""The bounds of a recorder that names none."""


class RecordQueue:
    """A bounded queue of records, and the thread that sends them. The first record starts the thread.

    Records count against the limits until the broker has acknowledged them, so that a transport's own buffer is bounded
    as well. After a fork, the child begins with an empty queue: the parent delivers what was queued before.
    """

    def __init__(
        self, connect: Callable[[], Transport], limits: QueueLimits, problems: ThrottledLog, exit_timeout_s: float = 5.0
    ) -> None:
        """Stores the arguments; connects to nothing.

        Args:
            connect: Returns a new transport; called in the thread, once in each process.
            limits: The bounds of the queue.
            problems: Where drops and failures are logged.
            exit_timeout_s: How long the end of the process waits for the delivery.
        """
        self._connect = connect
        self._limits = limits
        self._problems = problems
        self._exit_timeout_s = exit_timeout_s
        self._registered_by = -1
        self._begin()
        _FORKED.add(self)

    def _begin(self) -> None:
        """Sets the state of a new process."""
        # Reentrant: a signal handler, or a destructor, can record while its thread is inside.
        self._changed = threading.Condition(threading.RLock())
        self._queue: deque[tuple[str, bytes, bytes]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._recorded = self._delivered = self._dropped = self._failed = 0
        self._pending_bytes = 0

    after_fork = _begin

    def put(self, topic: str, key: bytes, value: bytes) -> bool:
        """Queues a record without waiting; returns False if it was dropped."""
        with self._changed:
            self._recorded += 1
            size = len(value)
            pending = self._recorded - 1 - self._delivered - self._dropped - self._failed
            full = pending >= self._limits.events or self._pending_bytes + size > self._limits.bytes
            if full or self._closed:
                self._dropped += 1
            else:
                self._queue.append((topic, key, value))
                self._pending_bytes += size
                if self._thread is None:
                    self._start()
                elif len(self._queue) == 1:
                    self._changed.notify_all()
                return True
            reason = "the recorder is closed" if self._closed else "the queue is full: Kafka is slow or not reachable"
            dropped = self._dropped
        self._problems.report("dropped", f"an event was dropped, {dropped} so far, because {reason}")
        return False

    def _start(self) -> None:
        if self._registered_by != os.getpid():
            self._registered_by = os.getpid()
            call_at_exit(self._close_at_exit)
        thread = threading.Thread(target=self._run, name="traceweir-client", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The process has as many threads as it may have; the next record tries again.
            self._problems.report("start", f"no thread can be started that sends events: {error}")
        else:
            # The thread waits until the caller gives `_changed` back.
            self._thread = thread

    @property
    def counts(self) -> Counts:
        """What became of the events of this process."""
        with self._changed:
            known = self._delivered + self._dropped + self._failed
            return Counts(self._recorded, self._delivered, self._dropped, self._failed, self._recorded - known)

    def flush(self, timeout_s: float) -> bool:
        """Waits until the fate of all events is known; returns False if `timeout_s` passed before."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while self._recorded > self._delivered + self._dropped + self._failed:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return False
                self._changed.wait(remaining)
            return True

    def close(self, timeout_s: float) -> bool:
        """Delivers what is queued, and ends the thread; later events are dropped. Returns False if events were lost."""
        with self._changed:
            self._closed = True
        delivered_all = self.flush(timeout_s)
        with self._changed:
            pending = self._recorded - self._delivered - self._dropped - self._failed
            self._failed += pending
            self._queue.clear()
            self._pending_bytes = 0
            thread = self._thread
            self._thread = None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)
        if pending:
            self._problems.report(
                "closed", f"{pending} events were not delivered within {timeout_s:g} s when the recorder closed"
            )
        return delivered_all

    def _close_at_exit(self) -> None:
        self.close(self._exit_timeout_s)

    def _run(self) -> None:
        changed = self._changed
        thread = threading.current_thread()
        transport = None
        try:
            transport = self._connect()
        except Exception as error:  # noqa: BLE001  # the client refuses its settings
            self._problems.report("connect", f"the Kafka client cannot be started: {type(error).__name__}: {error}")
        while True:
            with changed:
                while not self._queue and self._thread is thread and self._is_idle():
                    changed.wait()
                if self._thread is not thread:
                    break
                batch = list(self._queue)
                self._queue.clear()
            self._send(batch, transport)
            if transport is not None:
                self._poll(transport)
        if transport is not None:
            transport.close()

    def _poll(self, transport: Transport) -> None:
        try:
            transport.poll(_POLL_S)
        except Exception as error:  # noqa: BLE001  # the thread must go on for later events
            self._problems.report("poll", f"the Kafka client failed: {type(error).__name__}: {error}")
            # A client that fails at once must not keep a core busy.
            time.sleep(_POLL_S)

    def _is_idle(self) -> bool:
        return self._recorded == self._delivered + self._dropped + self._failed

    def _send(self, batch: list[tuple[str, bytes, bytes]], transport: Transport | None) -> None:
        for place, (topic, key, value) in enumerate(batch):
            if transport is None:
                self._settle(len(value), "the Kafka client could not be started")
                continue
            try:
                transport.send(topic, key, value, _Settle(self, len(value)))
            except BufferError:
                with self._changed:
                    if self._thread is threading.current_thread():
                        self._queue.extendleft(reversed(batch[place:]))
                return
            except Exception as error:  # noqa: BLE001  # one record must not end the thread
                self._settle(len(value), f"{type(error).__name__}: {error}")

    def _settle(self, size: int, reason: str) -> None:
        with self._changed:
            if self._closed and self._thread is None:
                # Was counted as failed when the recorder closed.
                return
            self._pending_bytes -= size
            if reason:
                self._failed += 1
            else:
                self._delivered += 1
            failed = self._failed
            if self._is_idle():
                self._changed.notify_all()
        if reason:
            self._problems.report("failed", f"an event could not be delivered to Kafka, {failed} so far: {reason}")


class _Settle:
    """Tells the delivery the fate of one record. A class, because a closure costs more memory for each record."""

    __slots__ = ("_delivery", "_size")

    def __init__(self, delivery: RecordQueue, size: int) -> None:
        self._delivery = delivery
        self._size = size

    def __call__(self, reason: str) -> None:
        self._delivery._settle(self._size, reason)  # noqa: SLF001  # part of the delivery


_FORKED: weakref.WeakSet[RecordQueue] = weakref.WeakSet()


def _after_fork() -> None:
    for delivery in list(_FORKED):
        delivery.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
