"""Plays the story of `traceweir up --demo`: writes its history at once, and then live sessions until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from traceweir.schemas.figures import counted
from traceweir.streams.base.clock import seconds_now, utc_now
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.config.push import push_file
from traceweir.streams.cli.demo.agents import Emission
from traceweir.streams.cli.demo.interruption import Interruption
from traceweir.streams.cli.demo.story import APP, PUSHED_COMMENT, history, live_session
from traceweir.streams.cli.terminal import complain
from traceweir.streams.scoring.configs.selectors import selector
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options

PUSH_AFTER_S = 15.0
_EVERY_S = 1.5
"""Seconds between two live sessions."""
_TURN_S = 0.05
_FLUSH_S = 15.0


def write_history(settings: Settings, start: datetime, *, seed: int = 7) -> None:
    """Writes the records of the last 50 minutes.

    A worker must start afterwards: to one that has read its inputs to their end, these records would be late.

    Args:
        settings: Where the cluster is.
        start: The end of the history.
        seed: Determines what the agents did.

    Raises:
        NotReadyError: the broker refused a record.
    """
    outlet = _Outlet(settings)
    outlet.send(history(start, seed), start.timestamp())
    outlet.flush()
    if outlet.refused:
        raise NotReadyError(outlet.problem)


def run_story(settings: Settings, config: Path, *, seed: int) -> int:
    """Plays live sessions until Ctrl-C, and returns the exit code: 0, or 1 if the broker refused a record.

    Args:
        settings: Where the cluster is.
        config: The config that is pushed for the app while the agents work.
        seed: Determines what the agents do.

    Raises:
        KafkaUnreachableError: no broker answers.
    """
    outlet = _Outlet(settings)
    with Interruption() as interruption:
        began = time.monotonic()
        sessions = 0
        is_pushed = False
        while not (interruption.wanted or outlet.refused):
            passed_s = time.monotonic() - began
            if not is_pushed and passed_s >= PUSH_AFTER_S:
                push_file(config, selector(APP), PUSHED_COMMENT, "the demo", dry_run=False, as_json=False)
                is_pushed = True
            if passed_s >= sessions * _EVERY_S:
                outlet.send(live_session(utc_now(), seed, sessions), seconds_now())
                sessions += 1
            outlet.wait(_TURN_S)
    outlet.flush()
    if outlet.refused:
        complain(outlet.problem)
    return 1 if outlet.refused else 0


class _Outlet:
    """Sends records."""

    def __init__(self, settings: Settings) -> None:
        self.refused: list[str] = []
        self._topics = settings.topics
        self._producer = Producer({**confluent_options(settings), **IDEMPOTENT, "linger.ms": 5, "log_level": 0})

    def send(self, records: Iterable[Emission], now_s: float) -> None:
        for one in records:
            self._producer.produce(**one.record(self._topics, now_s), on_delivery=self._delivered)

    def wait(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def flush(self) -> None:
        if left := self._producer.flush(_FLUSH_S):
            self.refused.append(f"{counted(left, 'record')} not acknowledged within {_FLUSH_S:g} s")

    @property
    def problem(self) -> str:
        return f"the broker refused {counted(len(self.refused), 'record')}, the first with: {self.refused[0]}"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error.str())
