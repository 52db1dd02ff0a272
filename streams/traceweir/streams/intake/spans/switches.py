"""Names the setting that makes an instrumentation write content."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.streams.intake.spans.span import Span

_GENAI = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def switch_of(spans: Sequence[Span]) -> str:
    """Returns the setting that makes the instrumentation of these spans write content, with its value."""
    keys = {key for span in spans for key in span.attributes}
    scopes = {span.scope for span in spans}

    def has(prefix: str) -> bool:
        return any(key.startswith(prefix) for key in keys)

    if "openinference.span.kind" in keys:
        return "OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false"
    if has("gcp.vertex.agent.llm_re") or has("gcp.vertex.agent.tool_call_args"):
        return "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true"
    if has("gcp.vertex.agent.") or "gcp.vertex.agent" in scopes:
        return f"{_GENAI}=SPAN_AND_EVENT (with ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=1: ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS=true)"
    if (
        any(scope.startswith("pydantic-ai") for scope in scopes)
        or has("pydantic_ai.")
        or "model_request_parameters" in keys
    ):
        return "InstrumentationSettings(include_content=True)"
    if has("traceloop.") or "llm.request.type" in keys:
        return "TRACELOOP_TRACE_CONTENT=true"
    if has("langsmith.") or "langsmith" in scopes:
        return "LANGSMITH_HIDE_INPUTS=false and LANGSMITH_HIDE_OUTPUTS=false"
    if has("langfuse.observation."):
        return "LANGFUSE_OBSERVE_DECORATOR_IO_CAPTURE_ENABLED=true"
    if has("ai.operationId") or has("ai.telemetry."):
        return "experimental_telemetry: {recordInputs: true, recordOutputs: true}"
    if has("mastra."):
        return "hideInput: false and hideOutput: false in Mastra's tracingOptions"
    if "gen_ai" in scopes:
        return "telemetry: {recordInputs: true, recordOutputs: true} (AI SDK 7)"
    if has("spring.ai."):
        return (
            "spring.ai.tools.observations.include-content=true; Spring AI writes prompts and answers to its log alone"
        )
    if has("haystack.") or any(scope.startswith("haystack") for scope in scopes):
        return "HAYSTACK_CONTENT_TRACING_ENABLED=true"
    if any(scope.lower().startswith(("microsoft.semantic_kernel", "semantic_kernel")) for scope in scopes):
        return (
            "SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true, and export the log records of the "
            "logger semantic_kernel too, which hold the messages"
        )
    if any(scope.startswith("agent_framework") for scope in scopes):
        return "ENABLE_SENSITIVE_DATA=true"
    if any(scope.startswith("strands.") for scope in scopes):
        return "gen_ai_unredacted_attributes=gen_ai.* in OTEL_SEMCONV_STABILITY_OPT_IN, or leave that word out of it"
    if any(scope.startswith("azure.") for scope in scopes):
        return "AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true"
    return f"{_GENAI}=SPAN_AND_EVENT (instrumentations before util-genai 1.0: true)"
