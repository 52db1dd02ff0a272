"""Defines when a trace is complete, and how much of it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from traceweir.schemas.trace import Visibility
from traceweir.streams.settings import Settings
from traceweir.streams.stages.durations import milliseconds

_MAX_DOUBLINGS = 16
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
    visibility: Visibility
    """Visibility of the traces that are made from spans."""

    @classmethod
    def of(cls, settings: Settings) -> CollectingRules:
        """Returns the rules of these settings; fractions of a millisecond are truncated.

        >>> from traceweir.streams.settings import Settings
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
            visibility=settings.otlp_visibility,
        )

    def due(self, last_record: int, root_at: int, publications: int) -> int:
        """Returns when a trace is published, in milliseconds of record time.

        The grace of a trace that was published before doubles with each publication, so that n late spans cause about
        log2(n) publications.
        """
        if publications:
            return last_record + min(self.grace_ms << min(publications, _MAX_DOUBLINGS), self.late_ms)
        return root_at + self.grace_ms if root_at else last_record + self.idle_ms
