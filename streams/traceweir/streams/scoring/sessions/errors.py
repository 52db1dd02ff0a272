"""Defines the exceptions that tell why a session has no scores, with what judges were paid until then."""

from __future__ import annotations

from traceweir.schemas.dead_letter import Reason
from traceweir.streams.scoring.judges.verdicts import NOTHING_JUDGED, JudgeUsage


class SessionRejected(Exception):  # noqa: N818  # an outcome that the caller handles
    """A session cannot be scored.

    Args:
        reason: The reason of its dead letter.
        detail: One sentence for a person.
        judged: The verdicts that judges returned before the failure, and their cost.
    """

    def __init__(self, reason: Reason, detail: str, judged: JudgeUsage = NOTHING_JUDGED) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail
        self.judged = judged


class ChallengerUnavailable(Exception):  # noqa: N818  # an outcome that the caller handles
    """A challenger cannot score now, or its scores cannot be written now; a later try can succeed."""
