"""Defines when a trace is complete, and how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from traceweir.schemas.trace import Visibility
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.durations import milliseconds

_MAX_DOUBLINGS = 16
_MARGIN_DIVISOR = 10
"""A tenth of the grace is left to the records on their way to the assemble stage."""
_MAX_DOCUMENTS = 100_000
"""Identities of 8 bytes, so that the row with all of them and the session id fits a record of the changelog."""


@dataclass(frozen=True, slots=True)
class CollectingRules:
    """The settings of traces in the unit of the stages: milliseconds of record time, as in Kafka's timestamps."""

    grace_ms: int
    """Time from the root span to the publication of the trace."""
    idle_ms: int
    """Time without a span after which a trace without its root span is published."""
    late_ms: int
    """Time after a publication in which late spans can add their events."""
    guard_ms: int
    """Lag behind its watermark at which the assemble stage rejects an event."""
    max_future_ms: int
    """Maximum distance of a record's timestamp ahead of the clock."""
    max_spans: int
    """Spans and log records of a trace."""
    max_bytes: int
    """Bytes of the spans and log records of a trace."""
    max_traces: int
    """Number of traces of one partition, open or remembered."""
    max_documents: int
    """Events, reasoning traces and damaged spans of a trace that are published: a row holds the identities of all."""
    max_session_records: int
    """Records at which the assemble stage closes a segment for good."""
    max_session_bytes: int
    """Bytes of records at which the assemble stage closes a segment for good."""
    max_revisions: int
    """Number of times that the assemble stage opens a segment again."""
    visibility: Visibility
    """Visibility of the traces that are made from spans."""

    @classmethod
    def of(cls, settings: Settings) -> CollectingRules:
        """Returns the rules of these settings; fractions of a millisecond are truncated.

        >>> from traceweir.streams.base.settings import Settings
        >>> CollectingRules.of(Settings(trace_grace_s=1.5)).grace_ms
        1500
        """
        return cls(
            grace_ms=milliseconds(settings.trace_grace_s),
            idle_ms=milliseconds(settings.trace_idle_s),
            late_ms=milliseconds(settings.grace_s),
            guard_ms=milliseconds(settings.guard_s),
            max_future_ms=milliseconds(settings.max_future_s),
            max_spans=settings.trace_max_spans,
            max_bytes=settings.trace_max_bytes,
            max_traces=settings.partition_max_traces,
            max_documents=_MAX_DOCUMENTS,
            max_session_records=settings.segment_max_events,
            max_session_bytes=settings.segment_max_bytes,
            max_revisions=settings.segment_max_revisions,
            visibility=settings.otlp_visibility,
        )

    def published_at(self, due: int, now: int, *, is_alone: bool) -> int:
        """Returns the timestamp of the documents of a trace that was due at a moment, in milliseconds of record time.

        After a backlog the trace is due long ago. The assemble stage, which follows the clock by then, would reject
        events with such a timestamp as late.

        Args:
            due: When the trace was due.
            now: The time.
            is_alone: Whether the trace is a session of its own. Then no order of turns depends on the timestamp, and it is
                so young that the session can still be opened again, for late spans that name another one.
        """
        oldest = min(self.guard_ms, self.late_ms) if is_alone else self.guard_ms
        return min(max(due, now - oldest // 2), now)

    def can_withdraw(self, published_at: int, now: int, publications: int, records: int, size: int) -> bool:
        """Returns whether the assemble stage still opens the session again that is one trace, so that it can be withdrawn.

        What comes later, or does not fit, would begin another segment, and the events of the former one would count
        beside those in the right session.

        Args:
            published_at: Timestamp of the last documents of the session; 0 if unknown.
            now: The time.
            publications: Number of publications in the session.
            records: Number of all records of the session, with those that withdraw it.
            size: Bytes of these records.
        """
        return (
            now <= published_at + self.late_ms - self.late_ms // _MARGIN_DIVISOR
            and publications <= self.max_revisions
            and records <= self.max_session_records
            and size <= self.max_session_bytes
        )

    def due(self, last_record: int, root_at: int, publications: int) -> int:
        """Returns when a trace is published, in milliseconds of record time.

        The grace of a trace that was published before doubles with each publication, so that n late spans cause about
        log2(n) publications.
        """
        if publications:
            return last_record + min(self.grace_ms << min(publications, _MAX_DOUBLINGS), self.late_ms)
        return root_at + self.grace_ms if root_at else last_record + self.idle_ms
