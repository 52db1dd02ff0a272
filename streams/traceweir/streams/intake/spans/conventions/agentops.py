"""AgentOps: spans of decorated functions, and beside them those of models as traceloop writes them."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import ABSENT, decoded, first_text, json_in_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.source import Rank, Source, as_it_is, attributes
from traceweir.streams.intake.spans.message import RequestedCall
from traceweir.streams.intake.spans.span import Attributes, Kind, Span
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "agentops.span.kind"
_KINDS: dict[str, Kind] = {"agent": "agent", "workflow": "workflow", "tool": "tool", "llm": "llm"}
_OPERATION = "operation.name"
_ASKED = "tool_call."


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, _KIND)
    return _KINDS.get(word, "other") if word else None


def _agent_of(span: Span) -> str:
    return first_text(span.attributes, _OPERATION) if _KIND in span.attributes else ""


def _asked_tool(of_span: Attributes) -> str:
    """Returns the name of a decorated tool. Vercel's AI SDK has the name of its span under the same key."""
    return first_text(of_span, _OPERATION) if _KIND in of_span else ""


def _asked_call(span: Span) -> RequestedCall | None:
    """Returns the call that a model asked for: AgentOps writes it as a span below that of the model, and not on that."""
    there = span.attributes
    if not span.name.startswith(_ASKED) or "tool.call.type" not in there:
        return None
    name = first_text(there, "tool.name") or span.name.removeprefix(_ASKED)
    return RequestedCall(first_text(there, "tool.call.id"), name, decoded(there.get("tool.parameters", ABSENT)))


AGENTOPS = Convention(
    name="AgentOps",
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(Switch("AGENTOPS_TRACE_CONTENT=true", keys=("agentops.",)),),
    clients=(("agentops", "agentops"),),
    agent_of={"agent": _agent_of},
    contents=("agentops.agent.output", "agentops.workflow.output"),
    asked_call=_asked_call,
    questions=attributes(question_in, Rank.FRAME, "agentops.agent.input", "agentops.workflow.input"),
    answers=attributes(answer_in, Rank.FRAME, "agentops.agent.output", "agentops.workflow.output"),
    asked_tool=_asked_tool,
    arguments=(Source("agentops.tool.input", as_it_is, Rank.FRAME),),
    results=attributes(json_in_text, Rank.FRAME, "agentops.tool.output"),
)
