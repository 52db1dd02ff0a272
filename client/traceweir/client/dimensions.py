"""Defines what scores are grouped by, and brings it into the form of Traceweir's events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traceweir.client.json_values import short_text

MAX_CHARS = 256
"""Maximum length of a dimension; a longer text is cut."""
MAX_LABELS = 8
"""Maximum number of labels; further ones are left out."""


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Whose work is recorded. What is empty or None is unknown, and is not written."""

    app_name: str = ""
    """Name of the agent's app."""
    agent_name: str = ""
    """Name of the agent."""
    agent_version: str = ""
    """Version of the agent."""
    environment: str = ""
    """Where the agent runs, for example `production`."""
    user_id: str = ""
    """Id of the user."""
    labels: Mapping[str, str] | None = None
    """Up to 8 short labels."""
    sampling_probability: float | None = None
    """Probability with which this invocation was chosen for recording, above 0 and at most 1."""

    def known(self) -> dict[str, Any]:
        """Returns the keys of an event; values that the schema refuses are left out or cut."""
        found: dict[str, Any] = {}
        for name in ("app_name", "agent_name", "agent_version", "environment", "user_id"):
            text = short(getattr(self, name))
            if text:
                found[name] = text
        labels = {short(name): short(value) for name, value in _entries(self.labels).items()}
        kept = [(name, value) for name, value in labels.items() if name and value][:MAX_LABELS]
        if kept:
            found["labels"] = dict(kept)
        probability = self.sampling_probability
        if isinstance(probability, int | float) and 0 < probability <= 1:
            found["sampling_probability"] = float(probability)
        return found

    def with_known(self, other: Dimensions) -> Dimensions:
        """Returns these dimensions, with those that the other knows in their place. Labels are joined by name."""
        labels = {**_entries(self.labels), **_entries(other.labels)}
        return Dimensions(
            app_name=other.app_name or self.app_name,
            agent_name=other.agent_name or self.agent_name,
            agent_version=other.agent_version or self.agent_version,
            environment=other.environment or self.environment,
            user_id=other.user_id or self.user_id,
            labels=labels or None,
            sampling_probability=self.sampling_probability
            if other.sampling_probability is None
            else other.sampling_probability,
        )


UNKNOWN = Dimensions()
"""Nothing is known."""


def short(value: object) -> str:
    """Returns a dimension as text of at most 256 characters; None is empty."""
    return short_text(value, MAX_CHARS)


def _entries(labels: object) -> dict[Any, Any]:
    return dict(labels) if isinstance(labels, Mapping) else {}
