"""Says from when on the store has what a page shows: texts, results and figures are kept for different times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

REMOVED_EVERY = timedelta(hours=1)
"""Time between two removals: rows are there for so much longer at most."""


class Border(NamedTuple):
    """The time from which on the store has something."""

    what: str
    """What is stored since then."""
    begins_at: datetime
    """The oldest that is kept."""
    setting: str
    """The variable that says for how long."""


@dataclass(frozen=True)
class Retention:
    """For how long the store keeps rows."""

    texts: timedelta
    """Records of sessions, with their texts, and dead letters."""
    results: timedelta
    """Results with their reasons."""
    figures: timedelta
    """Numbers and sums of results."""

    def borders(self, since: datetime, now: datetime) -> list[Border]:
        """Returns the borders that a span goes beyond; the latest one first.

        Args:
            since: When the span begins.
            now: The time of the last removal.
        """
        kept = (
            ("texts of sessions and dead letters", self.texts, "TRACEWEIR_STORE_SESSIONS_DAYS"),
            ("results with their reasons", self.results, "TRACEWEIR_STORE_RESULTS_DAYS"),
            ("figures", self.figures, "TRACEWEIR_STORE_FIGURES_DAYS"),
        )
        found = [Border(what, now - age, setting) for what, age, setting in kept if since < now - age - REMOVED_EVERY]
        return sorted(found, key=lambda border: border.begins_at, reverse=True)
