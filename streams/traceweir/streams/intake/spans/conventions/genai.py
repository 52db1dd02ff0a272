"""GenAI: the semantic conventions of OpenTelemetry for generative AI, the current ones and the former ones."""

from __future__ import annotations

from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.span import Attributes, Kind, Span

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable by which most instrumentations of the standard write content."""
OPERATION_NAMES = ("execute_tool ", "invoke_agent")
"""The beginnings of the names that the standard gives to spans."""
_OPERATIONS: dict[str, Kind] = {
    "chat": "llm",
    "generate_content": "llm",
    "text_completion": "llm",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "retrieval": "retriever",
    "chain": "chain",
    "evaluate": "judge",
}
_MODELS = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model_name")
_USAGES = ("gen_ai.usage.", "llm.token_count.", "llm.usage.")


def operation_of(attributes: Attributes) -> str:
    """Returns the operation of a span; empty if it tells none. It says more than the word of most other conventions."""
    return first_text(attributes, "gen_ai.operation.name")


def kind_of_operation(operation: str) -> Kind | None:
    """Returns the kind of the spans of an operation; None if it is none of the standard's."""
    found = _OPERATIONS.get(operation)
    if found is None and operation.startswith("invoke_"):  # Strands: a swarm, a graph
        found = "workflow"
    return found


def _kind(span: Span) -> Kind | None:
    operation = operation_of(span.attributes)
    return (kind_of_operation(operation) or "other") if operation else None


def _kind_of_name(span: Span) -> Kind | None:
    name, attributes = span.name, span.attributes
    if name.startswith("execute_tool "):
        return "tool"
    if name.startswith("invoke_agent"):
        return "agent"
    usage = any(key.startswith(_USAGES) for key in attributes)
    return "llm" if usage and first_text(attributes, *_MODELS) else None


def _agent_of(span: Span, kind: Kind) -> str:
    name = ""
    if kind == "agent":
        text = span.name
        while text.startswith("invoke_agent "):
            text = text.removeprefix("invoke_agent ")
            name = text
    return name


GENAI = Convention(
    name="GenAI",
    kind=_kind,
    kind_of_name=_kind_of_name,
    switches=(Switch(f"{CAPTURE}=SPAN_AND_EVENT (instrumentations before util-genai 1.0: true)", scopes=("*",)),),
    shared_sessions=("session.id", "gen_ai.conversation.id"),
    users=("user.id", "enduser.id"),
    agents=("gen_ai.agent.name",),
    agent_of=_agent_of,
    models=("gen_ai.response.model",),
    requested_models=("gen_ai.request.model",),
    input_tokens=("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    output_tokens=("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    contents=("gen_ai.input.messages", "gen_ai.output.messages"),
    only_json=("gen_ai.input.messages", "gen_ai.output.messages"),
    documents=("gen_ai.retrieval.documents",),
)
