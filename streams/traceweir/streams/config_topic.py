"""Reads the whole topic `configs`, and writes versions to it; for commands. A worker follows the topic instead.

On Apache Kafka a version is one transaction. All pushes of a prefix share one transactional id: a push that starts fences
a running one, and sees every version that the running one has written. So two people cannot make the same version.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from aiokafka.errors import KafkaError, ProducerFenced

from traceweir.schemas.pushed_config import PushedConfig
from traceweir.schemas.text import printable
from traceweir.streams.configs.records import HOME, UnreadableConfigError, read_record, records_of
from traceweir.streams.configs.selectors import in_words
from traceweir.streams.kafka.bounded_reader import BoundedReader
from traceweir.streams.kafka.embedded_broker import is_embedded
from traceweir.streams.kafka.topic_admin import reach
from traceweir.streams.runtime.delivery import Delivery, NoTransactionsError, PlainSends, Transaction
from traceweir.streams.settings import Settings, aiokafka_options
from traceweir.streams.stages.base import MAX_OUTPUT_BYTES, Output

ANSWER_TIMEOUT_S = 60.0
STOP_WITHIN_S = 5.0


class ConfigTopicError(Exception):
    """The topic cannot be read or written, or has no such config; the message states the reason and the way out."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """What the topic says."""

    current: dict[str, PushedConfig] = field(default_factory=dict)
    """The config of each selector that has one."""
    versions: dict[str, dict[int, PushedConfig]] = field(default_factory=lambda: defaultdict(dict))
    """All versions of each selector, withdrawals included, by number."""
    by_digest: dict[str, PushedConfig] = field(default_factory=dict)
    """The config of each digest."""
    problems: list[str] = field(default_factory=list)
    """A sentence for each record that cannot be read."""
    newer: list[str] = field(default_factory=list)
    """A sentence for each record of a newer version of Traceweir; its version numbers are unknown here."""

    def next_version(self, selector: str) -> int:
        """Returns the number of the next version of a selector."""
        return max(self.versions.get(selector) or {}, default=0) + 1

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
            ConfigTopicError: there is none, or there are several.
        """
        found = [digest for digest in self.by_digest if digest.startswith(start)]
        if len(found) == 1:
            return self.by_digest[found[0]]
        why = "several digests start" if found else "no digest starts"
        raise ConfigTopicError(
            f"{why} with {start!r:.80}; copy the `config_digest` of a score. The digest of a worker's config file is not on "
            "the topic"
        )


async def read_topic(settings: Settings, *, up_to_all: bool = False) -> TopicState:
    """Returns what the topic says now; with `up_to_all` also what open transactions write.

    Raises:
        KafkaUnreachableError: no broker answers.
        ConfigTopicError: the topic is missing or wrong, or cannot be read.
    """
    state = TopicState()
    async with BoundedReader(settings, settings.topics.configs, ConfigTopicError, up_to_all=up_to_all) as reader:
        async for record in reader.records():
            _take(state, record.partition, record.offset, record.key, record.value)
    return state


def _take(state: TopicState, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
    try:
        found = read_record(partition, key, value)
    except UnreadableConfigError as error:
        state.problems.append(f"the record at {partition}/{offset} is never in effect: {error}")
        if error.newer:
            state.newer.append(str(error))
        return
    if found.pushed is None:
        if found.kind == "current" and found.selector is not None:
            state.current.pop(found.selector, None)
    elif found.kind == "current":
        state.current[found.pushed.selector] = found.pushed
    elif found.kind == "version":
        state.versions[found.pushed.selector][found.pushed.version] = found.pushed
    elif found.pushed.digest is not None:
        state.by_digest[found.pushed.digest] = found.pushed


async def push(settings: Settings, decide: Callable[[TopicState], PushedConfig | None]) -> PushedConfig | None:
    """Writes a version; returns it, or None if there is nothing to write.

    Args:
        settings: Where Kafka is.
        decide: Returns the version to write, from what the topic says; None writes nothing.

    Raises:
        KafkaUnreachableError: no broker answers.
        ConfigTopicError: the topic is missing or wrong, another push has begun, the version is too large, or the brokers
            accept no records.
    """
    embedded = is_embedded(await asyncio.to_thread(reach, settings))
    await read_topic(settings)  # finds a missing topic before anything is written
    transactions = settings.delivery != "at_least_once" and not embedded
    options = aiokafka_options(settings)
    name = f"{settings.topic_prefix}configs"
    delivery: Delivery = Transaction(options, name) if transactions else PlainSends(options)
    try:
        await _within_time(settings, delivery.start())  # first: it fences other pushes, so that the state is complete
        state = await read_topic(settings, up_to_all=True)
        if state.newer:  # the next number could be that of a version that only a newer Traceweir reads
            raise ConfigTopicError(f"nothing is written, because the topic has newer records: {state.newer[0]}")
        pushed = decide(state)
        if pushed is None:
            return None
        outputs = [Output(settings.topics.configs, HOME, key, value) for key, value in records_of(pushed)]
        if (size := max(len(output.key or b"") + len(output.value or b"") for output in outputs)) > MAX_OUTPUT_BYTES:
            raise ConfigTopicError(
                f"the config takes {size} bytes; a record has {MAX_OUTPUT_BYTES} at most. Shorten its prompts and patterns"
            )
        await _within_time(settings, delivery.send([], outputs, {}))
        return pushed
    finally:
        with suppress(TimeoutError, KafkaError):  # without the limit, `stop` waits for a dead broker without end
            await asyncio.wait_for(delivery.stop(), STOP_WITHIN_S)


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
