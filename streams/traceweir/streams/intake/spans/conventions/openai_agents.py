"""OpenAI's Agents SDK, as OpenInference and traceloop write it."""

from __future__ import annotations

from collections.abc import Mapping

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.span import Span

ERROR = "An error occurred while running the tool"
"""What OpenAI's Agents SDK gives to the model in place of the result of a failed tool."""
REDACTED = "Error details are redacted"
"""What OpenAI's Agents SDK writes in place of the error of a tool; the result is what the model reads."""


def _hides_error(span: Span) -> bool:
    """Returns whether OpenAI's Agents SDK has kept the error of a tool from the model and from the span."""
    if REDACTED not in span.status_message:
        return False
    result = first_text(span.attributes, "output.value", "gen_ai.tool.call.result")
    return result.startswith(ERROR) and "Error: " not in result


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    return {
        f"error:{place}": f"the error message of the call of tool {call.name!r} is not in the spans: OpenAI's Agents SDK tells it "
        "to nobody; give the tool a failure_error_function"
        for place, call in enumerate(seen.calls)
        if call.run is not None and _hides_error(call.run.span)
    }


OPENAI_AGENTS = Convention(name="OpenAI Agents SDK", frameworks=(("openai_agents", "openai-agents"),), quirks=_quirks)
