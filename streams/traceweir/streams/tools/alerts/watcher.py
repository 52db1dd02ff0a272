"""Watches the topic of results as a member of a consumer group: one process works, the others wait to take over.

The owner writes alerts, state and offsets in one transaction, whose id fences a former owner. The state says where the
topics were read, so that the offsets of the group are for other tools only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    GroupAuthorizationFailedError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
)

from traceweir.schemas.alert import Alert
from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.anchor_evidence import read_evidence
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence
from traceweir.streams.tools.alerts.rule_log import RuleLog
from traceweir.streams.tools.alerts.score_outline import read_score
from traceweir.streams.tools.alerts.state_rows import LogPlace, StateFormatError
from traceweir.streams.tools.alerts.state_topic import AlertsError, StateTopic, alerts_group
from traceweir.streams.tools.alerts.write_pace import write_after_s
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.export.batch import done_unless
from traceweir.streams.tools.export.group_consumer import group_consumer
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.tools.export.starting import Kept, KnownPartition, start_of
from traceweir.streams.worker.kafka.consumer_tasks import ConsumerTaskEndedError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.fetch import read_as_parsed
from traceweir.streams.worker.kafka.member_offsets import member_of
from traceweir.streams.worker.kafka.one_owner import OneOwnerAssignor
from traceweir.streams.worker.kafka.read_position import read_position
from traceweir.streams.worker.kafka.request_thread import in_request_thread
from traceweir.streams.worker.kafka.silence import LOST_AFTER_S, asking_bootstrap_servers, failing_with_client
from traceweir.streams.worker.kafka.topic_admin import check_partitions, topic_ids

log = logging.getLogger(__name__)

READ_FOR_S = 0.5
MAX_RECORDS = 5_000
ATTRIBUTE_EVERY_S = 300.0
"""Seconds after which the verdicts on anchors are read again while an alert is raised."""
RETRY_AFTER_S = (1.0, 2.0, 5.0, 10.0)
"""Seconds until Kafka is tried again, by the number of failures so far; then the last of them."""


class Watcher:
    """Watches until it is told to stop.

    Args:
        settings: Where Kafka is.
        lost_after_s: Seconds without an answer of Kafka after which its client is started again.
        now: Seconds of a monotonic clock.
    """

    def __init__(
        self, settings: Settings, *, lost_after_s: float = LOST_AFTER_S, now: Callable[[], float] = monotonic
    ) -> None:
        self._settings = settings
        self._lost_after_s = lost_after_s
        self._now = now
        self._topic = settings.topics.results
        self._group = alerts_group(settings.topic_prefix)
        self._state = StateTopic(settings)
        self._rules = RuleLog(settings)
        self._assignor = OneOwnerAssignor()
        self._assigned: frozenset[TopicPartition] | None = None
        """What was assigned and is not taken over yet; None: nothing."""
        self._watch: AlertWatch | None = None
        """None where another process owns the partitions, or until the state is read."""
        self._positions: dict[TopicPartition, int] = {}
        self._results_id: str | None = None
        self._is_changed = False
        self._written_s = now()
        self._attributed_s = now() - ATTRIBUTE_EVERY_S
        self._anchors = AnchorReader(settings)
        self._reading: asyncio.Task[dict[str, AnchorEvidence] | None] | None = None
        self._losses = 0
        """How often partitions were taken away."""
        self._lag = 0
        self._writing = asyncio.Lock()
        self._former_counts = Counter[str]()
        self.readiness = Readiness()
        """How far this process has come with Kafka."""
        self.written = Counter[str]()
        """Alerts that were written since the start, by state."""

    @property
    def counts(self) -> Counter[str]:
        """Scores since the start, by what became of them, as `AlertWatch` counts them."""
        return self._former_counts + (Counter() if self._watch is None else self._watch.counts)

    @property
    def raised(self) -> Sequence[Alert]:
        """The alerts that are raised now; none where another process watches."""
        return () if self._watch is None else self._watch.raised

    @property
    def rules(self) -> Collection[str]:
        """The ids of the rules that are watched here."""
        return () if self._watch is None else self._watch.rules.keys()

    @property
    def lag(self) -> int | None:
        """Number of unread records; None where another process watches."""
        return None if self._watch is None else self._lag

    async def run(self, stop: asyncio.Event) -> None:
        """Watches until `stop` is set; starts again if Kafka fails.

        Raises:
            KafkaUnreachableError: no broker answered at the start.
            AlertsError: at the start a topic was missing or wrong; or this user lacks a right.
        """
        topics = self._settings.topics
        names = [topics.results, topics.configs, topics.alerts, topics.alerts_state]
        if problems := await in_request_thread(check_partitions, self._settings, names):
            raise AlertsError("\n".join(problems))
        read_as_parsed([self._topic])
        failures = 0
        while not stop.is_set():
            read_before = self.counts["read"]
            try:
                await self._follow(stop)
            except _PASSING as error:
                failures = 0 if self.counts["read"] > read_before else failures
                self.readiness.trouble = f"no score is read now: {printable(str(error) or repr(error), 1_000)}"
                log.warning("%s", self.readiness.trouble)
                wait_s = RETRY_AFTER_S[min(failures, len(RETRY_AFTER_S) - 1)]
                failures += 1
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), wait_s)
            except StateFormatError as error:
                raise AlertsError(str(error)) from error
            finally:
                await self._lose()

    async def _follow(self, stop: asyncio.Event) -> None:
        consumer = group_consumer(self._settings, self._group, assignor=self._assignor)
        consumer.subscribe([self._topic], listener=_Ownership(self, consumer))
        self.readiness.reach("joining")
        last_answer = self.readiness.last_answer
        try:
            # A start waits for the group without a limit, and a stop signal must not.
            async with asking_bootstrap_servers(self._settings, last_answer):
                has_joined = await done_unless(stop, consumer.start())
            if has_joined:
                async with failing_with_client(consumer, lost_after_s=self._lost_after_s, last=last_answer):
                    while not stop.is_set():
                        await self._round(consumer, stop)
                    await self._write_at_the_end(consumer)
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
            raise AlertsError(
                f"Kafka does not allow this user what the consumer group {self._group!r} needs ({error}): grant the rights of "
                "docs/access-control.md, and start `traceweir alerts run` again"
            ) from error
        finally:
            self.readiness.reach("stopping" if stop.is_set() else "starting")
            await consumer.stop()

    async def _round(self, consumer: AIOKafkaConsumer, stop: asyncio.Event) -> None:
        if self._assigned is not None:
            assigned = self._assigned
            self._assigned = None
            if assigned:
                await done_unless(stop, self._take_over(consumer, assigned))
            else:
                await self._lose()
                log.info("waiting: another process of the group watches")
                self.readiness.reach_ready(())
            return
        watch = self._watch
        if watch is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), READ_FOR_S)
            return
        behind = self._behind(consumer)
        self._pause(consumer, watch.too_far_ahead(behind))
        try:
            found = await consumer.getmany(timeout_ms=int(READ_FOR_S * 1000), max_records=MAX_RECORDS)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError):
            # The places of the state are set again, as at the start.
            if self._watch is watch:
                self._assigned = frozenset(consumer.assignment())
            return
        if self._watch is not watch:
            return
        if self._rules.apply(watch):
            self._is_changed = True
        self._take(watch, found)
        for _ in watch.ticking(self._now(), self._behind(consumer)):
            # A minute of 10,000 streams takes seconds, and heartbeats must not wait for them.
            await asyncio.sleep(0)
            if self._watch is not watch:
                return
        self._attribute(watch)
        if watch.has_alerts or (
            self._is_changed and self._now() - self._written_s >= write_after_s(watch.changed_streams)
        ):
            await self._write(consumer, watch)

    def _attribute(self, watch: AlertWatch) -> None:
        """Says what the anchors show, which another task reads from time to time while an alert is raised."""
        reading = self._reading
        if reading is not None and reading.done():
            self._reading = None
            if (anchors := reading.result()) is not None:
                watch.attribute(anchors)
        elif reading is None and watch.waits_for_anchors and self._now() - self._attributed_s >= ATTRIBUTE_EVERY_S:
            self._attributed_s = self._now()
            self._reading = asyncio.create_task(read_evidence(self._anchors))

    def _take(self, watch: AlertWatch, found: Mapping[TopicPartition, Sequence[Any]]) -> None:
        for place, records in found.items():
            for record in records:
                if (score := read_score(record.value)) is None:
                    watch.counts["unreadable"] += 1
                else:
                    watch.add(place.partition, record.offset, score)
            self._positions[place] = records[-1].offset + 1
            self._is_changed = True

    async def _write(self, consumer: AIOKafkaConsumer, watch: AlertWatch) -> None:
        async with self._writing:
            if self._watch is not watch:
                return
            results = {place.partition: offset for place, offset in self._positions.items()}
            behind = self._behind(consumer)
            for place in self._positions:
                if place.partition not in behind:
                    # A log that has lost its end, and keeps its id, never reaches the offset that was read before.
                    watch.forget_offsets(place.partition)
            if watch.reads_again(results):
                return
            cut = watch.cut(LogPlace(results, self._results_id, self._rules.position))
            try:
                with self.readiness.committing():
                    await self._state.write(consumer, cut, self._positions)
            except (CommitFailedError, IllegalStateError):
                log.info("another process of the group watches now; it goes on from the last state that was written")
                await self._lose()
                return
            self._is_changed = False
            self._written_s = self._now()
            for alert in cut.alerts:
                self.written[alert.state] += 1
                _log_alert(alert, alert.state if alert.resolution is None else f"resolved ({alert.resolution})")
            for alert, reason in cut.attributed:
                _log_alert(alert, f"has another verdict ({printable(reason, 500)})")

    async def _write_at_the_end(self, consumer: AIOKafkaConsumer) -> None:
        watch = self._watch
        if watch is not None and self._is_changed:
            await self._write(consumer, watch)

    async def _take_over(self, consumer: AIOKafkaConsumer, assigned: Collection[TopicPartition]) -> None:
        losses = self._losses
        await self._lose()
        self.readiness.reach("catching up")
        rows = await self._state.open()
        watch = AlertWatch()
        place = watch.load(rows)
        if not rows:
            # After the topic of the state was deleted. They are written with its first rows, and so once.
            watch.resolve_lost(await self._state.read_raised(), utc_now())
        await self._rules.open(place.configs)
        self._rules.apply(watch)
        # A reading that was cancelled may still use the former one, in its thread.
        self._anchors = AnchorReader(self._settings)
        self._results_id = (await in_request_thread(topic_ids, self._settings, [self._topic])).get(self._topic)
        begins = await consumer.beginning_offsets(assigned)
        ends = await consumer.end_offsets(assigned)
        positions = {}
        for each in sorted(assigned):
            stood = place.results.get(each.partition)
            kept = None if stood is None else Kept(stood, place.results_id, utc_now())
            known = KnownPartition(begins[each], ends[each], stood, kept, self._results_id)
            start = start_of(known, only_new=False, use="watched")
            if start.unusual:
                log.warning("%s[%s] is read from offset %s: %s", each.topic, each.partition, start.offset, start.why)
                is_other_topic = place.results_id is not None and place.results_id != self._results_id
                if is_other_topic or start.offset <= (stood or 0):
                    watch.forget_offsets(each.partition)
            consumer.seek(each, start.offset)
            positions[each] = start.offset
        for partition in place.results.keys() - {each.partition for each in assigned}:
            # The topic was made again with fewer partitions.
            watch.forget_offsets(partition)
        if self._losses != losses or self._assigned is not None or consumer.assignment() != set(assigned):
            return
        self._positions = positions
        self._watch = watch
        self._is_changed = bool(not rows)
        self._written_s = self._now()
        self.readiness.reach_ready([each.partition for each in assigned])
        log.info(
            "watching %s as the owner of the group %s; rules: %s", self._topic, self._group,
            ", ".join(printable(name, 100) for name in watch.rules),
        )  # fmt: skip

    def _behind(self, consumer: AIOKafkaConsumer) -> set[int]:
        """Returns the partitions that have unread records, or whose end is not known yet."""
        behind = set()
        self._lag = 0
        for place, position in self._positions.items():
            end = consumer.highwater(place)
            # What follows the last record can be the end of a transaction, which is no record.
            at = max(position, read_position(consumer, place) or 0)
            if end is None or at < end:
                behind.add(place.partition)
                self._lag += 0 if end is None else end - at
        return behind

    def _pause(self, consumer: AIOKafkaConsumer, ahead: set[int]) -> None:
        for place in consumer.assignment():
            if place.partition in ahead:
                consumer.pause(place)
            else:
                consumer.resume(place)

    async def _lose(self) -> None:
        """Forgets the state: another process may own the partitions."""
        self._former_counts = self.counts
        self._watch = None
        reading = self._reading
        self._reading = None
        if reading is not None:
            reading.cancel()
            # An error of a reading that nobody needs is no error.
            await asyncio.gather(reading, return_exceptions=True)
        await self._rules.close()
        await self._state.close()

    async def leave(self) -> None:
        """Ends the write in work before partitions move."""
        self._losses += 1
        self._assigned = None
        self.readiness.reach("joining")
        self._former_counts = self.counts
        self._watch = None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.session_timeout_s / 2):
                await self._writing.acquire()
            self._writing.release()

    def note_assignment(self, consumer: AIOKafkaConsumer, places: Collection[TopicPartition]) -> None:
        """Lets the next round take over, outside of the rebalance, in which no heartbeat is sent."""
        self._assigned = frozenset(places)
        with suppress(CommitFailedError):
            self._assignor.note_owner(member_of(consumer).generation, owns=bool(places))


def _log_alert(alert: Alert, what: str) -> None:
    log.warning(
        "alert %s %s: rule %s, %s %s, verdict %s", alert.alert_id, what, printable(alert.rule, 100),
        printable(alert.stream.metric, 100), alert.stream.level, alert.verdict,
    )  # fmt: skip


class _Ownership(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    def __init__(self, watcher: Watcher, consumer: AIOKafkaConsumer) -> None:
        self._watcher = watcher
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Waits for the write in work."""
        await self._watcher.leave()

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Lets the watcher take over."""
        self._watcher.note_assignment(self._consumer, assigned)


_PASSING = (KafkaUnreachableError, ConsumerTaskEndedError, KafkaError, OSError)
"""Errors after which a new attempt can succeed."""
