"""Defines the result of a round, and its line in the file of rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.audit import claims
from tests.chaos.scenario import Scenario


@dataclass(frozen=True)
class Outcome:
    """The result of a round."""

    scenario: Scenario
    faults: Mapping[str, int]
    """Number of faults that happened, by kind."""
    ends: Mapping[str, int]
    """How workers ended that the harness had not killed."""
    sent: Mapping[str, int]
    """Number of records by kind: `joined`, `duplicate`, `forwarded` (sent again as strays) and so on."""
    dead_lettered: int
    committed: Mapping[str, int]
    """Number of records by topic."""
    found: claims.Faults
    longest_pause_s: float
    """The longest time under load without an output, in seconds."""
    state_bytes: int
    """Size of the largest state directory when no record is in flight."""
    took_s: float

    def line(self) -> dict[str, Any]:
        """Returns the result as a line of the file of rounds."""
        scenario = self.scenario
        return {
            "seed": scenario.seed,
            "scenario": scenario.describe(),
            "faults": dict(self.faults),
            "ends": dict(self.ends),
            "sent": dict(self.sent),
            "dead_lettered": self.dead_lettered,
            "committed": dict(self.committed),
            "longest_pause_s": round(self.longest_pause_s, 1),
            "state_bytes": self.state_bytes,
            "took_s": round(self.took_s, 1),
            **{heading: sum(map(len, self.found.get(heading, {}).values())) for heading in claims.HEADINGS},
            "found": {
                heading: {claim: sentences[:3] for claim, sentences in group.items()}
                for heading, group in self.found.items()
            },
        }
