"""smolagents, as OpenInference writes it."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

CLASSES = ("CodeAgent", "ToolCallingAgent", "MultiStepAgent")
"""The classes of agents: the class stands in the name of a span where the agent has no name."""

SMOLAGENTS = Convention(name="smolagents", frameworks=(("smolagents", "smolagents"),))
