"""The messages of a span whose operation no convention knows are said not to be read."""

from __future__ import annotations

import json

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span, SpanEvent
from traceweir.streams.intake.spans.tree import below, trees
from traceweir.streams.intake.spans.unread_operations import unread_operations

EVENT = SpanEvent("gen_ai.assistant.message", 1, {"gen_ai.event.content": '{"content": "Closed."}'})
ASKED = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hours?"}]}])}


def run(operation: str, number: int = 2, parent: int = 0, *events: SpanEvent) -> Span:
    """Returns the span of an operation of an agent's service."""
    return span(number, parent, operation, {"gen_ai.operation.name": operation}, *events)


def asked(operation: str, number: int = 2, parent: int = 0) -> Span:
    """Returns such a span with a message of the user in its attributes."""
    return span(number, parent, operation, {"gen_ai.operation.name": operation, **ASKED})


@pytest.mark.parametrize(
    "spans",
    [
        [run("process_thread_run", 2, 0, EVENT)],
        [asked("process_thread_run")],
        [run("process_thread_run", 2, 0, EVENT), run("create_thread", 3)],
    ],
)
def test_an_unknown_operation_with_messages_is_named(spans: list[Span]) -> None:
    sentence = unread_operations(below(trees(spans)))
    assert sentence.startswith("the messages of spans with gen_ai.operation.name 'process_thread_run' are not read: ")


@pytest.mark.parametrize(
    "spans",
    [
        [run("create_thread")],
        [run("chat", 2, 0, EVENT)],
        [asked("embeddings")],
        [asked("loop"), asked("chat", 3, 2)],
        [asked("chat"), asked("request", 3, 2)],
    ],
    ids=["no messages", "known", "embeddings", "around a model call", "inside a model call"],
)
def test_what_is_read_elsewhere_or_has_no_messages_is_not_named(spans: list[Span]) -> None:
    assert unread_operations(below(trees(spans))) == ""


def test_an_invocation_says_which_operations_are_not_read() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}
    names = ["a\n\x1b[31m", "b", "c", "d"]
    spans = [span(1, 0, "invoke_agent desk", agent), asked("chat", 2, 1)]
    spans += [run(name, 3 + place, 1, EVENT) for place, name in enumerate(names)]
    completed = next(each for each in read_trace(spans).events if each["type"] == "invocation.completed")
    (sentence,) = [each for each in completed["missing"] if "operation.name" in each]
    assert "'b', 'c', and others" in sentence
    assert sentence.isprintable()
