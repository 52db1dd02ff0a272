"""Arguments without the names of their parameters, as decorators of functions write them, are said to be missing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span
from tests.unit.streams.intake.spans.test_conventions import AGENT, CHAT

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

AGENTOPS = {"agentops.span.kind": "tool", "operation.name": "hours", "agentops.tool.output": '"closed"'}
TRACELOOP = {"traceloop.span.kind": "tool", "traceloop.entity.name": "hours", "traceloop.entity.output": '"closed"'}


def spans_of(told: dict[str, Any], key: str, args: list[Any], kwargs: dict[str, Any], *more: Span) -> list[Span]:
    tool = {**told, key: json.dumps({"args": args, "kwargs": kwargs})}
    return [span(1, 0, "invoke_agent desk", AGENT), *more, span(4, 1, "hours.tool", tool)]


def called(spans: list[Span]) -> dict[str, Any]:
    (found,) = [each for each in read_trace(spans).events if each["type"] == "tool.called"]
    return found


@pytest.mark.parametrize("told", [(AGENTOPS, "agentops.tool.input"), (TRACELOOP, "traceloop.entity.input")])
@pytest.mark.parametrize(("args", "kwargs"), [(["Sunday"], {}), (["Oslo"], {"day": "Sunday"})])
def test_values_without_names_are_no_arguments_and_it_is_said_what_helps(told: Any, args: Any, kwargs: Any) -> None:
    found = called(spans_of(*told, args, kwargs))
    assert "args" not in found
    (sentence,) = found["missing"]
    assert "call the function with all its arguments by name" in sentence
    assert "TRACE_CONTENT" not in sentence


def test_the_object_of_a_method_is_no_argument() -> None:
    spans = spans_of(AGENTOPS, "agentops.tool.input", ["<desk.Tools object at 0x7f>"], {"day": "Sunday"})
    assert called(spans)["args"] == {"day": "Sunday"}
    assert called(spans_of(AGENTOPS, "agentops.tool.input", [], {}))["args"] == {}


def test_the_answer_of_the_model_has_the_names() -> None:
    part = {"type": "tool_call", "id": "c1", "name": "hours", "arguments": {"day": "Sunday"}}
    wrote = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [part]}])}
    spans = spans_of(AGENTOPS, "agentops.tool.input", ["Sunday"], {}, span(2, 1, "chat m", {**CHAT, **wrote}))
    found = called(spans)
    assert found["args"] == {"day": "Sunday"}
    assert "missing" not in found
