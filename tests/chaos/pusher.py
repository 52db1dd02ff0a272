"""Pushes configs in a round, as `traceweir config push` does, and writes records that are no config."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from confluent_kafka import Producer
from tests.audit.committed import Row
from tests.audit.config_topic import ConfigTopic
from tests.support.ledger import PARTITIONS
from tests.support.pushes import Document, Push, Pushes

from traceweir.schemas.pushed_config import PushedConfig
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.config_topic import ConfigTopicError, TopicState, push
from traceweir.streams.worker.kafka.client_options import IDEMPOTENT
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

AT_ONCE = 2
"""Number of pushes that can run at the same time: the later one fences the other."""
LAST_TRIES = 5
FLUSH_S = 60.0
NEVER_PUSHED = "newer"
"""The selector of the records of a newer Traceweir: a round pushes no config for it, so that they refuse no push."""
Pair = tuple[bytes | None, bytes | None]
"""The key and the value of a record."""


class ConfigPusher:
    """Pushes configs while workers run; nothing waits for it.

    Args:
        settings: Where Kafka is.
        file: The config file of the workers.
        apps: The apps of the load.
        seed: Determines what is pushed.
    """

    def __init__(self, settings: Settings, file: Document, apps: Sequence[str], seed: int) -> None:
        self._settings, self._file = settings, file
        self._drawn, self._rnd = Pushes(file, apps), random.Random(f"pushed configs {seed}")
        self._pool, self._running = ThreadPoolExecutor(AT_ONCE), list[Future[None]]()
        self._refused, self._letters = set[Pair](), set[Pair]()
        self.counters: Counter[str] = Counter()
        """How pushes ended."""

    def __enter__(self) -> ConfigPusher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    @property
    def busy(self) -> bool:
        """Whether a push is running.

        Raises:
            Exception: A push has raised what is no error of Kafka.
        """
        for done in [each for each in self._running if each.done()]:
            self._running.remove(done)
            done.result()
        return bool(self._running)

    def push(self) -> None:
        """Begins a push; whether it has written its version, the topic says."""
        pushed = self._drawn.draw(self._rnd)

        def run() -> None:
            try:
                asyncio.run(push(self._settings, self._decide(pushed)))
            except (ConfigTopicError, KafkaUnreachableError):
                self.counters["push failed"] += 1
            else:
                self._drawn.note(pushed)

        self._running.append(self._pool.submit(run))

    def push_the_last(self) -> None:
        """Puts another config in effect for each session, and waits until the versions are written.

        Raises:
            ConfigTopicError: Each of several pushes has failed, though nothing disturbs them.
            KafkaUnreachableError: Likewise.
        """
        for pushed in self._drawn.draw_the_last(self._rnd):
            self._push_at_last(pushed)

    def _push_at_last(self, pushed: Push) -> None:
        for left in reversed(range(LAST_TRIES)):
            try:
                asyncio.run(push(self._settings, self._decide(pushed)))
                break
            except (ConfigTopicError, KafkaUnreachableError):
                self.counters["push failed"] += 1
                if not left:
                    raise
        self._drawn.note(pushed)

    def _decide(self, pushed: Push) -> Callable[[TopicState], PushedConfig]:
        def decide(state: TopicState) -> PushedConfig:
            if pushed.config is not None:
                state.refuse_over_newer(pushed.selector)
            number = state.next_version(pushed.selector)
            return self._drawn.version(pushed).model_copy(update={"version": number})

        return decide

    def write_refused(self) -> None:
        """Begins to write a record that is no config."""
        found = self._drawn.refusal(self._rnd, PARTITIONS, newer=NEVER_PUSHED)
        self._refused.add((found.key, found.value))
        if found.is_letter:
            self._letters.add((found.key, found.value))

        def run() -> None:
            options = {**IDEMPOTENT, "bootstrap.servers": self._settings.kafka_bootstrap_servers, "log_level": 0}
            producer = Producer({**options, "error_cb": lambda _: None})
            producer.produce(self._settings.topics.configs, found.value, found.key, found.partition)
            producer.flush(FLUSH_S)

        self._running.append(self._pool.submit(run))

    def topic(self, rows: Sequence[Row]) -> ConfigTopic:
        """Returns what the topic says, from its committed records."""
        return ConfigTopic(rows, self._refused, {read_plan(self._file).digest})

    def letters(self, rows: Sequence[Row]) -> Collection[Pair]:
        """Returns the records that must become dead letters, of those that were committed."""
        return [(row.key, row.value) for row in rows if (row.key, row.value) in self._letters]
