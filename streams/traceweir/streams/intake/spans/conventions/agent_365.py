"""Microsoft's Agent 365, of its SDK for agents and of Copilot Studio: the standard, with keys of its drafts."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention

AGENT_365 = Convention(
    name="Agent 365",
    users=("gen_ai.caller.id",),
    frameworks=(("agent365", "microsoft-agent-365"),),
)
