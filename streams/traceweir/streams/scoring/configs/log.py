"""Holds what the topic `configs` says so far: the configs in effect, and the records that this worker cannot use.

The newest record of a selector counts before older ones are checked, so that a good config takes effect without a wait
for the checks of bad ones before it. If it cannot be used, the latest version before it counts. What counts so follows from
the newest record of each key, and a worker that starts after compaction has the configs of one that runs.
Nothing here is slow but `check` and `parsed`, which a worker calls in a thread.
"""

from __future__ import annotations

import asyncio
import bisect
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Challenger, Plan
from traceweir.streams.scoring.configs.records import HOME
from traceweir.streams.scoring.configs.selectors import NO_CONFIGS, Configs
from traceweir.streams.scoring.configs.topic_record import BadRecord, ParsedRecord, TopicRecord, parsed

log = logging.getLogger(__name__)

PROBLEM_CHARS = 2_000
"""Maximum number of characters of a problem in the log."""
DETAIL_CHARS = 4_000
"""Maximum number of characters of a problem that is kept for a dead letter."""
MAX_BAD_RECORDS = 1_000
"""Maximum number of bad records that are kept for dead letters; the log names the others."""
MAX_BAD_BYTES = 64 << 20
"""Maximum number of bytes of the values of these records."""
BEHIND_S = 30.0
"""Seconds that a partition waits for records of the topic that its former owner has read.

They were readable before, so that this takes milliseconds; only a topic that was created again lacks them.
"""


class _Version(NamedTuple):
    offset: int
    """The offset of the newest record of its key."""
    name: str | None
    """The id of its config; None for a withdrawal."""


class ConfigLog:
    """The configs of the topic, as one worker has read them; all its partitions share one object.

    A reader calls `read` for each record, `check` for each id of `unchecked`, and then `settle`; what the records say
    counts from then on. Afterwards it checks those of `unchecked_older` one by one, for their dead letters.

    Args:
        check: Returns the plan by which this worker can score with a config, which is passed as JSON; raises
            `ConfigError`.
    """

    def __init__(self, check: Callable[[bytes], Plan]) -> None:
        self._check = check
        self._in_effect: dict[str, str] = {}
        self._versions: dict[str, dict[int, _Version]] = defaultdict(dict)
        self._refused: dict[str, int] = {}
        """The offset of the newest record of each selector whose newest record cannot be used."""
        self._documents: dict[str, bytes] = {}
        self._usable: dict[str, str | None] = {}
        self._plans: dict[str, Plan] = {}
        self._digests: set[str] = set()
        self._used: set[str] = set()
        self._unusable: dict[str, str] = {}
        self._unsettled: dict[str, list[ParsedRecord]] = defaultdict(list)
        self._older: deque[ParsedRecord] = deque()
        self._bad_bytes = 0
        self._more = asyncio.Event()
        self.current: Configs = NO_CONFIGS
        """The latest config of each selector; where it is unusable, that of the latest usable version before it."""
        self.position = 0
        """The offset below which every record was read."""
        self.bad_records: list[BadRecord] = []
        """The records that no worker of this version can use, in the order of partitions and offsets."""

    @property
    def problems(self) -> list[str]:
        """A sentence for each selector whose latest config is not in effect; without text of records."""
        return [self._unusable[selector] for selector in sorted(self._unusable)]

    def take(self, record: TopicRecord) -> None:
        """Reads the next record, and lets it count. It can take long: a worker does each step itself."""
        self.read(parsed(record))
        self.catch_up()
        if record.partition == HOME:
            self.note_position(record.offset + 1)

    def catch_up(self) -> None:
        """Checks what was read, and lets it count."""
        for name in self.unchecked():
            self.check(name)
        self.settle()
        for name in self.unchecked_older():
            self.check(name)

    def read(self, each: ParsedRecord) -> None:
        """Reads the next record. A config in it counts from `settle` on."""
        key = each.key
        found = each.found
        if key is not None and key.digest is not None:
            # A record in place of one of a newer version would take that one away; of another, compaction leaves only it.
            is_kept = each.is_newer or (found is not None and found.pushed is not None)
            (self._digests.add if is_kept else self._digests.discard)(key.digest)
        if each.document is not None:
            self._documents.setdefault(each.document.name, each.document.json)
        if key is not None and key.kind == "version" and key.selector is not None and key.version is not None:
            self._read_version(key.selector, key.version, each)
        if key is not None and key.kind == "current" and key.selector is not None:
            self._unsettled[key.selector].append(each)
        elif each.problem is not None:
            self._refuse(each, each.problem)

    def _read_version(self, selector: str, number: int, each: ParsedRecord) -> None:
        """Keeps the newest record of a version, as compaction does."""
        if each.found is None or each.found.pushed is None:
            self._versions[selector].pop(number, None)
        else:
            self._versions[selector][number] = _Version(each.record.offset, each.document and each.document.name)
        if selector in self._refused:
            # `settle` looks for the version to follow in place of the refused one again, with no newer record of the key.
            self._unsettled.setdefault(selector, [])

    def unchecked(self) -> Iterator[str]:
        """Yields the ids of the configs to check before `settle`; check each before you take the next."""
        for selector, records in self._unsettled.items():
            before = self._refused.get(selector)
            if records:
                newest = records[-1]
                if newest.document is not None and newest.document.name not in self._usable:
                    yield newest.document.name
                before = None if self._counts(newest) else newest.record.offset
            if before is not None:
                yield from self._unchecked_versions(selector, before)

    def settle(self) -> None:
        """Lets what was read count. Everything that `unchecked` names was checked before.

        What counts follows from the newest record of each key alone, and from their order: compaction changes nothing.
        """
        for selector, records in self._unsettled.items():
            if records:
                self._settle_newest(selector, records.pop())
            # They count no more, and become dead letters if they are bad.
            self._older.extend(records)
            if (before := self._refused.get(selector)) is not None:
                self._use_version_before(selector, before)
        self._unsettled.clear()
        self.current = tuple(sorted(self._in_effect.items()))

    def _settle_newest(self, selector: str, newest: ParsedRecord) -> None:
        if self._counts(newest):
            self._refused.pop(selector, None)
            self._unusable.pop(selector, None)
            self._let_count(selector, newest)
            return
        self._refused[selector] = newest.record.offset
        self._refuse(newest, self._problem_of(newest))
        self._unusable[selector] = (
            f"the config at {newest.place} of the topic configs cannot be used by this worker, which goes on with the "
            "version before it; its log says why"
        )

    @property
    def has_older(self) -> bool:
        """Whether replaced configs wait for their check."""
        return bool(self._older)

    def unchecked_older(self) -> Iterator[str]:
        """Yields the ids of replaced configs; each must be checked before the next is asked."""
        while self._older:
            each = self._older[0]
            if each.document is not None and each.document.name not in self._usable:
                yield each.document.name
            self._older.popleft()
            if not self._counts(each):
                self._refuse(each, self._problem_of(each))

    def check(self, name: str) -> None:
        """Checks whether this worker can use a config; takes long, and can run in another thread."""
        if name in self._usable or name not in self._documents:
            return
        try:
            self._plans[name] = self._check(self._documents[name])
        except ConfigError as error:
            self._usable[name] = "; ".join(error.problems)
        except Exception as error:  # noqa: BLE001  # a plugin's check can raise anything, which must cost this config only
            self._usable[name] = f"the check of the config failed: {error!r}"
        else:
            self._usable[name] = None

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

    def unchecked_of(self, configs: Configs) -> list[str]:
        """Returns the ids of those of these configs that must be checked before `usable` is asked about them."""
        return [name for _, name in configs if name in self._documents and name not in self._usable]

    def usable(self, configs: Configs) -> Configs:
        """Returns the configs with those of this worker in place of those that it lacks or cannot use.

        All that `unchecked_of` names were checked before.
        """
        if all(self._is_usable(name) for _, name in configs):
            return configs
        mine = dict(self.current)
        found = [(each, name if self._is_usable(name) else mine.get(each)) for each, name in configs]
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
        """Returns the bad records of a partition from this offset on, up to the first record that is not checked yet."""
        if not self.bad_records:
            return ()
        waiting = chain(self._older, *self._unsettled.values())
        end = min((each.record.offset for each in waiting if each.record.partition == partition), default=None)
        return [
            each
            for each in self.bad_records
            if each.record.partition == partition
            and each.record.offset >= offset
            and (end is None or each.record.offset < end)
        ]

    def _is_usable(self, name: str) -> bool:
        return name in self._documents and self._usable[name] is None

    def _counts(self, each: ParsedRecord) -> bool:
        """Returns whether a checked record of a selector takes effect if it is the newest: a withdrawal does, too."""
        return each.problem is None and (each.document is None or self._is_usable(each.document.name))

    def _problem_of(self, each: ParsedRecord) -> str:
        """Returns why a record that does not count cannot be used."""
        return each.problem or (each.document and self._usable[each.document.name]) or ""

    def _let_count(self, selector: str, each: ParsedRecord) -> None:
        name = each.document and each.document.name
        if name is not None and self._in_effect.get(selector) == name:
            return
        if name is None or each.found is None or each.found.pushed is None:
            self._in_effect.pop(selector, None)
            log.info("configs: the config of %s is withdrawn", printable(selector))
            return
        self._in_effect[selector] = name
        log.info(
            "configs: version %d of %s (digest %s) at %s is in effect from the next session on",
            each.found.pushed.version,
            printable(selector),
            printable(str(each.found.pushed.digest))[:12],
            each.place,
        )

    def _versions_before(self, selector: str, offset: int) -> Iterator[tuple[int, str | None]]:
        """Yields number and id of the versions of a selector that were written before an offset, the highest first."""
        for number, version in sorted(self._versions[selector].items(), reverse=True):
            if version.offset < offset:
                yield number, version.name

    def _unchecked_versions(self, selector: str, before: int) -> Iterator[str]:
        for _, name in self._versions_before(selector, before):
            if name is not None and name not in self._usable:
                yield name
            if name is None or self._is_usable(name):
                return

    def _use_version_before(self, selector: str, before: int) -> None:
        """Lets the latest usable version before an unusable record count: compaction leaves no other record of its key."""
        for number, name in self._versions_before(selector, before):
            # Without a name the version is a withdrawal.
            if name is None:
                break
            if self._is_usable(name):
                if self._in_effect.get(selector) != name:
                    self._in_effect[selector] = name
                    log.info("configs: version %d of %s is in effect", number, printable(selector))
                return
        if self._in_effect.pop(selector, None) is not None:
            log.info("configs: no version of %s is in effect", printable(selector))

    def _refuse(self, each: ParsedRecord, problem: str) -> None:
        size = len(each.record.value or b"")
        has_room = len(self.bad_records) < MAX_BAD_RECORDS and self._bad_bytes + size <= MAX_BAD_BYTES
        if not each.is_newer and has_room:
            self._bad_bytes += size
            bad = BadRecord(each.record, f"{problem[:DETAIL_CHARS]}; the former config stays in effect")
            bisect.insort(self.bad_records, bad, key=lambda bad: (bad.record.partition, bad.record.offset))
        log.warning(
            "configs: the record at %s is not used, and the former config stays in effect: %s",
            each.place,
            printable(problem, PROBLEM_CHARS),
        )
