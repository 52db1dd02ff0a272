"""OpenAI's Agents SDK, as OpenInference and traceloop write it."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.metadata import usable_id
from traceweir.streams.intake.spans.span import Attributes, Kind, Span

_ERROR = "An error occurred while running the tool"
"""What OpenAI's Agents SDK gives to the model in place of the result of a failed tool."""
_REDACTED = "Error details are redacted"
"""What OpenAI's Agents SDK writes in place of the error of a tool; the result is what the model reads."""
_HANDOFF = "handoff to "
_RUN = "Agent run"


def _handoff(name: str) -> str:
    """Returns the name under which a model asks for an agent, which OpenInference's span of the handover names."""
    if not name.startswith(_HANDOFF):
        return ""
    agent = name.removeprefix(_HANDOFF).strip().replace(" ", "_").lower()
    return f"transfer_to_{agent}"


def _error_in_result(result: str) -> str:
    return (result.partition("Error: ")[2] or result) if result.startswith(_ERROR) else ""


def _is_redacted(description: str, _: str) -> bool:
    return _REDACTED in description


def _hides_error(span: Span) -> bool:
    """Returns whether OpenAI's Agents SDK has kept the error of a tool from the model and from the span."""
    if _REDACTED not in span.status_message:
        return False
    result = first_text(span.attributes, "output.value", "gen_ai.tool.call.result")
    return result.startswith(_ERROR) and "Error: " not in result


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    return {
        f"error:{place}": f"the error message of the call of tool {call.name!r} is not in the spans: OpenAI's Agents SDK tells it "
        "to nobody; give the tool a failure_error_function"
        for place, call in enumerate(seen.calls)
        if call.run is not None and _hides_error(call.run.span)
    }


def _kind_of_name(span: Span) -> Kind | None:
    """Returns the kind of a span of Logfire, whose names are those of the SDK's own spans."""
    return "agent" if span.name.startswith(_RUN) and "handoffs" in span.attributes else None


def _agent_of(span: Span) -> str:
    return first_text(span.attributes, "name") if span.name.startswith(_RUN) else ""


def _session_of(attributes: Attributes) -> str:
    """Returns the group of the SDK's trace, as Logfire writes it."""
    group = first_text(attributes, "group_id") if "agent_trace_id" in attributes else ""
    return "" if group == "null" else usable_id(group)


OPENAI_AGENTS = Convention(
    name="OpenAI Agents SDK",
    frameworks=(("openai_agents", "openai-agents"),),
    kind_of_name=_kind_of_name,
    agent_of={"agent": _agent_of},
    session_of=_session_of,
    handoff=_handoff,
    error_in_result=_error_in_result,
    hides_error=_is_redacted,
    quirks=_quirks,
)
