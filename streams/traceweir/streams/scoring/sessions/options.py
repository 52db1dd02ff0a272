"""Defines what a scoring of sessions is told: the settings that it follows, and what is done with its outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceweir.schemas.candidate import Candidate
from traceweir.schemas.score import Score
from traceweir.streams.scoring.sessions.user_ids import HASHED, UserIds

# The scoring process reads no settings, and OpenTelemetry's SDK is loaded only where traces are on.
if TYPE_CHECKING:
    from traceweir.streams.base.settings import Settings
    from traceweir.streams.scoring.tracing.session_spans import SessionSpans


@dataclass(frozen=True, slots=True)
class ScoringOptions:
    """The settings that the scoring of a session follows."""

    timeout_s: float
    """Seconds that a scorer, or an embedding, can take; above 0."""
    judge_timeout_s: float | None = None
    """Seconds that a scorer that asks a judge can take; None: `timeout_s`."""
    user_ids: UserIds = HASHED
    """How scores and candidates show the ids of users."""
    settles: bool = False
    """Whether a session is scored again after `settle_s` of its criteria, so that the first attempt leaves these out."""

    @classmethod
    def of(cls, settings: Settings) -> ScoringOptions:
        """Returns the options of these settings."""
        return cls(settings.score_timeout_s, settings.judge_timeout_s, UserIds.of(settings))


@dataclass(frozen=True, slots=True)
class ScoringOutputs:
    """What is done with the scores and candidates of sessions, and who watches."""

    encode_score: Callable[[Score], bytes] = Score.wire
    """Serialises a score."""
    offered: Callable[[Candidate, bytes], object] = lambda candidate, value: None
    """Receives each candidate, and its serialised form."""
    spans: SessionSpans | None = None
    """Writes what the scoring does as spans; None: traces are off."""


WIRE = ScoringOutputs()
"""Scores in the form of the topic `results`; nobody watches."""
