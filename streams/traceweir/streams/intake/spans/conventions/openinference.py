"""OpenInference, the convention of Arize, whose instrumentations exist for most frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.streams.intake.spans.api_bodies import answered, requested
from traceweir.streams.intake.spans.attributes import ABSENT, decoded, first_text, has_word, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.smolagents import CLASSES
from traceweir.streams.intake.spans.conventions.source import Rank, Source, SourcePlace, as_it_is, attributes
from traceweir.streams.intake.spans.hosted_tools import MARKS
from traceweir.streams.intake.spans.message import Role, SpanMessage, is_hidden, said
from traceweir.streams.intake.spans.metadata import in_metadata
from traceweir.streams.intake.spans.span import Attributes, Kind, Span
from traceweir.streams.intake.spans.spread_messages import indexed
from traceweir.streams.intake.spans.texts_in_values import answer_in, is_printed, question_in

_KIND = "openinference.span.kind"
_JSON = "application/json"
_FAILED = ('"is_error": true', '"is_error":true', '"status": "error"', '"status":"error"')
"""What a request has in it where it says that a tool failed; OpenInference's messages leave it out."""
_KINDS: dict[str, Kind] = {
    "LLM": "llm",
    "TOOL": "tool",
    "AGENT": "agent",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    "RERANKER": "retriever",
    "EVALUATOR": "judge",
}


def _kind(span: Span) -> Kind | None:
    there = span.attributes
    word = first_text(there, _KIND).upper()
    if word == "AGENT" and "tool.name" in there and "agent.name" not in there:
        # OpenInference's LangChain calls each run an AGENT whose name has `agent` in it.
        return "tool"
    return _KINDS.get(word, "other") if word else None


def _agent_of(span: Span) -> str:
    is_run = _KIND in span.attributes and span.name.endswith(".run")
    name = span.name.removesuffix(".run") if is_run else ""
    return "" if name in CLASSES else name


def _session_of(of_span: Attributes) -> str:
    return in_metadata(of_span, "session_id", "thread_id")


def _user_of(of_span: Attributes) -> str:
    return in_metadata(of_span, "user_id")


def _messages(span: Span, spread: Mapping[str, Any], prefix: str, role: Role) -> list[SpanMessage]:
    """Returns OpenInference's messages. A call without arguments has no attribute for them, unless one was dropped.

    Nor has a call whose arguments are an object, which the SDK refuses: smolagents has such; `output.value` tells them.
    """
    messages = indexed(spread, prefix, role)
    cut = any(value is None and key.startswith(prefix) for key, value in spread.items())
    calls = [call for message in messages for call in message.calls]
    if span.dropped_attributes or cut or all(call.args is not ABSENT for call in calls):
        return messages
    known_calls = [call for message in answered(span.attributes.get("output.value")) for call in message.calls]
    args = {call.id: call.args for call in known_calls if call.id and call.args is not ABSENT}
    for message in messages:
        message.calls = [
            call._replace(args=args.get(call.id, {})) if call.args is ABSENT and call.name else call
            for call in message.calls
        ]
    return messages


def _with_failures(messages: list[SpanMessage], request: Any) -> list[SpanMessage]:
    """Returns the messages with the results marked of which the request says that the tool failed."""
    if has_word(request, *_FAILED):
        failed = {result.id for message in requested(request) for result in message.results if result.failed}
        for message in messages:
            message.results = [
                result._replace(failed=True) if result.id and result.id in failed else result
                for result in message.results
            ]
    return messages


def _read_inputs(span: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    messages = _messages(span, spread, "llm.input_messages.", "user")
    return _with_failures(messages, span.attributes.get("input.value"))


def _read_request(span: Span, value: Any) -> list[SpanMessage]:
    """Returns the messages of a request, which can be the prompt of a model as a text."""
    found = requested(value)
    if found or not isinstance(value, str) or not value:
        return found
    text = decoded(value) if value[0] == '"' else value
    # Of JSON, only a text is a prompt.
    is_text = isinstance(text, str) and (text is not value or span.attributes.get("input.mime_type") != _JSON)
    if (
        not is_text
        or not text
        or (text is value and value[0] in '{["')
        or is_hidden(text)
        or is_printed("question", text)
    ):
        return found
    return [said("user", text)]


def _read_prompts(_: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    return indexed(_without_frames(spread, "llm.prompts."), "llm.prompts.")


def _read_completions(_: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    return indexed(_without_frames(spread, "llm.choices."), "llm.choices.", "assistant")


def _without_frames(spread: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Returns the texts of a model without a chat, which are in `llm.prompts.0.prompt.text`, as those of messages."""
    inner = (".prompt.text", ".completion.text")
    texts = {key: value for key, value in spread.items() if key.startswith(prefix)}
    return {f"{key.rsplit('.', 2)[0]}.text" if key.endswith(inner) else key: each for key, each in texts.items()}


def _read_outputs(span: Span, spread: Mapping[str, Any]) -> list[SpanMessage]:
    answer = span.attributes.get("output.value")
    if has_word(answer, *MARKS):
        # The attributes lack the calls of tools that the provider ran, or their results.
        return answered(answer) or _messages(span, spread, "llm.output_messages.", "assistant")
    messages = _messages(span, spread, "llm.output_messages.", "assistant")
    if len(messages) > 1 and has_word(answer, '"choices"'):
        # The attributes lack the reasons why the choices ended, by which they are no parts of one answer.
        choices = answered(answer)
        for message, choice in zip(messages, choices if len(choices) == len(messages) else (), strict=False):
            message.finish = message.finish or choice.finish
    asked = decoded(span.attributes.get("llm.invocation_parameters")) if len(messages) > 1 else None
    if isinstance(asked, dict) and asked.get("n") == len(messages):
        for message in messages:
            message.is_choice = True
    return messages


def _read_text(span: Span, _: object) -> str:
    """Returns the text of an agent, which can be JSON."""
    if first_text(span.attributes, "output.mime_type") == _JSON:
        return ""
    text = first_text(span.attributes, "output.value")
    return "" if is_hidden(text) or is_printed("answer", text) else text


def _parameters(span: Span, value: object) -> Any:
    """Returns the arguments of a call, where some write the schema of the tool."""
    parsed = decoded(value)
    schema = isinstance(parsed, dict) and (
        "properties" in parsed or parsed.get("type") == "object" or "$schema" in parsed
    )
    return ABSENT if schema or "input.value" in span.attributes else parsed


def _result(span: Span, value: object) -> Any:
    is_text = isinstance(value, str) and value.startswith('"')
    return structure(decoded(value) if is_text and span.attributes.get("output.mime_type") == _JSON else value)


def _forced_tool(attributes: Attributes) -> str:
    """Returns the name of the only tool that OpenAI's or Anthropic's `tool_choice` allows."""
    parameters = decoded(attributes.get("llm.invocation_parameters"))
    choice = parameters.get("tool_choice") if isinstance(parameters, dict) else None
    if not isinstance(choice, dict):
        return ""
    inner = choice["function"] if isinstance(choice.get("function"), dict) else choice
    return text_of(inner.get("name"))


OPENINFERENCE = Convention(
    name="OpenInference",
    kind_keys=(_KIND,),
    kind=_kind,
    switches=(Switch("OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false", keys=(_KIND,)),),
    session_of=_session_of,
    user_of=_user_of,
    apps=("openinference.project.name",),
    tags=("tag.tags",),
    agents=("agent.name", "graph.node.id"),
    agent_of={"agent": _agent_of},
    models=("llm.model_name",),
    providers=("llm.provider", "llm.system"),
    input_tokens=("llm.token_count.prompt",),
    output_tokens=("llm.token_count.completion",),
    contents=("input.value", "output.value"),
    documents=("output.value",),
    spread_documents=("retrieval.documents.", "reranker.output_documents."),
    inputs=(
        Source("llm.input_messages.", _read_inputs, Rank.VALUE, SourcePlace.SPREAD),
        Source("input.value", _read_request, Rank.FRAME),
        Source("llm.prompts.", _read_prompts, Rank.FRAME, SourcePlace.SPREAD),
    ),
    outputs=(
        Source("llm.output_messages.", _read_outputs, Rank.VALUE, SourcePlace.SPREAD),
        Source("llm.choices.", _read_completions, Rank.VALUE, SourcePlace.SPREAD),
        *attributes(answered, Rank.FRAME, "output.value"),
    ),
    forced_tool=_forced_tool,
    finishes=("llm.finish_reason",),
    questions=attributes(question_in, Rank.FRAME, "input.value"),
    answers=attributes(answer_in, Rank.FRAME, "output.value"),
    agent_texts=(Source("output.value", _read_text, Rank.FRAME),),
    tool_ids=("tool.id", "tool_call_id", "tool_call.id", "tool.call.id"),
    tool_names=("tool.name",),
    arguments=(
        Source("tool.parameters", _parameters, Rank.BODY),
        Source("input.value", as_it_is, Rank.FRAME),
    ),
    results=(Source("output.value", _result, Rank.FRAME),),
)
