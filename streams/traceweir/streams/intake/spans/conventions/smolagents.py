"""smolagents, as OpenInference writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.message import is_hidden

_SCOPE = "openinference.instrumentation.smolagents"
CLASSES = ("CodeAgent", "ToolCallingAgent", "MultiStepAgent")
"""The classes of agents: the class stands in the name of a span where the agent has no name."""


def _untold_agents(seen: SeenInvocation) -> list[str]:
    """Returns the names of managed agents that ran more often than calls of them are told.

    Other frameworks write a span of a tool around an agent that another agent called.
    """
    ran = Counter(
        seen.name_of(node) or "without a name"
        for node in seen.nodes
        if node.kind == "agent" and node.parent is not None and node.parent.span.scope == node.span.scope == _SCOPE
    )
    return sorted(ran - Counter(call.name for call in seen.calls)) if ran else []


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    agents = _untold_agents(seen) if _SCOPE in seen.scopes else []
    if not agents:
        return {}
    reason = "smolagents writes no span of a call in the code of a CodeAgent; let a ToolCallingAgent manage them"
    if any(is_hidden(value) for node in seen.nodes for value in node.span.attributes.values()):
        reason = seen.why()
    return {"tools": f"the calls of the managed agents {', '.join(agents)} are not in the spans: {reason}"}


SMOLAGENTS = Convention(
    name="smolagents",
    frameworks=(("smolagents", "smolagents"),),
    answering_tools=("final_answer",),
    unended_agents="smolagents when a run raises",
    quirks=_quirks,
)
