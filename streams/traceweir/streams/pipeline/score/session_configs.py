"""Chooses the configs of each session of a partition: those that were in effect when the session was begun first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from traceweir.streams.base.stages.base import Rows
from traceweir.streams.pipeline.score.config_spans import ConfigSpans
from traceweir.streams.pipeline.score.followed_configs import FollowedConfigs
from traceweir.streams.scoring.configs.selectors import Configs
from traceweir.streams.scoring.configs.topic_record import BadRecord
from traceweir.streams.scoring.sessions.result import Scoring


class SessionConfigs:
    """The configs of the sessions of one partition, with their row in the checkpoint.

    Args:
        partition: Number of the partition.
        file: The scoring by the worker's config file.
        followed: The configs of the topic `configs`; None: the file's config scores every session.
    """

    def __init__(self, partition: int, file: Scoring, followed: FollowedConfigs | None) -> None:
        self._partition = partition
        self._file = file
        self._followed = followed
        self._spans = ConfigSpans()

    def load(self, rows: Mapping[bytes, bytes]) -> None:
        """Restores the row of the last finished checkpoint.

        Raises:
            ValueError: this version does not read the format of the row.
        """
        self._spans.load(rows)

    def take(self, frontier: int) -> bool:
        """Takes what is new on the topic; returns whether sessions from `frontier` on have other configs than before it.

        Args:
            frontier: An offset from which on no session was begun, by this worker or by a former owner of the partition.
        """
        if self._followed is None:
            return False
        log = self._followed.log
        spans = self._spans
        # A worker that has read less than the former owner of the partition would take an earlier config again.
        if log.current == spans.latest or log.position < spans.position:
            return False
        spans.begin(frontier, log.current, log.position)
        return True

    @property
    def is_behind(self) -> bool:
        """Whether this process has read less of the topic than the former owner of the partition."""
        return self._followed is not None and self._followed.log.position < self._spans.position

    def at(self, offset: int) -> Configs:
        """Returns the configs of the session at this offset."""
        return self._spans.at(offset)

    async def scoring_at(self, offset: int) -> Scoring:
        """Returns the scoring of the session at this offset."""
        followed = self._followed
        spans = self._spans
        if followed is None or not spans:
            return self._file
        if followed.log.position < spans.position and not await followed.log.reach(spans.position):
            # The topic was created again, and what it has now counts.
            spans.position = 0
        configs = spans.at(offset)
        # While one config is checked, records that name others can be read.
        while names := followed.log.unchecked_of(configs):
            await followed.check(names[0])
        found = followed.log.usable(configs)
        return followed.scoring(found) if found else self._file

    def bad_records(self) -> Sequence[BadRecord]:
        """Returns the new bad records in the partition of this number of the topic; each becomes one dead letter."""
        if self._followed is None:
            return ()
        found = self._followed.log.bad_records_from(self._partition, self._spans.reported)
        if found:
            self._spans.reported = found[-1].record.offset + 1
        return found

    def rows(self, floor: Callable[[], int | None]) -> Rows:
        """Returns the row if it has changed since the last call.

        Args:
            floor: Returns the offset below which no session can be scored any more, None if it is unknown; called only
                while a former config can still be needed.
        """
        if self._spans.are_several and (offset := floor()) is not None:
            self._spans.prune(offset)
        return self._spans.rows()
