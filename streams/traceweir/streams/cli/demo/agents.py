"""Runs agents alone, without a worker: those of the demo on a cluster, and those of the story of `traceweir up --demo`."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, TopicPartition

from traceweir.schemas.figures import counted
from traceweir.streams.base.clock import seconds_now, utc_now
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.config.push import push_file
from traceweir.streams.cli.demo.fleet import build_fleet
from traceweir.streams.cli.demo.interruption import INTERRUPTED, Interruption
from traceweir.streams.cli.demo.outlet import Outlet, Schedule
from traceweir.streams.cli.demo.story import APP, HISTORY_RESULTS, PUSHED_COMMENT, history, live_session
from traceweir.streams.cli.terminal import complain
from traceweir.streams.scoring.configs.selectors import selector
from traceweir.streams.worker.kafka.client_options import confluent_options
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS
from traceweir.streams.worker.kafka.topic_admin import check_partitions

PUSH_AFTER_S = 15.0
PUSH_WITHIN_S = 60.0
"""When the config is pushed, in seconds after the agents start: between the two, as soon as the history is scored."""
_EVERY_S = 1.5
"""Seconds between two live sessions of the story."""
_TURN_S = 0.05
_ASKED_S = 2.0
_MAX_AHEAD_S = 3_600.0
"""Apache Kafka refuses a record whose timestamp is further ahead of the broker's clock."""


def run_agents(settings: Settings, *, keep: bool, seed: int, seconds: float) -> int:
    """Sends the records of the agents, and prints their number.

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
    problems = [*check_partitions(settings, [settings.topics.traces, settings.topics.invocations])]
    if settings.partitions < PARTITIONS:
        problems.append(
            f"TRACEWEIR_PARTITIONS is {settings.partitions}, but the agents need topics with {PARTITIONS} partitions or more"
        )
    if problems:
        raise NotReadyError("\n".join(problems))
    outlet = Outlet(settings)
    with Interruption() as interruption:
        first = int(seconds_now())
        for number in count(first) if keep else (first,):
            for one in Schedule().on_time(build_fleet(seed, seconds, utc_now(), number).emissions):
                if interruption.wanted or outlet.problem:
                    break
                if one is not None and one.ahead_s <= _MAX_AHEAD_S:
                    outlet.send([one], seconds_now())
                outlet.wait(0.0 if one else _TURN_S)
            if interruption.wanted or outlet.problem:
                break
        outlet.flush()
    sys.stdout.write(
        f"{counted(outlet.sent, 'record')} to {settings.topics.traces} and {settings.topics.invocations}\n"
    )
    return _ended(outlet) or (INTERRUPTED if interruption.wanted else 0)


def write_history(settings: Settings, start: datetime, *, seed: int = 7) -> None:
    """Writes the records of the story's last 50 minutes.

    A worker must start afterwards: to one that has read its inputs to their end, these records would be late.

    Args:
        settings: Where the cluster is.
        start: The end of the history.
        seed: Determines what the agents did.

    Raises:
        NotReadyError: the broker refused a record.
    """
    outlet = Outlet(settings)
    outlet.send(history(start, seed), start.timestamp())
    outlet.flush()
    if outlet.problem:
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
    outlet = Outlet(settings)
    with Interruption() as interruption, ResultsSeen(settings) as results:
        began = time.monotonic()
        sessions = 0
        is_pushed = False
        while not (interruption.wanted or outlet.problem):
            passed_s = time.monotonic() - began
            if passed_s >= sessions * _EVERY_S:
                outlet.send(live_session(utc_now(), seed, sessions), seconds_now())
                sessions += 1
                results.count()
            is_due = passed_s >= PUSH_AFTER_S and (results.number >= HISTORY_RESULTS or passed_s >= PUSH_WITHIN_S)
            if not is_pushed and is_due:
                push_file(config, selector(APP), PUSHED_COMMENT, "the demo", dry_run=False, as_json=False)
                is_pushed = True
            outlet.wait(_TURN_S)
        outlet.flush()
    return _ended(outlet)


class ResultsSeen:
    """Counts the records of the topic of results, within a `with` block."""

    def __init__(self, settings: Settings) -> None:
        self.number = 0
        self._places = [TopicPartition(settings.topics.results, number) for number in range(settings.partitions)]
        self._consumer = Consumer({**confluent_options(settings), "group.id": "traceweir-demo", "log_level": 0})

    def __enter__(self) -> ResultsSeen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def count(self) -> None:
        """Asks how many records there are; without an answer the number stays."""
        with suppress(KafkaException):
            self.number = sum(self._consumer.get_watermark_offsets(each, _ASKED_S)[1] for each in self._places)


def _ended(outlet: Outlet) -> int:
    if outlet.problem:
        complain(outlet.problem)
    return 1 if outlet.problem else 0
