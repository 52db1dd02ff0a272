"""CrewAI, whose crews have tasks in place of a question."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

CREWAI = Convention(name="CrewAI", frameworks=(("crewai", "crewai"),), contents=("crewai.crew.tasks",))
