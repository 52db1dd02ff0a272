"""Decides how much of the agents' and judges' text leaves with a score."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from traceweir.schemas.score import Score
from traceweir.scorers.redaction.redaction import redact, redact_text

Content = Literal["redacted", "full", "none"]


def explanation(score: Score, content: Content) -> str:
    """Returns the rationale of a score: without secrets and identifiers, whole, or empty with `none`."""
    return _text(score.rationale, content)


def labels(score: Score, content: Content) -> dict[str, str]:
    """Returns the labels of a score, likewise."""
    found = score.labels or {}
    if content == "redacted":
        return {redact_text(name): redact_text(value) for name, value in found.items()}
    return dict(found) if content == "full" else {}


def details(score: Score, content: Content) -> dict[str, JsonValue]:
    """Returns the details of a score, likewise."""
    if content == "redacted":
        found = redact(dict(score.details))
        return found if isinstance(found, dict) else {}
    return dict(score.details) if content == "full" else {}


def _text(text: str, content: Content) -> str:
    return text if content == "full" else redact_text(text) if content == "redacted" else ""
