"""Holds scores until their minute is over on every partition, and says which minutes are.

The time of a partition is the latest minute of a score that was read from it. A minute is over when the times of all
partitions have passed it by `GUARD_MINUTES`. A partition that is read to its end, and has brought nothing for `QUIET_S`,
holds nothing back: so an idle partition does not hold the others for ever, and when all are idle, every minute is over.

The scores of open minutes are not written: whoever goes on from a state reads them again, from the offsets of `begins`.
Only those that count in another minute than their own are kept in rows, and those of a minute so far ahead that it would
hold the offsets back for long.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from traceweir.streams.tools.alerts.watched_scores import StreamName

GUARD_MINUTES = 2
"""How many minutes a partition must have passed a minute: workers score sessions in parallel, and not in order."""
QUIET_S = 60.0
"""Seconds after which a partition that is read to its end, and brings nothing, holds nothing back. The worker of a busy
partition can be away for a moment, and its scores then come late."""
MOST_AHEAD = 60
"""Minutes that a partition can be read ahead of others that have unread records; it waits for them then. Scores that are
further ahead of the oldest open minute are kept in rows."""
_ROW_BYTES = 500_000


class RuleVersion(NamedTuple):
    """A rule as it was when a score was read."""

    rule: str
    """Its id."""
    digest: str
    """The digest of the rule: the id can be given to another one."""


class OpenScore(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What counts of a score in a minute that is not over."""

    session: str
    result: str
    """The `result_id`."""
    revision: int
    attempt: int
    value: float
    suspects: tuple[str | None, ...]

    @property
    def order(self) -> tuple[int, int]:
        """Of one result the first revision and attempt counts."""
        return self.revision, self.attempt


class KeptScore(msgspec.Struct, array_like=True, frozen=True):
    """A score in a row of the state."""

    minute: int
    """The minute in which it counts."""
    rule: RuleVersion
    """The rule that it counts for."""
    name: tuple[str, str, tuple[tuple[str, str], ...]]
    """The name of its stream: metric, level and slice."""
    score: OpenScore


OpenStreams = dict[RuleVersion, dict[StreamName, list[OpenScore]]]
"""The scores of a minute, by the rule and the stream."""


class OpenMinutes:
    """The minutes that are not over, with their scores."""

    def __init__(self) -> None:
        self._minutes: dict[int, OpenStreams] = {}
        self._begins: dict[int, dict[int, int]] = defaultdict(dict)
        """The first offset of each partition of which a score must be read again, by minute."""
        self._times: dict[int, int] = {}
        self._far: set[int] = set()
        """The minutes far ahead whose scores are kept in rows."""
        self._kept: list[KeptScore] = []
        """Scores for the next rows."""
        self._rows: dict[int, int] = {}
        self._next = 0
        self._far_before: set[int] = set()
        """Those far ahead in the state that was loaded, of which the rows have all scores."""
        self._read: dict[int, int] = {}
        """Up to which offset of each partition the state that was loaded has read."""
        self._counted: int | None = None
        """The last minute that was over in that state."""
        self._heard: set[int] = set()
        self._heard_s: dict[int, float] = {}
        self.closed: int | None = None
        """The last minute that is over; None before the first."""

    @property
    def times(self) -> Mapping[int, int]:
        """The latest minute that was read, by partition, as far as it closes no more minutes than are closed.

        Whoever goes on from a state reads the open minutes again, and must not close one before it is read.
        """
        closed = self.closed
        return {} if closed is None else {of: min(at, closed + GUARD_MINUTES + 1) for of, at in self._times.items()}

    def has_counted(self, partition: int, offset: int, minute: int) -> bool:
        """Returns whether the state that was loaded has a score, which is read again because open minutes are.

        Its minute was over; or it is in a row, because its minute was over when it was first read, or is far ahead.
        """
        is_over = self._counted is not None and minute <= self._counted
        return (is_over or minute in self._far_before) and offset < self._read.get(partition, 0)

    def reads_again(self, read: Mapping[int, int]) -> bool:
        """Returns whether a partition is not read again as far as the state that was loaded has read it.

        Args:
            read: The offset of the next record, by partition.
        """
        return any(read.get(partition, 0) < offset for partition, offset in self._read.items())

    def forget_offsets(self, partition: int) -> None:
        """Notes that the offsets of a partition are about other records than before."""
        self._read.pop(partition, None)

    def note_time(self, partition: int, minute: int) -> None:
        """Notes that a record of a partition was read."""
        if minute > self._times.get(partition, -1):
            self._times[partition] = minute
        self._heard.add(partition)
        if self.closed is None or minute > self.closed:
            # Time goes on by each score, also by one that no rule uses.
            self._minutes.setdefault(minute, {})

    def add(
        self, partition: int, offset: int, minute: int, rule: RuleVersion, stream: StreamName, score: OpenScore
    ) -> bool:
        """Takes a score; returns whether its minute is over, so that it counts in the oldest that is not.

        Args:
            partition: Where its record is.
            offset: The offset of its record.
            minute: The minute of its session's last record.
            rule: The rule that it counts for.
            stream: Its stream.
            score: What counts of it.
        """
        closed = self.closed
        is_late = closed is not None and minute <= closed
        counted = minute if closed is None else max(minute, closed + 1)
        self._put(counted, rule, stream, score)
        if is_late or minute in self._far:
            self._kept.append(_kept(counted, rule, stream, score))
        else:
            self._begins[minute].setdefault(partition, offset)
        return is_late

    def remove_rule(self, rule: str) -> None:
        """Removes the scores of a rule that has ended."""
        for streams in self._minutes.values():
            for version in [each for each in streams if each.rule == rule]:
                del streams[version]
        self._kept = [each for each in self._kept if each.rule.rule != rule]

    def over(self, now_s: float, behind: Collection[int]) -> Iterator[tuple[int, OpenStreams]]:
        """Yields the minutes that are over, in order, with their scores.

        Args:
            now_s: Seconds of any clock.
            behind: The partitions that have unread records.
        """
        self._heard_s |= dict.fromkeys(self._heard, now_s)
        self._heard.clear()
        last = self._last_over(now_s, behind)
        for minute in sorted(each for each in self._minutes if last is not None and each <= last):
            self.closed = minute
            self._begins.pop(minute, None)
            self._far.discard(minute)
            yield minute, self._minutes.pop(minute)

    def too_far_ahead(self, behind: Collection[int]) -> set[int]:
        """Returns the partitions to read no further until others have come nearer, so that few minutes are open."""
        known = [self._times[each] for each in behind if each in self._times]
        return {each for each in behind if known and self._times.get(each, 0) > min(known) + MOST_AHEAD}

    @property
    def far(self) -> list[int]:
        """The minutes far ahead, of which the rows have all scores, after `changes`."""
        return sorted(self._far)

    @property
    def unused(self) -> list[int]:
        """The minutes that are not over in which no rule uses a score."""
        return sorted(minute for minute, scores in self._minutes.items() if not any(scores.values()))

    def begins(self, read: Mapping[int, int]) -> dict[int, int]:
        """Returns the offset from which each partition must be read again, after `changes`.

        Args:
            read: The offset of the next record, by partition.
        """
        found = dict(read)
        for begins in self._begins.values():
            for partition, offset in begins.items():
                found[partition] = min(offset, found.get(partition, offset))
        return found

    def load(
        self,
        times: Mapping[int, int],
        closed: int | None,
        unused: Iterable[int],
        far: Iterable[int],
        read: Mapping[int, int],
        rows: Mapping[int, bytes],
        rules: Collection[RuleVersion],
    ) -> None:
        """Takes what is known of partitions, and rows.

        Args:
            times: What `times` was.
            closed: What `closed` was.
            unused: What `unused` was.
            far: What `far` was.
            read: The offset of the next record that was not read, by partition.
            rows: What `changes` returned, by their numbers.
            rules: The rules that are watched; scores of others are left out.
        """
        self._times = dict(times)
        # How long they have been idle is not known.
        self._heard = set(times)
        self.closed = self._counted = closed
        self._read = dict(read)
        for minute in unused:
            self._minutes[minute] = {}
        for number in sorted(rows):
            kept = read_kept(rows[number])
            self._rows[number] = max(each.minute for each in kept)
            self._next = number + 1
            for each in kept:
                if (closed is None or each.minute > closed) and each.rule in rules:
                    self._put(each.minute, each.rule, StreamName(*each.name), each.score)
        self._far_before = set(far)
        self._far = set(far)

    def changes(self) -> Iterator[tuple[int, bytes | None]]:
        """Yields the rows since the last call, by their numbers; None removes a row."""
        self._keep_far()
        closed = self.closed
        if closed is not None:
            for number in [number for number, latest in self._rows.items() if latest <= closed]:
                del self._rows[number]
                yield number, None
        still_open = [each for each in self._kept if closed is None or each.minute > closed]
        self._kept = []
        for scores in _pieces(still_open):
            self._rows[self._next] = max(each.minute for each in scores)
            yield self._next, msgspec.msgpack.encode(scores)
            self._next += 1

    def _is_far(self, minute: int) -> bool:
        return minute > min(self._minutes) + MOST_AHEAD

    def _keep_far(self) -> None:
        for minute in [each for each in self._begins if self._is_far(each)]:
            del self._begins[minute]
            self._far.add(minute)
            for rule, streams in self._minutes[minute].items():
                self._kept += (_kept(minute, rule, name, each) for name, found in streams.items() for each in found)

    def _put(self, minute: int, rule: RuleVersion, stream: StreamName, score: OpenScore) -> None:
        streams = self._minutes.setdefault(minute, {}).setdefault(rule, {})
        if (scores := streams.get(stream)) is None:
            streams[stream] = [score]
        else:
            scores.append(score)

    def _last_over(self, now_s: float, behind: Collection[int]) -> int | None:
        if not self._minutes:
            return None
        holding = {each for each, heard_s in self._heard_s.items() if now_s - heard_s < QUIET_S} | {*behind}
        if not holding:
            return max(self._minutes)
        if any(each not in self._times for each in holding):
            return None
        return min(self._times[each] for each in holding) - GUARD_MINUTES - 1


def _kept(minute: int, rule: RuleVersion, stream: StreamName, score: OpenScore) -> KeptScore:
    return KeptScore(minute, rule, (stream.metric, stream.level, stream.slice), score)


def _pieces(scores: Iterable[KeptScore]) -> Iterator[list[KeptScore]]:
    """Yields the scores in parts that are not too large for a record."""
    part: list[KeptScore] = []
    size = 0
    for each in scores:
        own = len(msgspec.msgpack.encode(each))
        if part and size + own > _ROW_BYTES:
            yield part
            part = []
            size = 0
        part.append(each)
        size += own
    if part:
        yield part


read_kept = msgspec.msgpack.Decoder(list[KeptScore]).decode
"""Returns the scores of a row."""
