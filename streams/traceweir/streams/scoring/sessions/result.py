"""Defines ScoringResult, the result of scoring a session, from the scoring process to the score stage."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from traceweir.streams.scoring.judges.verdicts import NOTHING_JUDGED, JudgeUsage, JudgeVerdict


class OfferedCandidate(NamedTuple):
    """A candidate that the score stage can publish."""

    scope: str
    trace: bytes
    """Digest of the trace's id, 16 bytes."""
    digest: bytes
    """Digest of everything that the gate's scores depend on but time and version, 16 bytes.

    Revisions with the same trace, statuses and dimensions have the same digest.
    """
    value: bytes
    """The candidate as on the topic `candidates`."""


class ScoringResult(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The serialised scores and candidates of one revision of a session; the scoring process sends this object as it is."""

    segment: int
    revision: int
    attempt: int
    """0 for the first scoring of the revision; each successful retry publishes under the next number."""
    last_record_ms: int
    """The session's `last_record_at`, in milliseconds since 1970."""
    scores: Sequence[bytes]
    """The scores as on the topic `results`."""
    candidates: Sequence[OfferedCandidate]
    """One candidate per trace."""
    outcomes: dict[str, int]
    """Number of scores by outcome: the reported status, with the reason of a missing value: `NOT_EVALUATED.timeout`."""
    judged: JudgeUsage = NOTHING_JUDGED
    unanswered: int = 0
    """Number of scores without a value because a judge was unavailable or returned no usable answer."""
    replied: bool = False
    """Whether every question got a reply. A retry would read the same stored replies, so it could add no value."""
    challenger: str = ""
    """The id of the challenger that scores this session too; empty: none does."""
    settle_s: float = 0.0
    """The longest `settle_s` of the criteria that were left out for it; 0: none was."""

    @property
    def waiting(self) -> int:
        """Number of scores that can get a value in a retry."""
        return 0 if self.replied else self.unanswered


class Scoring(Protocol):
    """Scores sessions."""

    def __call__(self, raw: bytes, known: Sequence[JudgeVerdict] = (), attempt: int = 0, /) -> Awaitable[ScoringResult]:
        """Returns the scores and candidates of a session.

        Args:
            raw: The session as on the topic `sessions`.
            known: Stored verdicts of judges on this session.
            attempt: The attempt number of its scores and candidates.

        Raises:
            SessionRejected: the session cannot be scored.
        """
