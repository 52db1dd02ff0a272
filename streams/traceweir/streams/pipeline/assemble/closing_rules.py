"""Defines when and why a session closes, and how long a closed session can be reopened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from traceweir.schemas.session import ClosingReason
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.stages.durations import milliseconds

SESSION_FRAME_BYTES = 16_384
"""What the record of a session has beside its events and traces, at most, in bytes."""
_MIN_LINGER_MS = 1_000
"""The time that doubles where the linger is shorter; twice a linger of 0 would be 0."""
_MAX_DOUBLINGS = 32
"""More doublings change nothing, because they exceed every grace."""

Expectation = tuple[int, int]
"""Number of events and number of traces that a session has."""


class Ending(NamedTuple):
    """What an event says about the end of its session. The session closes after the linger."""

    reason: ClosingReason
    """Why the session closes."""
    expected: Expectation | None
    """The records with which the session is complete, so that it closes at once; None: the event does not say."""


def ending_of(event: Any) -> Ending | None:
    """Returns how the session of an event ends because of the event; None if it goes on.

    The first event of a session with an ending decides. The session's rows keep its ending, so that a rule can use
    whatever the event contains.

    Args:
        event: An event, as the schema or the quick decoder has read it.
    """
    if event.type == "session.ended":
        expects = event.expects
        return Ending(ClosingReason.SESSION_ENDED, None if expects is None else (expects.events, expects.traces))
    return None


@dataclass(frozen=True, slots=True)
class ClosingRules:
    """The session settings in the unit of the stages: milliseconds of record time, as in Kafka's timestamps."""

    idle_gap_ms: int
    """Time without a record after which a session closes."""
    linger_ms: int
    """Time from the event that ends the session to the close."""
    grace_ms: int
    """Time after the due close in which a late record reopens the session as its next revision."""
    guard_ms: int
    """Time for which the identities of a closed session are kept.

    A record that is further behind the watermark is late.
    """
    max_future_ms: int
    """Maximum distance of a record's timestamp ahead of the clock."""
    max_events: int
    """Events and traces at which a segment closes."""
    max_bytes: int
    """Bytes of events and traces at which a segment closes."""
    max_revisions: int
    """Number of times that a segment can be reopened."""
    max_open_sessions: int
    """Number of open sessions of one partition."""
    max_closed_sessions: int
    """Number of closed sessions that one partition remembers."""

    @classmethod
    def of(cls, settings: Settings) -> ClosingRules:
        """Returns the rules of these settings; fractions of a millisecond are truncated.

        >>> from traceweir.streams.base.settings import Settings
        >>> ClosingRules.of(Settings(idle_gap_s=1.5)).idle_gap_ms
        1500
        """
        return cls(
            idle_gap_ms=milliseconds(settings.idle_gap_s),
            linger_ms=milliseconds(settings.close_linger_s),
            grace_ms=milliseconds(settings.grace_s),
            guard_ms=milliseconds(settings.guard_s),
            max_future_ms=milliseconds(settings.max_future_s),
            max_events=settings.segment_max_events,
            max_bytes=settings.segment_max_bytes,
            max_revisions=settings.segment_max_revisions,
            max_open_sessions=settings.partition_max_open_sessions,
            max_closed_sessions=settings.partition_max_closed_sessions,
        )

    def within(self, room: int) -> ClosingRules:
        """Returns rules under which a session fits `room` bytes, key included; the same rules if it does already."""
        # Of a session's JSON, 2 % are commas between the smallest events, and an id can be long and have escapes.
        return replace(self, max_bytes=min(self.max_bytes, room - room // 50 - SESSION_FRAME_BYTES))

    @property
    def longest_gap_ms(self) -> int:
        """Maximum time from the last record of a session to its due close."""
        return max(self.idle_gap_ms, self.linger_ms)

    @property
    def revised_within_ms(self) -> int:
        """Maximum record time between a session and the latest session at which the session can get another revision."""
        return self.idle_gap_ms + self.linger_ms + self.grace_ms + self.max_future_ms

    def hold_ms(self, revision: int, remaining_ms: int) -> int:
        """Returns the time for which a segment that was opened for a revision stays open for more late records.

        The time is the linger for the first revision, and doubles with each further revision, so that n late records cause
        about log2(n) revisions. The end of the grace bounds the time: a revision is not delayed for records that could not
        reopen the segment.

        Args:
            revision: The revision, 1 or more; 0 if the close before the first publication is undone.
            remaining_ms: Time until the end of the grace; less than 0 after the end.
        """
        if revision <= 1:
            return self.linger_ms
        doubled = max(self.linger_ms, _MIN_LINGER_MS) << min(revision - 1, _MAX_DOUBLINGS)
        return max(self.linger_ms, min(doubled, remaining_ms))
