"""Sends the records of the simulated agents, each when it is due."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from confluent_kafka import KafkaError, Message, Producer

from traceweir.schemas.figures import counted
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.demo.sessions import Emission
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options

_FLUSH_S = 15.0


class Outlet:
    """Sends records to the cluster that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self.sent = 0
        """Number of records that the broker has acknowledged."""
        self.problem = ""
        """Why the broker refused a record; empty: it refused none."""
        self._topics = settings.topics
        self._producer = Producer({**confluent_options(settings), **IDEMPOTENT, "linger.ms": 5, "log_level": 0})

    def send(self, records: Iterable[Emission], now_s: float) -> None:
        """Sends records now, which is a time in seconds since 1970."""
        for one in records:
            self._producer.produce(**one.record(self._topics, now_s), on_delivery=self._delivered)

    def wait(self, seconds: float) -> None:
        """Waits for acknowledgements."""
        self._producer.poll(seconds)

    def flush(self) -> None:
        """Waits until all records are acknowledged, or `_FLUSH_S` are over."""
        if left := self._producer.flush(_FLUSH_S):
            self.problem = self.problem or f"{counted(left, 'record')} not acknowledged within {_FLUSH_S:g} s"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self.sent += error is None
        if error is not None and not self.problem:
            self.problem = f"the broker refused a record: {error.str()}"


class Schedule:
    """Says when each record is due, and how late the records were that were taken."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.latest_s = 0.0
        """By how many seconds a record was taken after it was due, at most."""
        self._now = now

    def on_time(self, emissions: Iterable[Emission]) -> Iterator[Emission | None]:
        """Yields each record when it is due, and None again and again while none is due."""
        began = self._now()
        for one in emissions:
            while (late_s := self._now() - began - one.due_s) < 0:
                yield None
            self.latest_s = max(self.latest_s, late_s)
            yield one
