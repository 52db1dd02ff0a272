"""Decides what a span is: an agent, a workflow, a model call, a tool call or a retrieval, by its attributes."""

from __future__ import annotations

from typing import Literal

from traceweir.streams.base.judge_mark import JUDGE_MARK
from traceweir.streams.intake.spans.attributes import first_text
from traceweir.streams.intake.spans.span import Attributes, Span

Kind = Literal["agent", "workflow", "chain", "llm", "tool", "retriever", "judge", "other"]

_OPENINFERENCE_KIND, _MLFLOW_KIND, _TRACELOOP_KIND = "openinference.span.kind", "mlflow.spanType", "traceloop.span.kind"
_OPENINFERENCE: dict[str, Kind] = {
    "LLM": "llm",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    "RERANKER": "retriever",
    "EVALUATOR": "judge",
}
_MLFLOW: dict[str, Kind] = {
    "LLM": "llm",
    "CHAT_MODEL": "llm",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "chain",
    "WORKFLOW": "workflow",
    "RETRIEVER": "retriever",
    "RERANKER": "retriever",
    "EVALUATOR": "judge",
}
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
_TRACELOOP: dict[str, Kind] = {"tool": "tool", "workflow": "workflow", "agent": "agent", "task": "other"}
_LANGSMITH: dict[str, Kind] = {"llm": "llm", "tool": "tool", "chain": "chain", "retriever": "retriever"}
_LANGFUSE: dict[str, Kind] = {
    "generation": "llm",
    "tool": "tool",
    "agent": "agent",
    "chain": "chain",
    "span": "chain",
    "retriever": "retriever",
    "evaluator": "judge",
}
_SPRING_AI: dict[str, Kind] = {"chat_client": "workflow", "tool_call": "tool"}
_AI_SERVICE = "langchain4j.aiservices."
_MCP = "mcp.method.name"
_AI_SDK: dict[str, Kind] = {"ai.generateText": "agent", "ai.streamText": "agent", "ai.toolCall": "tool"}
HAYSTACK, HAYSTACK_AGENT = "haystack.", "haystack.agent.run"
_HAYSTACK: dict[str, Kind] = {
    "haystack.pipeline.run": "workflow",
    "haystack.async_pipeline.run": "workflow",
    HAYSTACK_AGENT: "agent",
    "haystack.agent.step.llm": "llm",
    "haystack.agent.step.tool": "tool",
}
HAYSTACK_COMPONENT = "haystack.component.type"
_LLM_REQUESTS = {"chat", "completion"}
_OWN = "traceweir"
_TRACELOOP_JS = "@traceloop/instrumentation-langchain"


def kind_of(span: Span) -> Kind:
    """Returns the kind of a span; the first convention whose attribute the span has decides."""
    attributes = span.attributes
    found = _by_attribute(span)
    if found is not None:
        return "other" if found == "tool" and is_nameless_tool(span) else found
    name = span.name
    if _MCP in attributes:
        return "tool" if is_mcp_call(attributes) else "other"
    if name.startswith(_AI_SERVICE):
        return "agent"
    if name.startswith(HAYSTACK):
        return _HAYSTACK.get(name) or _of_component(attributes)
    if name == "call_llm" or (name.endswith(".chat") and "llm.request.type" in attributes):
        return "llm"
    if name.startswith(("execute_tool ", "running tool:")) or name == "running tool":
        return "tool"
    if name.endswith(".tool"):
        return "tool"
    if name.startswith(("invoke_agent", "agent_run [")) or name == "agent run":
        return "agent"
    if name == "invocation" or name.startswith("invocation ["):
        return "workflow"
    if str(attributes.get("llm.request.type", "")) in _LLM_REQUESTS:
        return "llm"
    usage = any(key.startswith(("gen_ai.usage.", "llm.token_count.", "llm.usage.")) for key in attributes)
    model = first_text(attributes, "gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model_name")
    return "llm" if usage and model else "other"


def _by_attribute(span: Span) -> Kind | None:
    attributes = span.attributes
    word = first_text(attributes, _OPENINFERENCE_KIND).upper() if _OPENINFERENCE_KIND in attributes else ""
    if word == "LLM" and "._prepare_" in span.name:
        return "other"  # LlamaIndex's preparation of a call, which calls no model
    if word == "AGENT" and "tool.name" in attributes and "agent.name" not in attributes:
        return "tool"  # OpenInference's LangChain calls each run an AGENT whose name has `agent` in it
    if word:
        return _OPENINFERENCE.get(word, "other")
    word = first_text(attributes, _MLFLOW_KIND).upper() if _MLFLOW_KIND in attributes else ""
    operation = first_text(attributes, "gen_ai.operation.name")
    if word and (word in _MLFLOW or not operation):
        return _MLFLOW.get(word, "other")
    if operation:
        found = _OPERATIONS.get(operation)
        if found is None and operation.startswith("invoke_"):  # Strands: a swarm, a graph
            found = "workflow"
        traceloop = None
        if _TRACELOOP_KIND in attributes:
            traceloop = _TRACELOOP.get(first_text(attributes, _TRACELOOP_KIND).lower())
        if found == "agent" and traceloop == "workflow":
            return "workflow"
        return found or traceloop or _SPRING_AI.get(first_text(attributes, "spring.ai.kind"), "other")
    word = first_text(attributes, _TRACELOOP_KIND).lower()
    if word:
        return _TRACELOOP.get(word, "other")
    word = first_text(attributes, "langsmith.span.kind").lower()
    if word:
        return _LANGSMITH.get(word, "other")
    word = first_text(attributes, "langfuse.observation.type").lower()
    if word:
        return _LANGFUSE.get(word, "other")
    word = first_text(attributes, "ai.operationId")
    if word:
        return "llm" if word.endswith((".doGenerate", ".doStream")) else _AI_SDK.get(word, "other")
    return None


def _of_component(attributes: Attributes) -> Kind:
    """Returns the kind of a component of Haystack: its type tells it, and that a model replies."""
    component = first_text(attributes, HAYSTACK_COMPONENT)
    if component == "Agent":
        return "agent"
    is_model = first_text(attributes, "haystack.component.name") == "chat_generator"  # that of an agent of Haystack 2
    is_model = is_model or first_text(attributes, "haystack.component.output").startswith('{"replies":')
    if is_model or component.endswith("Generator"):
        return "llm"
    return "retriever" if component.endswith("Retriever") else "other"


def is_nameless_tool(span: Span) -> bool:
    """Returns whether a span is the run of a tool of which it tells the class alone, as traceloop's JavaScript does."""
    return span.scope == _TRACELOOP_JS and span.name.startswith("execute_tool ")


def is_mcp_call(attributes: Attributes) -> bool:
    """Returns whether a span is the call of a tool of an MCP server, as its client or the server recorded it."""
    return attributes.get(_MCP) == "tools/call"


def is_own(span: Span) -> bool:
    """Returns whether a span is Traceweir's own: telemetry of its worker, or a call of its judge.

    The instrumentation scope decides, and the mark in the trace state. The name of a service is the user's, who can
    call an agent `traceweir-agents`.
    """
    if span.scope == _OWN or span.scope.startswith(f"{_OWN}."):
        return True
    return bool(span.trace_state) and JUDGE_MARK in map(str.strip, span.trace_state.split(","))
