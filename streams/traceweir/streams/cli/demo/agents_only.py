"""Runs only the agents of the demo: they emit to the cluster that the environment names, where workers score."""

from __future__ import annotations

import sys
import time
from itertools import count

from confluent_kafka import KafkaError, Message, Producer

from traceweir.schemas.figures import counted
from traceweir.streams.base.clock import seconds_now, utc_now
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.demo.agents import Emission
from traceweir.streams.cli.demo.fleet import build_fleet
from traceweir.streams.cli.demo.interruption import Interruption
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT, confluent_options
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS
from traceweir.streams.worker.kafka.topic_admin import check_partitions

_TURN_S = 0.05
_FLUSH_S = 15.0
_MAX_AHEAD_S = 3_600.0
"""Apache Kafka refuses a record whose timestamp is further ahead of the broker's clock."""


def run_agents(settings: Settings, *, keep: bool, seed: int, seconds: float) -> int:
    """Emits the records of the agents, and prints their number.

    Each call has its own sessions: the names of the sessions contain the time.

    Args:
        settings: Where the cluster is.
        keep: Whether to continue with new sessions until Ctrl-C.
        seed: Determines what the agents do.
        seconds: How long the agents work, approximately; at least 8.

    Returns:
        The exit code: 0; 130 after Ctrl-C; 1 if the broker refused a record. stderr then shows the first error.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: a topic is missing or wrong, or there are too few partitions for agents that send some records
            to a wrong partition on purpose.
    """
    problems = check_partitions(settings, [settings.topics.traces, settings.topics.invocations])
    if settings.partitions < PARTITIONS:
        problems = [
            *problems,
            f"TRACEWEIR_PARTITIONS is {settings.partitions}, but the agents need topics with {PARTITIONS} partitions or more",
        ]
    if problems:
        raise NotReadyError("\n".join(problems))
    outlet = _Outlet(settings)
    with Interruption() as interruption:
        first = int(seconds_now())
        for number in count(first) if keep else (first,):
            outlet.play(build_fleet(seed, seconds, utc_now(), number).emissions, interruption)
            if interruption.wanted or outlet.refused:
                break
        outlet.flush()
    sys.stdout.write(f"{counted(outlet.sent, 'record')} to {outlet.topics.traces} and {outlet.topics.invocations}\n")
    if outlet.refused:
        sys.stderr.write(
            f"the broker refused {counted(len(outlet.refused), 'record')}, the first with: {outlet.refused[0]}\n"
        )
        return 1
    return 130 if interruption.wanted else 0


class _Outlet:
    """Sends each record when it is due."""

    def __init__(self, settings: Settings) -> None:
        self.topics = settings.topics
        self.sent = 0
        self.refused: list[str] = []
        self._producer = Producer({**confluent_options(settings), **IDEMPOTENT, "linger.ms": 5, "log_level": 0})

    def play(self, emissions: tuple[Emission, ...], interruption: Interruption) -> None:
        began = time.monotonic()
        for one in emissions:
            while time.monotonic() - began < one.due_s and not interruption.wanted:
                self._producer.poll(_TURN_S)
            if interruption.wanted or self.refused:
                return
            if one.ahead_s > _MAX_AHEAD_S:
                continue
            self._producer.produce(**one.record(self.topics, seconds_now()), on_delivery=self._delivered)

    def flush(self) -> None:
        if left := self._producer.flush(_FLUSH_S):
            self.refused.append(f"{counted(left, 'record')} not acknowledged within {_FLUSH_S:g} s")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.sent += 1
        else:
            self.refused.append(error.str())
