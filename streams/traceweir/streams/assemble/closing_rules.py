"""Defines when a session closes, and how long a closed session can be reopened."""

from __future__ import annotations

from dataclasses import dataclass

from traceweir.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class ClosingRules:
    """The session settings in the unit of the stages: milliseconds of record time, as in Kafka's timestamps."""

    idle_gap_ms: int
    """Time without a record after which a session closes."""
    linger_ms: int
    """Time from `session.ended` to the close."""
    grace_ms: int
    """Time after the due close in which a late record reopens the session as its next revision."""
    guard_ms: int
    """Time for which the identities of a closed session are kept.

    A record that is further behind the watermark is rejected as late.
    """
    max_future_ms: int
    """Maximum distance of a record's timestamp ahead of the clock."""
    max_events: int
    """Events and traces at which a segment closes."""
    max_bytes: int
    """Bytes of events and traces at which a segment closes."""

    @classmethod
    def of(cls, settings: Settings) -> ClosingRules:
        """Returns the rules of these settings; fractions of a millisecond are truncated.

        >>> from traceweir.streams.settings import Settings
        >>> ClosingRules.of(Settings(idle_gap_s=1.5)).idle_gap_ms
        1500
        """
        return cls(
            idle_gap_ms=_milliseconds(settings.idle_gap_s),
            linger_ms=_milliseconds(settings.close_linger_s),
            grace_ms=_milliseconds(settings.grace_s),
            guard_ms=_milliseconds(settings.guard_s),
            max_future_ms=_milliseconds(settings.max_future_s),
            max_events=settings.segment_max_events,
            max_bytes=settings.segment_max_bytes,
        )

    @property
    def revised_within_ms(self) -> int:
        """Maximum record time between a session and the latest session at which the session can get another revision."""
        return self.idle_gap_ms + self.linger_ms + self.grace_ms + self.max_future_ms


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
