"""Reads the whole topic `configs`, and writes versions to it; for commands. A worker follows the topic instead.

On Apache Kafka a version is one transaction. All pushes of a prefix share one transactional id: a push that starts fences
a running one, and sees every version that the running one has written. So two people cannot make the same version.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from aiokafka.errors import KafkaError, ProducerFenced

from traceweir.schemas.alert_rule import AlertRule
from traceweir.schemas.pushed_config import PushedConfig
from traceweir.schemas.text import printable
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.base import MAX_OUTPUT_BYTES, Output
from traceweir.streams.scoring.configs.alert_records import RuleChange, read_alert_change
from traceweir.streams.scoring.configs.records import (
    FOREIGN_FROM,
    HOME,
    ConfigKey,
    ConfigRecord,
    UnreadableConfigError,
    read_key,
    read_value,
    records_of,
)
from traceweir.streams.scoring.configs.selectors import in_words
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader
from traceweir.streams.worker.kafka.client_options import producer_options
from traceweir.streams.worker.kafka.embedded_broker import is_embedded
from traceweir.streams.worker.kafka.topic_admin import check_partitions, reach
from traceweir.streams.worker.runtime.delivery import (
    CheckpointDelivery,
    NoTransactionsError,
    PlainSends,
    Transaction,
    stop_in_time,
)
from traceweir.streams.worker.runtime.transactions import usable_transactions

ANSWER_TIMEOUT_S = 60.0
KeyedRecord = tuple[bytes, bytes | None]
"""Key and value of a record; without a value it is a tombstone."""


class ConfigTopicError(Exception):
    """The topic cannot be read or written, or has no such config; the message states the reason and the way out."""


class UnknownDigestError(ConfigTopicError):
    """No config of the topic has a digest."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """What the topic says."""

    current: dict[str, PushedConfig] = field(default_factory=dict)
    """The config of each selector that has one."""
    versions: dict[str, dict[int, PushedConfig]] = field(default_factory=lambda: defaultdict(dict))
    """All versions of each selector, withdrawals included, by number."""
    by_digest: dict[str, PushedConfig] = field(default_factory=dict)
    """The config of each digest."""
    alert_rules: dict[str, AlertRule] = field(default_factory=dict)
    """The pushed rules of alerts, by id."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each record that cannot be read."""
    newer: dict[ConfigKey, str] = field(default_factory=dict)
    """Why a record cannot be read, for each key whose last record is of a newer version of Traceweir."""
    unread_numbers: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The numbers of the versions of each selector that have a record which cannot be read."""

    def take(self, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Takes the next record of the topic."""
        named: ConfigKey | None = None
        try:
            named = read_key(partition, key)
            if named.kind == "alerts":
                self._put_alerts(key or b"", value)
                return
            self.newer.pop(named, None)
            self._put(read_value(named, value))
        except UnreadableConfigError as error:
            self.problems.append(f"the record at {partition}/{offset} is never in effect: {error}")
            if named is not None:
                self._put_unread(named, error)

    def _put_alerts(self, key: bytes, value: bytes | None) -> None:
        if isinstance(change := read_alert_change(key, value), RuleChange):
            if change.rule is None:
                self.alert_rules.pop(change.rule_id, None)
            else:
                self.alert_rules[change.rule_id] = change.rule

    def _put(self, found: ConfigRecord) -> None:
        kind, selector, *_ = found.key
        if found.pushed is None:
            if kind == "current" and selector is not None:
                self.current.pop(selector, None)
            elif found.key.digest is not None:
                self.by_digest.pop(found.key.digest, None)
        elif kind == "current":
            self.current[found.pushed.selector] = found.pushed
        elif kind == "version":
            self.versions[found.pushed.selector][found.pushed.version] = found.pushed
        elif found.pushed.digest is not None:
            self.by_digest[found.pushed.digest] = found.pushed

    def _put_unread(self, key: ConfigKey, error: UnreadableConfigError) -> None:
        if key.digest is not None:
            self.by_digest.pop(key.digest, None)
        if key.selector is not None and key.version is not None:
            self.unread_numbers[key.selector].add(key.version)
        if error.newer:
            self.newer[key] = str(error)

    def next_version(self, selector: str) -> int:
        """Returns the number of the next version of a selector: above all that keys name, so that none is used twice."""
        used = [*self.versions.get(selector, ()), *self.unread_numbers.get(selector, ())]
        return max((number for number in used if number < FOREIGN_FROM), default=0) + 1

    def newer_config(self, selector: str) -> str | None:
        """Returns why the latest config of a selector cannot be read, if a newer version of Traceweir wrote it."""
        latest = max(self.versions.get(selector, ()), default=0)
        for key, problem in self.newer.items():
            if key.selector == selector and (key.version is None or key.version > latest):
                return problem
        return None

    def refuse_over_newer(self, selector: str) -> None:
        """Checks that a push for a selector replaces no config of a newer version of Traceweir.

        Raises:
            ConfigTopicError: it would.
        """
        if (problem := self.newer_config(selector)) is not None:
            raise ConfigTopicError(
                f"nothing is written: the latest config for {printable(in_words(selector))} is of a newer version of Traceweir "
                f"({problem}). Push with that version, or run `traceweir config withdraw` with the same --app and "
                "--environment first"
            )

    def version(self, selector: str, number: int) -> PushedConfig:
        """Returns a version.

        Raises:
            ConfigTopicError: there is no such version.
        """
        known = self.versions.get(selector) or {}
        if number not in known:
            numbers = ", ".join(map(str, sorted(known)[-20:])) or "none"
            raise ConfigTopicError(
                f"there is no version {number} for {printable(in_words(selector))}; the versions are: {numbers}. "
                "`traceweir config history` lists them"
            )
        return known[number]

    def digest(self, start: str) -> PushedConfig:
        """Returns the config of a digest, or of the only digest that starts with this text.

        Raises:
            UnknownDigestError: there is none.
            ConfigTopicError: there are several.
        """
        found = [digest for digest in self.by_digest if digest.startswith(start)]
        if not found:
            raise UnknownDigestError(
                f"no digest starts with {start!r:.80}; copy the `config_digest` of a score. The config of a worker that may "
                "not write to the topic is not there"
            )
        if len(found) > 1:
            raise ConfigTopicError(f"several digests start with {start!r:.80}; copy the `config_digest` of a score")
        return self.by_digest[found[0]]


async def read_topic(settings: Settings, *, up_to_all: bool = False) -> TopicState:
    """Returns what the topic says now; with `up_to_all` also what open transactions write.

    Raises:
        KafkaUnreachableError: no broker answers.
        ConfigTopicError: the topic is missing or wrong, or cannot be read.
    """
    state = TopicState()
    async with BoundedReader(settings, settings.topics.configs, ConfigTopicError, up_to_all=up_to_all) as reader:
        async for record in reader.records():
            state.take(record.partition, record.offset, record.key, record.value)
    return state


async def push(settings: Settings, decide: Callable[[TopicState], PushedConfig | None]) -> PushedConfig | None:
    """Writes a version; returns it, or None if there is nothing to write.

    Args:
        settings: Where Kafka is.
        decide: Returns the version to write, from what the topic says; None writes nothing.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the settings require transactions that the broker lacks.
        ConfigTopicError: the topic is missing or wrong, another push has begun, the version is too large, or the brokers
            accept no records.
    """
    pushed: PushedConfig | None = None

    def records(state: TopicState) -> Sequence[KeyedRecord]:
        nonlocal pushed
        pushed = decide(state)
        return () if pushed is None else records_of(pushed)

    await write_records(settings, records)
    return pushed


async def write_records(settings: Settings, decide: Callable[[TopicState], Sequence[KeyedRecord]]) -> None:
    """Writes records to the topic together, and reads before what it says.

    Args:
        settings: Where Kafka is.
        decide: Returns the records to write, as pairs of key and value, from what the topic says.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the settings require transactions that the broker lacks.
        ConfigTopicError: the topic is missing or wrong, another push has begun, a record is too large, or the brokers
            accept no records.
    """
    embedded = is_embedded(await asyncio.to_thread(reach, settings))
    # Before a producer starts, because its transactional id fences others.
    if problems := await asyncio.to_thread(check_partitions, settings, [settings.topics.configs]):
        raise ConfigTopicError("\n".join(problems))
    transactions = await asyncio.to_thread(partial(usable_transactions, settings, embedded=embedded))
    options = producer_options(settings)
    name = f"{settings.topic_prefix}configs"
    timeout_s = settings.transaction_timeout_s
    delivery: CheckpointDelivery = (
        Transaction(options, name, timeout_s=timeout_s) if transactions else PlainSends(options)
    )
    try:
        # First: it fences other pushes, so that the state is complete.
        await _within_time(settings, delivery.start())
        state = await read_topic(settings, up_to_all=True)
        outputs = [Output(settings.topics.configs, HOME, key, value) for key, value in decide(state)]
        if not outputs:
            return
        if (size := max(len(output.key or b"") + len(output.value or b"") for output in outputs)) > MAX_OUTPUT_BYTES:
            raise ConfigTopicError(
                f"the config takes {size} bytes; a record has {MAX_OUTPUT_BYTES} at most. Shorten its prompts and patterns"
            )
        await _within_time(settings, delivery.send({}, outputs, {}))
    finally:
        await stop_in_time(delivery)


async def _within_time(settings: Settings, done: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            await done
    except ProducerFenced:
        raise ConfigTopicError(
            "another push of this prefix has started, so that this one has written nothing; look at `traceweir config "
            "history`, then push again"
        ) from None
    except NoTransactionsError as error:
        raise ConfigTopicError(str(error)) from error
    except (KafkaError, TimeoutError) as error:
        raise ConfigTopicError(
            f"Kafka at {settings.kafka_bootstrap_servers} did not confirm the config ({error!r}). Check that Kafka runs and "
            f"that this user may write to {settings.topics.configs}; `traceweir config show` says what is in effect"
        ) from error
