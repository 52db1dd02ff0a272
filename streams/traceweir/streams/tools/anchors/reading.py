"""Reads what anchors say again and again: after the first time only the records that have come since."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from traceweir.schemas.anchor import Anchor, AnchorVerdict
from traceweir.schemas.figures import counted
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.wrong_clock import ahead
from traceweir.streams.tools.anchors.listing import KnownAnchor, ListedCriterion, listed_criteria
from traceweir.streams.tools.anchors.topics import AnchorsError
from traceweir.streams.tools.anchors.watch import AnchorWatch, SeenVerdict
from traceweir.streams.worker.kafka.bounded_reader import BoundedReader

log = logging.getLogger(__name__)

ANEW_AFTER = timedelta(hours=12)
"""Age after which everything is read again: Kafka keeps the record that removes an anchor for a day only, and somebody may
have made a topic anew."""


class AnchorReader:
    """Reads the topics of anchors and of verdicts.

    Args:
        settings: Where Kafka is.
        most: The most records that are read of a topic at once; None: as many as it has.
    """

    def __init__(self, settings: Settings, most: int | None = None) -> None:
        self._settings = settings
        self._most = most
        self._known: _Known | None = None

    async def look(self, now: datetime) -> tuple[list[ListedCriterion], Mapping[str, list[str]]]:
        """Returns what is known of each criterion, and the places of records that cannot be read, by what they should be.

        Raises:
            AnchorsError: a topic is missing or wrong, cannot be read, or has too many records.
            KafkaUnreachableError: no broker answers.
        """
        known = await self._read(now, with_anchors=True)
        # An hour that has ended counts, also if nothing came after it; but a verdict of it can still come.
        watch = deepcopy(known.watch)
        watch.pass_time(now)
        return listed_criteria(known.anchors.values(), watch, now), known.unreadable

    async def watch(self, now: datetime) -> AnchorWatch:
        """Returns the judges, as the verdicts show them; the next call changes the object. No anchor is read.

        Raises:
            AnchorsError: the topic of verdicts is missing or wrong, cannot be read, or has too many records.
            KafkaUnreachableError: no broker answers.
        """
        return (await self._read(now, with_anchors=False)).watch

    async def _read(self, now: datetime, *, with_anchors: bool) -> _Known:
        known = self._known
        # What failed half way is read anew.
        self._known = None
        if known is not None and now - known.begun_at < ANEW_AFTER:
            is_known = await known.read(self._settings, self._most, now, with_anchors=with_anchors)
        else:
            is_known = False
        if known is None or not is_known:
            known = _Known(now)
            await known.read(self._settings, self._most, now, with_anchors=with_anchors)
        self._known = known
        return known


@dataclass(slots=True)
class _Known:
    """What the records that were read say."""

    begun_at: datetime
    anchors: dict[str, KnownAnchor] = field(default_factory=dict)
    watch: AnchorWatch = field(default_factory=AnchorWatch)
    last: tuple[datetime, datetime] | None = None
    """The place of the last verdict."""
    unreadable: dict[str, list[str]] = field(default_factory=lambda: {"anchor": [], "verdict": []})
    read_to: dict[str, tuple[Mapping[int, int], Mapping[int, int]]] = field(default_factory=dict)
    """The oldest and the next offset of each partition at the last look, by topic."""

    async def read(self, settings: Settings, most: int | None, now: datetime, *, with_anchors: bool) -> bool:
        """Reads the records that have come; returns false if what was read before says no longer what the topics say."""
        if with_anchors and not await self._read_anchors(settings, most):
            return False
        return await self._read_verdicts(settings, most, now)

    async def _read_anchors(self, settings: Settings, most: int | None) -> bool:
        async with BoundedReader(settings, settings.topics.anchors, AnchorsError) as reader:
            if not self._goes_on(reader):
                return False
            async for record in self._new(reader, most):
                self._take_anchor(record)
        return True

    async def _read_verdicts(self, settings: Settings, most: int | None, now: datetime) -> bool:
        found: list[SeenVerdict] = []
        # `anchors run` and the watch of the judge would wait for the time of such a verdict.
        left_out: list[str] = []
        async with BoundedReader(settings, settings.topics.anchor_verdicts, AnchorsError) as reader:
            if not self._goes_on(reader):
                return False
            async for record in self._new(reader, most):
                place = f"{record.partition}/{record.offset}"
                try:
                    verdict = AnchorVerdict.model_validate_json(record.value or b"")
                except ValidationError:
                    self.unreadable["verdict"].append(place)
                    continue
                if (wrong := ahead(verdict.due_at, record.timestamp, now)) is None:
                    found.append(SeenVerdict.of(verdict))
                else:
                    self.unreadable["verdict"].append(place)
                    left_out.append(f"{place}: the time when it was due, {wrong}")
        if left_out:
            log.warning(
                "%s of %s left out, the first at %s",
                counted(len(left_out), "verdict"), settings.topics.anchor_verdicts, left_out[0],
            )  # fmt: skip
        found.sort(key=lambda each: each.place)
        if found and self.last is not None and found[0].place < self.last:
            return False
        for each in found:
            self.watch.add(each)
            self.last = each.place
        return True

    def _goes_on(self, reader: BoundedReader) -> bool:
        """Returns whether the topic still has every record that was read."""
        if reader.topic not in self.read_to:
            return True
        begins, ends = self.read_to[reader.topic]
        return begins == reader.begins and all(end <= reader.ends.get(number, -1) for number, end in ends.items())

    async def _new(self, reader: BoundedReader, most: int | None) -> AsyncIterator[Any]:
        begins = reader.begins if reader.topic not in self.read_to else self.read_to[reader.topic][1]
        number = sum(end - begins[partition] for partition, end in reader.ends.items())
        if most is not None and number > most:
            raise AnchorsError(
                f"{reader.topic} has {number:,} records to read, and at most {most:,} are read here: "
                "`traceweir anchors list` reads all"
            )
        async for record in reader.records(begins):
            yield record
        self.read_to[reader.topic] = (reader.begins, reader.ends)

    def _take_anchor(self, record: Any) -> None:
        if record.value is None:
            self.anchors.pop((record.key or b"").decode(errors="replace"), None)
            return
        try:
            anchor = KnownAnchor.of(Anchor.model_validate_json(record.value))
        except ValidationError:
            self.unreadable["anchor"].append(f"{record.partition}/{record.offset}")
        else:
            self.anchors[anchor.anchor_id] = anchor
