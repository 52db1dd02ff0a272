"""When a session is closed, and for how long after that it may come again."""

from __future__ import annotations

from dataclasses import dataclass

from traceweir.streams.settings import Settings


@dataclass(frozen=True, slots=True)
class ClosingRules:
    """The settings of sessions as the stages need them: times in milliseconds of record time, as Kafka's timestamps are."""

    idle_gap_ms: int
    """Without a record for so long, a session closes."""
    linger_ms: int
    """From `session.ended` to the close."""
    grace_ms: int
    """For so long after it was due, a late record opens a closed session again, as its next revision."""
    guard_ms: int
    """For so long the identities of a closed session are kept; a record that lags further behind the watermark is late."""
    max_future_ms: int
    """A record's timestamp may be so far ahead of the clock."""
    max_events: int
    """Events at which a segment closes."""
    max_bytes: int
    """Bytes of events at which a segment closes."""

    @classmethod
    def of(cls, settings: Settings) -> ClosingRules:
        """The rules that the settings ask for; fractions of a millisecond are cut off.

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
        """By how much a session may lie behind the latest one, in record time, and still come again as a later revision."""
        return self.idle_gap_ms + self.linger_ms + self.grace_ms + self.max_future_ms


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
