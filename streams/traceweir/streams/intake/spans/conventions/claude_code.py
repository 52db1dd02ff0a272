"""Claude Code's own spans, and those that OpenInference writes of the Claude Agent SDK, which runs Claude Code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, first_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, attributes, field_of_event
from traceweir.streams.intake.spans.message import SpanMessage, is_hidden
from traceweir.streams.intake.spans.span import Attributes, Kind, Span

_NAME = "claude_code."
_SDK = "openinference.instrumentation.claude_agent_sdk"
_KIND = "span.type"
_TOOL = "tool_name"
_OUTPUT = "tool.output"
_REQUESTS = ("api_request_body", f"{_NAME}api_request_body")
_RESPONSES = ("api_response_body", f"{_NAME}api_response_body")
"""The names of the log records with what was sent to the API, and with what it answered."""
_KINDS: dict[str, Kind] = {"interaction": "agent", "llm_request": "llm", "tool": "tool", "tool.execution": "tool"}


def _kind(span: Span) -> Kind | None:
    if not span.name.startswith(_NAME):
        return None
    word = first_text(span.attributes, _KIND)
    if word == "tool.execution" and "tool_use_id" not in span.attributes:
        # Nothing tells of which tool's span it is a part.
        return "other"
    return _KINDS.get(word, "other")


def _asked_tool(of_span: Attributes) -> str:
    """Returns the name under which the model asks for a tool; the key of the standard has a server's tool without it."""
    return first_text(of_span, _TOOL) if _KIND in of_span else ""


def _content(value: Any) -> Any:
    return ABSENT if value is None else structure(value)


def _response(body: Any) -> list[SpanMessage]:
    """Returns what a model wrote; nothing from a body that was cut, which is no JSON."""
    body = structure(body)
    return answered(body) if isinstance(body, dict) else []


def _question(value: Any) -> str:
    return value if isinstance(value, str) and not is_hidden(value) else ""


def _has_failed(span: Span, _: Any) -> bool:
    return span.name.startswith(_NAME) and str(span.attributes.get("success", "")).lower() == "false"


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    """Tells that the Claude Agent SDK has no span of a model's call."""
    if _SDK not in seen.scopes or any(model.input_tokens is not None for model in seen.models):
        return {}
    return {
        "tokens": "the tokens of each model call are not in the spans: the instrumentation of the Claude Agent SDK writes sums "
        "of them alone; use the spans of Claude Code itself, with CLAUDE_CODE_ENABLE_TELEMETRY=1, "
        "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1 and OTEL_TRACES_EXPORTER=otlp"
    }


CLAUDE_CODE = Convention(
    name="Claude Code",
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(
        Switch(
            "OTEL_LOG_USER_PROMPTS=1 (questions), OTEL_LOG_TOOL_CONTENT=1 (results of tools) and OTEL_LOG_RAW_API_BODIES=1 "
            "(all else), and export the log records too",
            scopes=("com.anthropic.claude_code*",),
        ),
    ),
    frameworks=(("claude_code", "claude-code"), ("claude_agent_sdk", "claude-agent-sdk")),
    requested_models=("model",),
    input_tokens=("input_tokens",),
    output_tokens=("output_tokens",),
    contents=("user_prompt",),
    log_events=(*_REQUESTS, *_RESPONSES),
    inputs=tuple(field_of_event(name, "body", requested) for name in _REQUESTS),
    outputs=(
        *(field_of_event(name, "body", _response) for name in _RESPONSES),
        *attributes(answered, Rank.REST, "response.model_output"),
    ),
    questions=attributes(_question, Rank.FRAME, "user_prompt"),
    tool_ids=("tool_use_id",),
    tool_names=(_TOOL,),
    asked_tool=_asked_tool,
    results=(
        field_of_event(_OUTPUT, "output", _content),
        field_of_event(_OUTPUT, "content", _content),
    ),
    has_failed=_has_failed,
    failure_messages=("error",),
    quirks=_quirks,
)
