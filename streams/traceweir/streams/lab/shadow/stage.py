"""Fits a stage into a shadow: it ends with the range, and writes to the topics of the shadow only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from traceweir.schemas.session import current
from traceweir.scorers.evaluation.runner import sampling_point
from traceweir.streams.base.stages.base import Cut, Read, Record, Stage, StageSpec
from traceweir.streams.base.stages.counters import Counters
from traceweir.streams.base.stages.errors import RecordRejected
from traceweir.streams.lab.shadow.definition import Definition


class _Worked(Stage, Protocol):
    counters: Counters

    def has_outputs(self) -> bool: ...


class ShadowStage:
    """A stage of a shadow on one partition.

    Args:
        stage: The stage, which is not loaded yet.
        topics: The topics that the shadow writes; outputs to other topics are dropped and count as `withheld`.
        source: The input topic that has an end.
        end: The offset of `source` at which the work ends; None: the input has no end.
    """

    def __init__(self, stage: _Worked, topics: frozenset[str], source: str, end: int | None) -> None:
        self._stage = stage
        self._topics = topics
        self._source = source
        self._end = end
        self._at_end = False
        self._last: int | None = None
        self._mark: int | None = None
        self._noted_end = False

    @property
    def of_worker(self) -> Stage:
        """The stage, whose gauges the metrics of the process show."""
        return self._stage

    @property
    def counters(self) -> Counters:
        """The counters of the stage."""
        return self._stage.counters

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the state from the rows of the last finished checkpoint."""
        self._stage.load(rows)

    def apply(self, topic: str, records: Sequence[Record]) -> None:
        """Processes the records before the end; later records stay unread."""
        inside = records
        if self._end is not None and topic == self._source and records[-1].offset >= self._end:
            self._at_end = True
            inside = [record for record in records if record.offset < self._end]
        if inside:
            self._last = inside[-1].offset
            self._stage.apply(topic, inside)

    def reject(self, topic: str, record: Record, why: RecordRejected) -> None:
        """Counts a record that the stage cannot process; its dead letter is not written."""
        self._last = record.offset
        self._stage.reject(topic, record, why)

    def tick(self, now: float, behind: Mapping[str, float]) -> None:
        """Advances the time. An input that is read to its end has no more records in the range."""
        if self._end is not None and self._source not in behind:
            self._at_end = True
        self._stage.tick(now, behind)

    def full(self) -> bool:
        """Returns whether the stage accepts no further records: for now, or because it is at the end."""
        return self._at_end or self._stage.full()

    def has_outputs(self) -> bool:
        """Returns whether a cut would return outputs now, or would raise."""
        return self._stage.has_outputs()

    def cut(self) -> Cut:
        """Returns the changes since the last cut, and the end as the offset as soon as all records before it are done."""
        cut = self._stage.cut()
        outputs = [output for output in cut.outputs if output.topic in self._topics]
        rows = cut.rows
        if withheld := len(cut.outputs) - len(outputs):
            self.counters["withheld"] += withheld
            # Replaces the row that the stage has cut before.
            rows = [*rows, *self.counters.rows()]
        offsets = dict(cut.offsets)
        self._mark = offsets.get(self._source, self._mark)
        is_done = self._last is None or self._mark == self._last + 1
        if self._end is not None and self._at_end and is_done and not self._noted_end:
            offsets[self._source] = self._end
            self._noted_end = True
        return Cut(rows, outputs, offsets)

    def drop(self) -> None:
        """Discards the state and stops publishing."""
        self._stage.drop()


def fitted(definition: Definition, topics: frozenset[str], sessions: str) -> Callable[[StageSpec], StageSpec]:
    """Returns a function that fits the stages of a worker into a shadow.

    Args:
        definition: The shadow.
        topics: The topics that the shadow writes.
        sessions: The name of the topic `sessions`.
    """

    def fit(spec: StageSpec) -> StageSpec:
        def new(partition: int, read: Read, changed: Callable[[], None]) -> Stage:
            stage: _Worked = spec.new(partition, read, changed)  # type: ignore[assignment]  # both stages have counters
            end = definition.ends.get(partition, 0) if sessions in spec.inputs else None
            return ShadowStage(stage, topics, sessions, end)

        return replace(spec, outputs=tuple(name for name in spec.outputs if name in topics), new=new)

    return fit


class _Event(msgspec.Struct):
    event_id: str | None = None
    replaces: list[str] | None = None
    app_name: str | None = None


class _Apps(msgspec.Struct):
    events: list[_Event] = []


_read_apps = msgspec.json.Decoder(_Apps).decode


def selection(definition: Definition) -> Callable[[Record], bool]:
    """Returns a function that says whether a session is in the sample and of the app of a shadow.

    A session is of an app if one of its events names the app. Sessions that are left out cost their reading only.
    """
    app = definition.app
    sample = definition.sample

    def selects(record: Record) -> bool:
        if sample < 1:
            key = (record.key or b"").decode("utf-8", "surrogateescape")
            if sampling_point(key) >= sample:
                return False
        return app is None or app in apps_of(record.value)

    return selects


def apps_of(session: bytes | None) -> set[str]:
    """Returns the names of the apps in a session, of the events that count; none for a record that is not a session.

    >>> sorted(apps_of(b'{"events": [{"app_name": "shop"}, {}, {"app_name": "bank"}]}'))
    ['bank', 'shop']
    """
    try:
        found = _read_apps(session or b"")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return set()
    return {event.app_name for event in current(found.events) if event.app_name}
