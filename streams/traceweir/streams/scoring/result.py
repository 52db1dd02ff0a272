"""What scoring a session gives back: one type, from where the session is measured to where its scores are published."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from traceweir.streams.judges.verdicts import NOTHING_JUDGED, JudgeUsage, JudgeVerdict


class OfferedCandidate(NamedTuple):
    """A candidate that the score stage may send."""

    scope: str
    trace: bytes
    """16 bytes that stand for the trace's id."""
    digest: bytes
    """16 bytes that stand for everything the gate decides by. They are the same for each revision in which none of it changed."""
    value: bytes
    """The candidate as it stands on its topic."""


class ScoringResult(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The scores and candidates of one revision of a session, serialised. It crosses the socket of the scoring process as it is."""

    segment: int
    revision: int
    attempt: int
    """0 for the first scoring of the revision; each successful retry publishes under the next number."""
    last_record_ms: int
    """Timestamp of the session's last record, in milliseconds since 1970, as the session itself says it."""
    scores: Sequence[bytes]
    """The scores as they stand on the topic `results`."""
    candidates: Sequence[OfferedCandidate]
    """One for each trace."""
    outcomes: dict[str, int]
    """How many scores had each outcome: `PASSED`, `NOT_EVALUATED.timeout` and so on."""
    judged: JudgeUsage = NOTHING_JUDGED
    unanswered: int = 0
    """How many scores have no value because a judge could not be asked or gave no usable answer."""


class Scoring(Protocol):
    """Scores sessions."""

    def __call__(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> Awaitable[ScoringResult]:
        """Score a session.

        Args:
            raw: The session as it stands on its topic.
            known: Verdicts that judges gave on it before.
            attempt: The attempt number that its scores and candidates get.

        Raises:
            SessionRejected: the session cannot be scored.
        """
