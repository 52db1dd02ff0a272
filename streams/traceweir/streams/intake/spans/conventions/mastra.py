"""Mastra: the standard, and the runs of agents and workflows in attributes of its own."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention, Switch

MASTRA = Convention(
    name="Mastra",
    switches=(Switch("hideInput: false and hideOutput: false in Mastra's tracingOptions", keys=("mastra.",)),),
    sessions=("mastra.metadata.sessionId",),
    users=("mastra.metadata.userId", "mastra.metadata.resourceId"),
    contents=("mastra.agent_run.output",),
)
