"""Holds what the topic `configs` says so far: the configs in effect, and the records that this worker cannot use."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from traceweir.schemas.dead_letter import Headers
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.metric import canonical
from traceweir.scorers.evaluation.plan import Challenger, ConfigError, Plan
from traceweir.streams.configs.records import (
    HOME,
    ConfigKey,
    ConfigRecord,
    UnreadableConfigError,
    config_id,
    read_key,
    read_record,
)
from traceweir.streams.configs.selectors import NO_CONFIGS, Configs

log = logging.getLogger(__name__)

PROBLEM_CHARS = 2_000
"""Maximum number of characters of a problem in the log."""
MAX_BAD_RECORDS = 1_000
"""Maximum number of bad records that are kept for dead letters; the log names the others."""
BEHIND_S = 30.0
"""Seconds that a partition waits for records of the topic that its former owner has read.

They were readable before, so that this takes milliseconds; only a topic that was created again lacks them.
"""


class TopicRecord(Protocol):
    """A record of the topic, as aiokafka parses it."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that is not a config, or a config that is invalid."""

    record: TopicRecord
    detail: str
    """Why, in a sentence for a person."""


class ConfigLog:
    """The configs of the topic, as one worker has read them; all its partitions share one object.

    Args:
        check: Returns the plan by which this worker can score with a config, which is passed as JSON; raises
            `ConfigError`.
    """

    def __init__(self, check: Callable[[bytes], Plan]) -> None:
        self._check = check
        self._in_effect: dict[str, str] = {}
        self._versions: dict[str, dict[int, str | None]] = defaultdict(dict)
        self._documents: dict[str, bytes] = {}
        self._usable: dict[str, str | None] = {}
        self._plans: dict[str, Plan] = {}
        self._digests: set[str] = set()
        self._used: set[str] = set()
        self._unusable: dict[str, str] = {}
        self._more = asyncio.Event()
        self.current: Configs = NO_CONFIGS
        """The latest usable config of each selector. A selector whose latest config is unusable keeps the former one."""
        self.position = 0
        """The offset below which every record was read."""
        self.bad_records: list[BadRecord] = []
        """The records that no worker of this version can use, in the order in which they were read."""

    @property
    def problems(self) -> list[str]:
        """A sentence for each selector whose latest config is not in effect; without text of records."""
        return list(self._unusable.values())

    def take(self, record: TopicRecord) -> None:
        """Takes the next record."""
        place = f"{record.partition}/{record.offset}"
        try:
            found = read_record(record.partition, record.key, record.value)
            self._put(found, place)
        except (UnreadableConfigError, ConfigError, ValueError, RecursionError) as error:
            self._refuse(record, place, error)
        if record.partition == HOME:
            self.note_position(record.offset + 1)

    def note_position(self, position: int) -> None:
        """Notes that every record below this offset was read: the gaps of transactions and compaction count as read."""
        if position > self.position:
            self.position = position
            self._more.set()
            self._more = asyncio.Event()

    async def reach(self, position: int) -> bool:
        """Waits until this position is read; returns False if that takes more than `BEHIND_S`."""
        try:
            async with asyncio.timeout(BEHIND_S):
                while self.position < position:
                    await self._more.wait()
        except TimeoutError:
            log.warning(
                "configs: offset %d is not read after %g s, although the former owner of a partition has read it; if the "
                "topic was created again, push the configs again",
                position - 1,
                BEHIND_S,
            )
            return False
        return True

    def usable(self, configs: Configs) -> Configs:
        """Returns the configs with those of this worker in place of those that it lacks or cannot use."""
        if all(self._problem_of(name) is None for _, name in configs):
            return configs
        mine = dict(self.current)
        found = [(each, name if self._problem_of(name) is None else mine.get(each)) for each, name in configs]
        return tuple((each, name) for each, name in found if name is not None)

    def documents(self, configs: Configs) -> Mapping[str, bytes]:
        """Returns the documents of usable configs, as JSON, by config id; asked before the first session is scored by them."""
        self._used.update(name for _, name in configs)
        return {name: self._documents[name] for _, name in configs}

    def ask_judges(self, configs: Configs) -> bool:
        """Returns whether a criterion of one of these usable configs asks a judge."""
        return any(self._plans[name].judged for _, name in configs)

    @property
    def challengers(self) -> Mapping[str, Challenger]:
        """The challengers of the current configs, by their ids."""
        found = (self._plans[name].challenger for _, name in self.current)
        return {each.id: each for each in found if each is not None}

    def without_record(self, file: Plan) -> Mapping[str, Plan]:
        """Returns the plans whose digest has no record on the topic, by digest; challengers are among them.

        Args:
            file: The plan of the worker's config file, which counts where no config of the topic does. The others are in
                effect, or were when sessions were begun that this worker has scored.
        """
        names = self._used | {name for _, name in self.current}
        plans = [file, *(self._plans[name] for name in sorted(names))]
        plans += [plan.challenger.plan for plan in plans if plan.challenger is not None]
        return {plan.digest: plan for plan in plans if plan.digest not in self._digests}

    def bad_records_from(self, partition: int, offset: int) -> Sequence[BadRecord]:
        """Returns the bad records of a partition from this offset on."""
        if not self.bad_records:
            return ()
        return [
            each for each in self.bad_records if each.record.partition == partition and each.record.offset >= offset
        ]

    def _put(self, found: ConfigRecord, place: str) -> None:
        kind, selector, _, digest = found.key
        if digest is not None and found.pushed is not None:
            self._digests.add(digest)
        elif digest is not None:
            self._digests.discard(digest)
        if found.pushed is None:
            if kind == "current" and selector is not None:
                self._unusable.pop(selector, None)
                if self._in_effect.pop(selector, None) is not None:
                    self._changed()
                    log.info("configs: the config of %s is withdrawn", printable(selector))
            return
        pushed, name = found.pushed, None
        if pushed.config is not None:
            name = config_id(pushed.config)
            self._documents.setdefault(name, canonical(pushed.config).encode())
        if kind == "version":
            self._versions[pushed.selector][pushed.version] = name
        if name is None or kind != "current":
            return
        if (problem := self._problem_of(name)) is not None:
            raise UnreadableConfigError(problem)
        self._unusable.pop(pushed.selector, None)
        if self._in_effect.get(pushed.selector) != name:
            self._in_effect[pushed.selector] = name
            self._changed()
            log.info(
                "configs: version %d of %s (digest %s) at %s is in effect from the next session on",
                pushed.version,
                printable(pushed.selector),
                printable(str(pushed.digest))[:12],
                place,
            )

    def _changed(self) -> None:
        self.current = tuple(sorted(self._in_effect.items()))

    def _use_latest_version(self, selector: str) -> None:
        """Finds the former config of a selector by its versions: after compaction only the unusable record has its key."""
        if selector in self._in_effect:
            return
        for _, name in sorted(self._versions[selector].items(), reverse=True):
            if name is None:  # it was withdrawn
                return
            if self._problem_of(name) is None:
                self._in_effect[selector] = name
                self._changed()
                return

    def _problem_of(self, name: str) -> str | None:
        """Returns why this worker cannot use a config; None if it can."""
        if name not in self._documents:
            return "its document is not on the topic"
        if name not in self._usable:
            try:
                self._plans[name] = self._check(self._documents[name])
            except ConfigError as error:
                self._usable[name] = "; ".join(error.problems)
            else:
                self._usable[name] = None
        return self._usable[name]

    def _refuse(self, record: TopicRecord, place: str, error: Exception) -> None:
        key = _key_of(record)
        is_newer = isinstance(error, UnreadableConfigError) and error.newer
        if key is not None and key.digest is not None and is_newer:
            self._digests.add(key.digest)  # a record of this version in its place would take the newer one away
        elif key is not None and key.digest is not None:
            self._digests.discard(key.digest)  # compaction leaves only this record
        if not is_newer and len(self.bad_records) < MAX_BAD_RECORDS:
            self.bad_records.append(BadRecord(record, f"{error}; the former config stays in effect"))
        if key is not None and key.kind == "current" and key.selector is not None:
            self._use_latest_version(key.selector)
            self._unusable[key.selector] = (
                f"the config at {place} of the topic configs cannot be used by this worker, which goes on with the former "
                "one; its log says why"
            )
        log.warning(
            "configs: the record at %s is not used, and the former config stays in effect: %s",
            place,
            printable(str(error), PROBLEM_CHARS),
        )


def _key_of(record: TopicRecord) -> ConfigKey | None:
    """Returns what the key of the record says; None if it says nothing."""
    try:
        return read_key(record.partition, record.key)
    except UnreadableConfigError:
        return None
