"""Keeps the offsets of a partition's inputs, as its checkpoints store them, with the logs to which they belong."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

import orjson

from traceweir.streams.base.stages.base import Rows
from traceweir.streams.base.stages.inputs import Place
from traceweir.streams.worker.runtime.checkpoint_rows import INPUTS_ROW, OFFSETS
from traceweir.streams.worker.runtime.positions import InputLogs, StartPosition, start_of

log = logging.getLogger(__name__)

GROUP_OFFSETS_EVERY_S = 1.0
"""Interval at which offsets are committed to the consumer group, for lag monitoring only; a restart uses `OFFSETS`."""


class StoredOffsets:
    """Holds the offsets up to which the stages of a partition have done their work, by input."""

    def __init__(self, rows: Mapping[bytes, bytes], places: Mapping[str, Place], logs: InputLogs | None) -> None:
        """Reads the offsets from the rows of the partition.

        Args:
            rows: The rows of the last finished checkpoint.
            places: The partition that each input is.
            logs: The logs with which the stored offsets are compared; None: they were compared before.
        """
        self._places = places
        self._logs = logs
        self.committed: dict[str, int] = orjson.loads(rows.get(OFFSETS, b"{}"))
        self._input_ids: dict[str, str] = orjson.loads(rows.get(INPUTS_ROW, b"{}"))
        """By input, the id of the log to which the committed offset belongs; also of inputs that are not there now."""
        self._unwritten_starts = False
        self._group_offsets: dict[str, int] = {}
        self._group_offsets_at = -math.inf

    @property
    def log_ids(self) -> dict[str, str]:
        """By topic, the id of the log that is read."""
        return {place.topic: self._input_ids[name] for name, place in self._places.items() if name in self._input_ids}

    @property
    def undecided_logs(self) -> InputLogs | None:
        """The logs with which the stored offsets are still to be compared, until a checkpoint has the outcome."""
        return self._logs if self._unwritten_starts else None

    def start(self, source: str, first: int) -> StartPosition:
        """Returns where to read on in an input whose first available offset is `first`; logs what the operator should know.

        Raises:
            OtherClusterError: the stored offset is that of another cluster.
        """
        stored = self.committed.get(source)
        if self._logs is None:
            return StartPosition(max(stored or 0, first))
        place = self._places[source]
        log_id = self._logs.ids.get(place.topic)
        name = f"{place.topic}/{place.partition}"
        start = start_of(name, stored, self._input_ids.get(source), first, self._logs.ends.get(source), log_id)
        if start.problem is not None:
            log.warning("%s", start.problem)
            # Otherwise the same would be counted again at each takeover.
            self.committed[source] = start.offset
        self._unwritten_starts |= start.problem is not None or self._input_ids.get(source) != log_id
        if log_id is None:
            self._input_ids.pop(source, None)
        else:
            self._input_ids[source] = log_id
        return start

    def rows(self, offsets: Mapping[str, int], *, has_rows: bool) -> Rows:
        """Returns the rows of a checkpoint that store the offsets.

        Args:
            offsets: The offsets that have changed, by input.
            has_rows: Whether the checkpoint has other rows.
        """
        if not offsets and not (has_rows and self._unwritten_starts):
            return []
        self.committed |= offsets
        rows: Rows = [(OFFSETS, orjson.dumps(self.committed))]
        if self._unwritten_starts:
            self._unwritten_starts = False
            rows.append((INPUTS_ROW, orjson.dumps(self._input_ids)))
        return rows

    def to_commit(self, now: float, *, last: bool = False) -> dict[str, int]:
        """Returns the changed offsets by input, to commit them to the consumer group with this checkpoint, once per interval.

        The interval is `GROUP_OFFSETS_EVERY_S`; the last checkpoint always commits. Committing offsets takes two of the
        five requests of a small transaction.

        Args:
            now: Seconds of a monotonic clock.
            last: Whether this is the last checkpoint.
        """
        if not last and now - self._group_offsets_at < GROUP_OFFSETS_EVERY_S:
            return {}
        found = {
            source: offset
            for source, offset in self.committed.items()
            # A partition that is not there any more would make Kafka refuse the transaction.
            if source in self._places and self._group_offsets.get(source) != offset
        }
        self._group_offsets |= found
        self._group_offsets_at = now
        return found
