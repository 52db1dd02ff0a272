"""Azure's SDKs for AI: the standard, with operations of their own on the threads of its agent service.

A turn of an agent is several requests to that service, each with a span of its own: one adds the message of the user,
one starts the run, others wait for its end, hand in the results of tools, and list the messages. They are read as one
model call: the span that starts the run gets what the others tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from traceweir.streams.intake.spans.attributes import first_text, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention, Switch
from traceweir.streams.intake.spans.conventions.genai import OPERATION, operation_of
from traceweir.streams.intake.spans.conventions.seen import SeenInvocation
from traceweir.streams.intake.spans.span import Kind, Span, SpanEvent, Value
from traceweir.streams.intake.spans.span_events import event_fields, event_name

_THREAD = "gen_ai.thread.id"
_RUN = "gen_ai.thread.run.id"
_STATUS = "gen_ai.thread.run.status"
_AGENT_ID = "gen_ai.agent.id"
_NAME = "gen_ai.agent.name"
_READ = "gen_ai.input.messages"
_WROTE = "gen_ai.output.messages"
_STREAM = "process_thread_run"
_STARTS = (_STREAM, "start_thread_run")
_WAITS = ("get_thread_run", "submit_tool_outputs")
_ASKS = ("create_thread", "create_message")
_LISTS = ("list_messages", "list_run_steps")
_USAGE = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
_ANSWERS = ("gen_ai.response.model", _STATUS, "error.type", *_USAGE)
"""What the spans of a run tell of it; the last one is right."""
_USER = "gen_ai.user.message"
_ASSISTANT = "gen_ai.assistant.message"
_TOOL = "gen_ai.tool.message"
_STEP_OF_CALLS = "gen_ai.run_step.tool_calls"
_STEP_OF_MESSAGE = "gen_ai.run_step.message_creation"
_STEP_BEGAN = "gen_ai.run_step.start.timestamp"
_MESSAGE_ID = "gen_ai.message.id"
_SETTING = "AZURE_TRACING_GEN_AI_CONTENT_RECORDING_ENABLED=true"
_RESULTS = ("output", "outputs", "results")
"""Where the call of a tool that the service ran has the result."""

Message = dict[str, Value]


class _EventOfSpan(NamedTuple):
    """An event with the span that has it."""

    span: Span
    event: SpanEvent

    @property
    def name(self) -> str:
        return event_name(self.event)

    @property
    def order(self) -> tuple[int, int]:
        return (self.span.start_ns, self.event.time_ns)

    def text(self, key: str) -> str:
        return first_text(self.event.attributes, key)


def _kind(span: Span) -> Kind | None:
    return "llm" if operation_of(span.attributes) in _STARTS and _THREAD in span.attributes else None


def _joined(spans: Sequence[Span]) -> Sequence[Span]:
    """Returns the spans with each run of a thread in the span that started it, and the others of the run empty."""
    threads: dict[str, list[Span]] = {}
    for span in spans:
        if operation_of(span.attributes) in (*_STARTS, *_WAITS, *_ASKS, *_LISTS):
            threads.setdefault(first_text(span.attributes, _THREAD), []).append(span)
    named = (each.attributes for each in spans if _NAME in each.attributes and _AGENT_ID in each.attributes)
    names = {first_text(each, _AGENT_ID): first_text(each, _NAME) for each in named}
    found: dict[str, Span] = {}
    for thread_id, of_thread in threads.items():
        if thread_id:
            found |= _with_runs(of_thread, names)
    return [found.get(span.span_id, span) for span in spans] if found else spans


def _with_runs(spans: list[Span], names: Mapping[str, str]) -> dict[str, Span]:
    """Returns the spans of a thread that change, by their ids; none if no run was started."""
    runs: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda each: (each.start_ns, -each.end_ns)):
        if operation_of(span.attributes) in (*_STARTS, *_WAITS) and (run_id := first_text(span.attributes, _RUN)):
            runs.setdefault(run_id, []).append(span)
    contents = [_EventOfSpan(span, event) for span in spans for event in span.events]
    # Without content, the results of tools are empty texts.
    has_content = any(
        event_fields(each.event).get("content") for each in contents if each.name in (_USER, _ASSISTANT, _TOOL)
    )
    found: dict[str, Span] = {}
    history: list[Value] = []
    began_ns = 0
    for run_id, parts in runs.items():
        start = next((each for each in parts if operation_of(each.attributes) in _STARTS), None)
        if start is None:
            continue
        asked = _questions(contents, began_ns, start, run_id)
        began_ns = start.start_ns
        wrote = list(_written(contents, {each.span_id for each in parts}, run_id, has_content=has_content))
        history += asked
        shown = {key: each.attributes[key] for each in parts for key in _ANSWERS if key in each.attributes}
        name = names.get(first_text(start.attributes, _AGENT_ID), "")
        failed = next((each for each in reversed(parts) if each.status == "ERROR"), start)
        found[start.span_id] = replace(
            start,
            end_ns=max(each.end_ns for each in parts),
            attributes={
                **start.attributes,
                **shown,
                **({_NAME: name} if name else {}),
                **({_READ: [*history]} if asked else {}),
                **({_WROTE: [*wrote]} if wrote else {}),
            },
            events=[each for each in start.events if not event_name(each).startswith("gen_ai.")],
            status=failed.status,
            status_message=failed.status_message,
        )
        history += wrote
    if found:
        # What they tell is that of the runs now.
        others = (span for span in spans if span.span_id not in found)
        found |= {
            each.span_id: replace(each, attributes={_THREAD: each.attributes[_THREAD]}, events=[]) for each in others
        }
    return found


def _questions(contents: Iterable[_EventOfSpan], after_ns: int, start: Span, run_id: str) -> list[Message]:
    """Returns the messages of the user since the run before; else the one that the list has beside the run's answer."""
    asked = [
        each
        for each in sorted(contents, key=lambda each: each.order)
        if each.name == _USER
        and (each.span is start or operation_of(each.span.attributes) in _ASKS)
        and after_ns <= each.span.start_ns <= start.start_ns
    ]
    if not asked:
        listed = [each for each in contents if each.name in (_USER, _ASSISTANT) and _is_list(each.span)]
        if listed and listed[0].name == _ASSISTANT:
            # The newest message first, which is the default.
            listed.reverse()
        place = next((index for index, each in enumerate(listed) if each.text(_RUN) == run_id), 0)
        asked = [each for each in listed[max(place - 1, 0) : place] if each.name == _USER]
    return [_message(each, "user") for each in asked]


def _is_list(span: Span) -> bool:
    return operation_of(span.attributes) in _LISTS


def _written(contents: Sequence[_EventOfSpan], parts: set[str], run_id: str, *, has_content: bool) -> Iterator[Message]:
    """Yields the calls of a run, each with its results, and the texts of the agent, in their order."""
    own = sorted((each for each in contents if each.span.span_id in parts), key=lambda each: each.order)
    results = {
        text_of(fields.get("id")): fields
        for each in own
        if each.name == _TOOL and has_content and (fields := event_fields(each.event))
    }
    listed = [each for each in contents if _is_list(each.span) and each.text(_RUN) == run_id]
    messages = {each.text(_MESSAGE_ID): each for each in listed if each.name == _ASSISTANT}
    # The events of a stream are in order. A list has the newest first, unless it was asked for otherwise.
    steps = sorted(
        (each for each in listed if each.name in (_STEP_OF_CALLS, _STEP_OF_MESSAGE)),
        key=lambda each: each.text(_STEP_BEGAN),
    )
    streamed = [each for each in own if each.name == _ASSISTANT]
    known = {each.text(_MESSAGE_ID) for each in (*streamed, *steps)} - {""}
    others = [each for key, each in messages.items() if key not in known]
    if any(_calls(each) for each in streamed):
        steps = []
    steps = [messages.get(each.text(_MESSAGE_ID), each) for each in steps]
    for each in (*steps, *streamed):
        if calls := _calls(each):
            yield {"role": "assistant", "parts": [part for call in calls for part in _parts_of(call)]}
            ids = [text_of(call.get("id")) for call in calls]
            yield from (_result(key, results.pop(key)) for key in ids if key in results)
        elif each.name == _ASSISTANT:
            yield _message(each, "assistant")
    yield from (_result(key, fields) for key, fields in results.items())
    yield from (_message(each, "assistant") for each in reversed(others))


def _calls(each: _EventOfSpan) -> list[dict[str, Any]]:
    calls = event_fields(each.event).get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _parts_of(call: Mapping[str, Any]) -> list[Message]:
    """Returns the call of a function; of a tool that the service ran, the call and the result."""
    kind = text_of(call.get("type"))
    inner = call.get(kind)
    call_id = text_of(call.get("id"))
    if not isinstance(inner, dict):
        return []
    if kind == "function":
        return [{"type": "tool_call", "id": call_id, **inner}]
    name = text_of(inner.get("name")) or kind
    args = {key: each for key, each in inner.items() if key not in (*_RESULTS, "name", "arguments")}
    args = structure(inner["arguments"]) if "arguments" in inner else args
    parts: list[Message] = [{"type": "server_tool_call", "id": call_id, "name": name, "args": args}]
    result = next((inner[key] for key in _RESULTS if inner.get(key) is not None), None)
    if result is not None:
        answer = {"content": result}
        parts.append({"type": "server_tool_call_response", "id": call_id, "server_tool_call_response": answer})
    return parts


def _result(call_id: str, fields: Mapping[str, Any]) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text_of(fields.get("content"))}


def _message(each: _EventOfSpan, role: str) -> Message:
    """Returns a message, whose content is a text, or an object with a key for each kind of part."""
    fields = event_fields(each.event)
    content = fields.get("content")
    if isinstance(content, dict):
        content = [_part(kind, part) for kind, part in content.items() if part is not None]
    cut = fields.get("incomplete_details")
    finish = {"finish_reason": text_of(cut.get("reason"))} if isinstance(cut, dict) else {}
    return {"role": role, **({} if content is None else {"content": content}), **finish}


def _part(kind: str, part: Any) -> Message:
    value = part.get("value") if isinstance(part, dict) else part
    return {"type": kind, **({"text": text_of(value)} if kind == "text" else {})}


def _quirks(seen: SeenInvocation) -> Mapping[str, str]:
    """Tells what the spans of other requests would tell, which are in other traces or were not made."""
    found: dict[str, str] = {}
    runs = [model for model in seen.models if any(_RUN in node.span.attributes for node in model.nodes)]
    handed_in = {result.id for model in runs for message in model.rounds for result in message.results}
    if handed_in - {call.call_id for call in seen.calls}:
        found["tools"] = (
            "the names and the arguments of some tool calls are not in the spans: no span lists the steps of the run; list "
            "them, or read the run as a stream"
        )
    if len(runs) != len(seen.models) or any(node.kind in ("agent", "workflow") for node in seen.nodes):
        return found
    way_out = f"set {_SETTING}, and put one span around all requests of a turn"
    if runs and not runs[0].inputs:
        found["question"] = (
            f"the question is not in the spans: the request that adds it to the thread is in another trace; {way_out}"
        )
    last = runs[-1].nodes[0].span.attributes if runs else {}
    if last.get(_STATUS) == "completed" and operation_of(last) != _STREAM and not runs[-1].text:
        found["answer"] = (
            "the answer is not in the spans: no span of this trace lists the messages of the thread after the run; list "
            f"them, or read the run as a stream; {way_out}"
        )
    return found


AZURE = Convention(
    name="Azure AI",
    kind_keys=(OPERATION,),
    kind=_kind,
    joined=_joined,
    sessions=(_THREAD,),
    switches=(Switch(_SETTING, keys=("gen_ai.thread.",), scopes=("azure.*",)),),
    quirks=_quirks,
)
