"""LangChain and LangGraph: what tracers of all conventions pass on of them: metadata, interrupts, commands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, get_args

from traceweir.streams.intake.spans.attributes import has_word, structure, text_of
from traceweir.streams.intake.spans.conventions.convention import Convention
from traceweir.streams.intake.spans.metadata import in_metadata
from traceweir.streams.intake.spans.python_text import python_value
from traceweir.streams.intake.spans.span import Attributes, Kind, Span
from traceweir.streams.intake.spans.span_events import named_events

_JS_KIND = re.compile(r"\n\n\w+(?: \[\w+\])?(?:: |\Z)")
"""What LangChain.js writes between the message of an error and the same message again: `TypeError [ERR_X]: `."""
_MAX_JS_KINDS = 16
_COMMAND = re.compile(
    r"Command\(.{0,256}?'messages': \[ToolMessage\(content=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", re.DOTALL
)
"""Python's text of a `Command` with one message, which tracers write that cannot serialize it."""
_TOOL_MESSAGE = re.compile(
    r"content=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"((?: (?:name|id|tool_call_id|status|additional_kwargs|response_metadata)=(?:'[^'\n]{0,256}'|None|\{\}))+)\s*",
    re.DOTALL,
)
"""Python's text of a ToolMessage: its content, and the fields after it."""
_CALL_ID = re.compile(r" tool_call_id='([^'\n]*)'")
_INTERRUPTS = ("GraphInterrupt", "NodeInterrupt")
"""The exceptions with which a step of a graph stops until a person has answered."""
_INPUTS = (
    *("input.value", "traceloop.entity.input", "gen_ai.prompt"),
    *("mlflow.spanInputs", "langfuse.observation.input", "gen_ai.task.input"),
)
"""Where the tracers of LangChain write the input of a run."""
_RESUMING = re.compile(r"Command\((?:[^()]{0,256}, )?resume=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")?")
"""Python's text of the `Command` with which a run goes on, and in it the answer if that is a text."""
_COMMAND_KEYS = {"graph", "update", "resume", "goto"}


def _agent_of(span: Span) -> str:
    return in_metadata(span.attributes, "lc_agent_name")


def _agent_or_graph(span: Span) -> str:
    """Returns the name of the agent, or of a whole graph of LangGraph, unless it is the default."""
    there = span.attributes
    name = _agent_of(span)
    if name or span.name == "LangGraph":
        return name
    is_graph = in_metadata(there, "ls_integration") == "langgraph" and not in_metadata(there, "langgraph_node")
    return span.name if is_graph else ""


def _model_of(of_spans: Attributes) -> str:
    return in_metadata(of_spans, "ls_model_name")


def _without_stack(text: str) -> str:
    """Returns an error message of JavaScript without the error's text and stack, which LangChain.js writes after it.

    >>> _without_stack("no seats\\n\\nRangeError: no seats\\n    at reserve (seats.js:7)"), _without_stack("a\\n\\nb: c")
    ('no seats', 'a\\n\\nb: c')
    """
    head, _, _ = text.partition("\n    at ")
    for kind in islice(_JS_KIND.finditer(head), _MAX_JS_KINDS):
        if head[: kind.start()] == head[kind.end() :]:
            return head[: kind.start()]
    return text


def _inner_result(value: Any) -> Mapping[str, Any] | None:
    """Returns the message in a `Command`, or the ToolMessage that Python has printed; None for any other value."""
    printed = _TOOL_MESSAGE.fullmatch(value) if isinstance(value, str) and value.startswith("content=") else None
    if printed is None:
        return _result_in_command(value)
    call = _CALL_ID.search(printed[2])
    content = python_value(f"{{'content': {printed[1]}}}")
    if call is None or not isinstance(content, dict):
        return None
    return {**content, "tool_call_id": call[1], "status": "error" if " status='error'" in printed[2] else "success"}


def _result_in_command(value: Any) -> Mapping[str, Any] | None:
    """Returns the last message in a `Command` of LangGraph, with which a tool hands over to another step of the graph."""
    if isinstance(value, str):
        found = _COMMAND.match(value)
        content = python_value(f"{{'content': {found[1]}}}") if found else None
        return {**content, "type": "tool"} if isinstance(content, dict) else None
    path = value.get("id")
    if isinstance(path, list) and path[-1:] == ["Command"]:
        if isinstance(value.get("repr"), str):
            return _result_in_command(value["repr"])
        value = {"graph": None, "goto": [], **value["kwargs"]} if isinstance(value.get("kwargs"), dict) else {}
    update = value.get("update")
    messages = update.get("messages") if isinstance(update, dict) and value.keys() >= {"graph", "goto"} else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    return last if isinstance(last, dict) else None


def _waits(span: Span) -> bool:
    """Returns whether a step was interrupted, which tracers write as an exception, and some as an error."""
    if text_of(span.attributes.get("error.type")).endswith(_INTERRUPTS):
        return True
    if span.status_message.startswith(_INTERRUPTS):
        return True
    for event in named_events(span, "exception"):
        kind = text_of(event.attributes.get("exception.type"))
        if kind.endswith(_INTERRUPTS) or text_of(event.attributes.get("exception.message")).startswith(_INTERRUPTS):
            return True
    return False


def _resumption(span: Span) -> str | None:
    """Returns the answer in the `Command` that is the input of a run."""
    for key in _INPUTS:
        value = span.attributes.get(key)
        if not has_word(value, "resume"):
            continue
        command = structure(value)
        for inner in ("inputs", "input"):
            if isinstance(command, dict) and isinstance(command.get(inner), dict | str):
                command = structure(command[inner])
        if isinstance(command, dict) and command.keys() >= _COMMAND_KEYS and command["resume"] is not None:
            return command["resume"] if isinstance(command["resume"], str) else ""
        if isinstance(command, str) and (found := _RESUMING.match(command)):
            answer = python_value(f"{{'resume': {found[1]}}}") if found[1] else None
            return text_of(answer.get("resume")) if isinstance(answer, dict) else ""
    return None


LANGCHAIN = Convention(
    name="LangChain",
    frameworks=(("langsmith", "langchain"), ("langgraph", "langgraph"), ("langchain", "langchain")),
    agent_of={**dict.fromkeys(get_args(Kind), _agent_of), "agent": _agent_or_graph, "chain": _agent_or_graph},
    waits=_waits,
    resumption=_resumption,
    model_of=_model_of,
    without_stack=_without_stack,
    inner_result=_inner_result,
)
