"""Holds scores until their minute is over on every partition, and says which minutes are.

The time of a partition is the latest minute of a score that was read from it. A minute is over when the times of all
partitions have passed it by `GUARD_MINUTES`. A partition that is read to its end, and has brought nothing for `QUIET_S`,
holds nothing back: so an idle partition does not hold the others for ever, and when all are idle, every minute is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from traceweir.streams.tools.alerts.watched_scores import StreamName

GUARD_MINUTES = 2
"""How many minutes a partition must have passed a minute: workers score sessions in parallel, and not in order."""
QUIET_S = 60.0
"""Seconds after which a partition that is read to its end, and brings nothing, holds nothing back. The worker of a busy
partition can be away for a moment, and its scores then come late."""
MOST_AHEAD = 60
"""Minutes that a partition can be read ahead of others that have unread records; it waits for them then."""
_ROW_BYTES = 500_000


class OpenScore(msgspec.Struct, array_like=True, frozen=True):
    """A score in a minute that is not over."""

    minute: int
    rule: str
    """The id of the rule that it counts for."""
    version: str
    """The digest of this rule: the id can be given to another one."""
    name: tuple[str, str, tuple[tuple[str, str], ...]]
    """The name of its stream: metric, level and slice."""
    result: str
    """The `result_id`."""
    order: tuple[int, int]
    """Revision and attempt; of one result the first counts."""
    session: str
    value: float
    suspects: tuple[str | None, ...]

    @property
    def stream(self) -> StreamName:
        """The name of its stream."""
        return StreamName(*self.name)


class OpenMinutes:
    """The minutes that are not over, with their scores."""

    def __init__(self) -> None:
        self._minutes: dict[int, list[OpenScore]] = defaultdict(list)
        self._times: dict[int, int] = {}
        self._new: list[OpenScore] = []
        self._rows: dict[int, int] = {}
        self._next = 0
        self._heard: set[int] = set()
        self._heard_s: dict[int, float] = {}
        self.closed: int | None = None
        """The last minute that is over; None before the first."""

    @property
    def times(self) -> Mapping[int, int]:
        """The latest minute that was read, by partition."""
        return self._times

    def minute_for(self, minute: int) -> int:
        """Returns the minute in which a score counts: the oldest that is not over, if its own is."""
        return minute if self.closed is None else max(minute, self.closed + 1)

    def note_time(self, partition: int, minute: int) -> None:
        """Notes that a record of a partition was read."""
        self._times[partition] = max(minute, self._times.get(partition, minute))
        self._heard.add(partition)
        if self.closed is None or minute > self.closed:
            # Time goes on by each score, also by one that no rule uses.
            self._minutes.setdefault(minute, [])

    def add(self, score: OpenScore) -> None:
        """Takes a score."""
        self._minutes[score.minute].append(score)
        self._new.append(score)

    def remove_rule(self, rule: str) -> None:
        """Removes the scores of a rule that has ended."""
        for minute, scores in self._minutes.items():
            self._minutes[minute] = [each for each in scores if each.rule != rule]
        self._new = [each for each in self._new if each.rule != rule]

    def over(self, now_s: float, behind: Collection[int]) -> Iterator[tuple[int, list[OpenScore]]]:
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
            yield minute, self._minutes.pop(minute)

    def too_far_ahead(self, behind: Collection[int]) -> set[int]:
        """Returns the partitions to read no further until others have come nearer, so that few minutes are open."""
        known = [self._times[each] for each in behind if each in self._times]
        return {each for each in behind if known and self._times.get(each, 0) > min(known) + MOST_AHEAD}

    @property
    def unused(self) -> list[int]:
        """The minutes that are not over in which no rule uses a score."""
        return sorted(minute for minute, scores in self._minutes.items() if not scores)

    def load(
        self, times: Mapping[int, int], closed: int | None, unused: Iterable[int], rows: Mapping[int, bytes]
    ) -> None:
        """Takes what is known of partitions, and the rows that `changes` returned, by their numbers."""
        self._times = dict(times)
        # How long they have been idle is not known.
        self._heard = set(times)
        self.closed = closed
        for minute in unused:
            self._minutes[minute] = []
        for number in sorted(rows):
            scores = _read_scores(rows[number])
            self._rows[number] = max(each.minute for each in scores)
            self._next = number + 1
            for each in scores:
                if closed is None or each.minute > closed:
                    self._minutes[each.minute].append(each)

    def changes(self) -> Iterator[tuple[int, bytes | None]]:
        """Yields the rows since the last call, by their numbers; None removes a row."""
        closed = self.closed
        if closed is not None:
            for number in [number for number, latest in self._rows.items() if latest <= closed]:
                del self._rows[number]
                yield number, None
        still_open = [each for each in self._new if closed is None or each.minute > closed]
        self._new = []
        for scores in _pieces(still_open):
            self._rows[self._next] = max(each.minute for each in scores)
            yield self._next, msgspec.msgpack.encode(scores)
            self._next += 1

    def _last_over(self, now_s: float, behind: Collection[int]) -> int | None:
        if not self._minutes:
            return None
        holding = {each for each, heard_s in self._heard_s.items() if now_s - heard_s < QUIET_S} | {*behind}
        if not holding:
            return max(self._minutes)
        if any(each not in self._times for each in holding):
            return None
        return min(self._times[each] for each in holding) - GUARD_MINUTES - 1


def _pieces(scores: Iterable[OpenScore]) -> Iterator[list[OpenScore]]:
    """Yields the scores in parts that are not too large for a record."""
    part: list[OpenScore] = []
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


_read_scores = msgspec.msgpack.Decoder(list[OpenScore]).decode
