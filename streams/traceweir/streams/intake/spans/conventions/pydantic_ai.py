"""pydantic-ai, whose spans have lists of events and of messages in attributes of their own."""

from __future__ import annotations

from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.span import Kind, Span


def _kind_of_name(span: Span) -> Kind | None:
    if span.name == "running tool" or span.name.startswith("running tool:"):
        return "tool"
    return "agent" if span.name == "agent run" else None


PYDANTIC_AI = Convention(
    name="pydantic-ai",
    kind_of_name=_kind_of_name,
    switches=(
        Switch(
            "InstrumentationSettings(include_content=True)",
            keys=("pydantic_ai.", "model_request_parameters"),
            scopes=("pydantic-ai*",),
        ),
    ),
    frameworks=(("pydantic-ai", "pydantic-ai"), ("pydantic_ai", "pydantic-ai")),
    agents=("agent_name",),
    requested_models=("model_name",),
    contents=("final_result",),
    only_json=("pydantic_ai.all_messages", "all_messages_events"),
)
