"""traceloop's OpenLLMetry: the keys that were there before the standard, and its own words beside those of the standard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import first_text, json_in_text, structure
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import OPERATION, OPERATION_NAMES, kind_of_operation, operation_of
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.conventions.source import Rank, Source, SourcePlace, as_it_is, attributes
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.span import Kind, Span
from traceweir.streams.intake.spans.spread_messages import indexed
from traceweir.streams.intake.spans.texts_in_values import answer_in, question_in

_KIND = "traceloop.span.kind"
_KINDS: dict[str, Kind] = {"tool": "tool", "workflow": "workflow", "agent": "agent", "task": "other"}
_REQUESTS = {"chat", "completion", "llm.completions"}
_PROMPTS = "llm.prompts."
_COMPLETIONS = "llm.completions."
_TURNS = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant):")
"""What begins the texts of the user and of the model in the prompt of an API without messages."""
_SCOPE_OF_JS = "@traceloop/instrumentation-langchain"
_PROPERTIES = "traceloop.association.properties."


def _is_nameless_tool(span: Span) -> bool:
    """Returns whether a span is the run of a tool of which it tells the class alone, as traceloop's JavaScript does."""
    return span.scope == _SCOPE_OF_JS and span.name.startswith("execute_tool ")


def _kind(span: Span) -> Kind | None:
    word = first_text(span.attributes, _KIND).lower() if _KIND in span.attributes else ""
    if not word and span.scope != _SCOPE_OF_JS:
        return None
    operation = operation_of(span.attributes)
    found = kind_of_operation(operation) if operation else None
    if found == "tool" and _is_nameless_tool(span):
        return "other"
    if found == "agent" and _KINDS.get(word) == "workflow":
        return "workflow"
    if operation:
        return found or _KINDS.get(word)
    return _KINDS.get(word, "other") if word else None


def _kind_of_name(span: Span) -> Kind | None:
    name = span.name
    request = "llm.request.type" in span.attributes
    if request and name.endswith(".chat"):
        return "llm"
    if name.startswith("execute_tool "):
        return None
    if name.endswith(".tool"):
        return "tool"
    if name.startswith(OPERATION_NAMES):
        return None
    return "llm" if request and str(span.attributes.get("llm.request.type", "")) in _REQUESTS else None


def _agent_of(span: Span) -> str:
    if span.name.startswith("invoke_agent "):
        return ""
    return first_text(span.attributes, "traceloop.entity.name")


def _read_prompts(_: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    return indexed(spread, "gen_ai.prompt.")


def _read_completions(_: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    return indexed(spread, "gen_ai.completion.", "assistant")


def _read_old_prompts(_: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    """Returns the messages under the keys before the standard, in which `user` is the text of a prompt."""
    renamed = {
        f"{key.removesuffix('.user')}.content" if key.endswith(".user") else key: value for key, value in spread.items()
    }
    messages = indexed(renamed, _PROMPTS)
    if len(messages) != 1 or len(messages[0].texts) != 1 or not _TURNS.match(messages[0].texts[0]):
        return messages
    turns = _TURNS.split(messages[0].texts[0])[1:]
    texts = ((turns[place], turns[place + 1].strip()) for place in range(0, len(turns), 2))
    return [SpanMessage("user" if who == "Human" else "assistant", [text]) for who, text in texts if text]


def _tool_input(_: Span, value: Any) -> Any:
    """Returns the arguments in the input of a tool, which for a tool of an MCP server are beside its name."""
    request = structure(value)
    if isinstance(request, dict) and "tool_name" in request and set(request) <= {"tool_name", "arguments"}:
        return request.get("arguments", {})
    return value


def _read_old_completions(_: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    return indexed(spread, _COMPLETIONS, "assistant")


def _is_nameless_handoff(span: Span) -> bool:
    """Returns whether a span is a handoff of OpenAI's Agents SDK, of which traceloop does not tell the receiver."""
    there = span.attributes
    return there.get(_KIND) == "handoff" and "gen_ai.handoff.to_agent" not in there


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    spans = [node.span for node in seen.nodes]
    handoffs = sum(map(_is_nameless_handoff, spans))
    if handoffs and handoffs > sum(call.name.startswith("transfer_to_") for call in seen.calls):
        return {
            "tools": f"the tool calls of a model's answer, which hand over to an agent, are not in the spans: {seen.why()}"
        }
    if _SCOPE_OF_JS in seen.scopes and sum(map(_is_nameless_tool, spans)) > len(seen.calls):
        return {
            "tools": "some tool calls are not in the spans: traceloop's SDK for JavaScript tells the class of a tool in place of "
            "its name; use OpenInference"
        }
    return {}


TRACELOOP = Convention(
    name="traceloop",
    kind_keys=(_KIND, OPERATION),
    kind=_kind,
    kind_of_name=_kind_of_name,
    switches=(Switch("TRACELOOP_TRACE_CONTENT=true", keys=("traceloop.", "llm.request.type")),),
    sessions=tuple(f"{_PROPERTIES}{name}" for name in ("session_id", "thread_id", "conversation_id", "chat_id")),
    apps=("traceloop.workflow.name",),
    users=(f"{_PROPERTIES}user_id",),
    agents=(f"{_PROPERTIES}lc_agent_name",),
    agent_of={"agent": _agent_of},
    models=("llm.response.model",),
    providers=("llm.vendor",),
    requested_models=("llm.request.model", f"{_PROPERTIES}ls_model_name"),
    input_tokens=("llm.usage.prompt_tokens",),
    output_tokens=("llm.usage.completion_tokens",),
    contents=("traceloop.entity.output",),
    only_json=("traceloop.entity.input", "traceloop.entity.output"),
    documents=("traceloop.entity.output",),
    inputs=(
        Source("gen_ai.prompt.", _read_prompts, Rank.VALUE, SourcePlace.SPREAD),
        Source(_PROMPTS, _read_old_prompts, Rank.BODY, SourcePlace.SPREAD),
        *attributes(requested, Rank.FRAME, "traceloop.entity.input"),
        *attributes(requested, Rank.REST, "gen_ai.task.input"),
    ),
    outputs=(
        Source("gen_ai.completion.", _read_completions, Rank.VALUE, SourcePlace.SPREAD),
        Source(_COMPLETIONS, _read_old_completions, Rank.BODY, SourcePlace.SPREAD),
        *attributes(answered, Rank.FRAME, "traceloop.entity.output"),
    ),
    questions=attributes(question_in, Rank.FRAME, "traceloop.entity.input"),
    answers=attributes(answer_in, Rank.FRAME, "traceloop.entity.output"),
    quirks=_quirks,
    tool_names=("traceloop.entity.name",),
    tool_name_suffixes=(".tool",),
    arguments=(
        Source("traceloop.entity.input", _tool_input, Rank.FRAME),
        Source("gen_ai.tool.input", as_it_is, Rank.REST),
    ),
    results=(
        *attributes(json_in_text, Rank.FRAME, "traceloop.entity.output"),
        *attributes(structure, Rank.REST, "gen_ai.tool.output"),
    ),
    failures=("gen_ai.task.status",),
)
