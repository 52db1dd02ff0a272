"""Follows the rules and the accepted alerts on the topic `configs`."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.scoring.configs.alert_records import AcceptedAlert, RuleChange, read_alert_change
from traceweir.streams.scoring.configs.records import HOME, UnreadableConfigError, read_key
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.rule_problem import rule_problem
from traceweir.streams.tools.alerts.state_topic import AlertsError
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)


class RuleLog:
    """The records about alerts, from `open` to `close`.

    Args:
        settings: Where Kafka is.
        reader: Has the parameters of `BoundedReader`, and reads the topic.
    """

    def __init__(self, settings: Settings, *, reader: Callable[..., BoundedReader] = BoundedReader) -> None:
        self._settings = settings
        self._reads = reader
        self._reader: BoundedReader | None = None
        self._following: asyncio.Task[None] | None = None
        self._waiting: deque[Any] = deque()
        self.position = 0
        """The offset of the next record."""

    async def open(self, begin: int) -> None:
        """Reads from an offset to the end, and follows the topic from then on; `apply` gives what was read to a watch.

        Raises:
            KafkaUnreachableError: the topic cannot be read now.
        """
        await self.close()
        try:
            reader = self._reads(self._settings, self._settings.topics.configs, AlertsError, partitions=(HOME,))
            self._reader = await reader.__aenter__()
            first = reader.begins[HOME] if begin > reader.ends[HOME] else max(begin, reader.begins[HOME])
            self.position = reader.ends[HOME]
            async for record in reader.records({HOME: first}):
                self._waiting.append(record)
        except AlertsError as error:
            raise KafkaUnreachableError(str(error)) from error
        self._following = asyncio.create_task(self._follow(reader))

    def apply(self, watch: AlertWatch) -> bool:
        """Gives what was read to a watch; returns whether something was.

        Raises:
            KafkaUnreachableError: the topic cannot be read any more.
        """
        found = bool(self._waiting)
        while self._waiting:
            record = self._waiting.popleft()
            self.position = max(self.position, record.offset + 1)
            _apply(watch, record)
        if self._following is not None and self._following.done():
            try:
                self._following.result()
            except AlertsError as error:
                raise KafkaUnreachableError(str(error)) from error
        return found

    async def close(self) -> None:
        """Stops following."""
        following = self._following
        self._following = None
        if following is not None:
            following.cancel()
            await asyncio.wait({following})
        reader = self._reader
        self._reader = None
        if reader is not None:
            await reader.__aexit__(None, None, None)
        self._waiting.clear()

    async def _follow(self, reader: BoundedReader) -> None:
        async for record in reader.following(lambda trouble: log.warning("%s", trouble)):
            self._waiting.append(record)


def _apply(watch: AlertWatch, record: Any) -> None:
    try:
        # Of other records only the key is looked at, which a worker has checked.
        if read_key(record.partition, record.key).kind != "alerts":
            return
    except UnreadableConfigError:
        return
    try:
        change = read_alert_change(record.key or b"", record.value)
    except UnreadableConfigError as error:
        log.warning(
            "configs: the record at %s/%s is not used: %s",
            record.partition, record.offset, printable(str(error), 2_000),
        )  # fmt: skip
        return
    if isinstance(change, RuleChange):
        if change.rule is not None and (problem := rule_problem(change.rule)) is not None:
            log.warning("rule %s is not watched: %s", printable(change.rule_id, 100), problem)
            return
        watch.put_rule(change.rule_id, change.rule)
        log.info("rules that are watched: %s", ", ".join(printable(name, 100) for name in watch.rules))
    elif isinstance(change, AcceptedAlert):
        found = watch.accept(change.alert_id)
        log.info("alert %s %s", printable(change.alert_id, 100), "accepted" if found else "is not raised any more")
