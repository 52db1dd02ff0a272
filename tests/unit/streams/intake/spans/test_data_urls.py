"""An input or an output that is a data URL is a part that is no text, with its kind and a count, whatever span tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

URL = "data:image/png;base64,QUJD"
NO_QUESTION = "the question is no text: 1 part of type 'image'"
NO_ANSWER = "the answer is no text: 1 part of type 'image'"


def missing_of(spans: list[Span]) -> tuple[list[str], list[str]]:
    """Returns what the events of an invocation say to be missing at its begin and at its end."""
    events = read_trace(spans).events
    assert "base64" not in json.dumps(events)
    started = next(each for each in events if each["type"] == "invocation.started")
    completed = next(each for each in events if each["type"] == "invocation.completed")
    return started.get("missing", []), completed.get("missing", [])


def agent(kind: str, read: Any, wrote: Any, *more: Span) -> list[Span]:
    told = {"openinference.span.kind": kind, "agent.name": "desk", "llm.model_name": "m"}
    return [span(1, 0, "desk", {**told, "input.value": read, "output.value": wrote}), *more]


@pytest.mark.parametrize("kind", ["AGENT", "CHAIN", "LLM"])
@pytest.mark.parametrize("url", [URL, json.dumps(URL)], ids=["text", "JSON"])
def test_an_input_and_an_output_that_are_data_urls_are_named(kind: str, url: str) -> None:
    inner = span(2, 1, "look", {"openinference.span.kind": "TOOL", "tool.name": "look", "output.value": "seen"})
    asked, answered = missing_of(agent(kind, url, url, inner))
    assert asked == [NO_QUESTION]
    assert NO_ANSWER in answered


def test_a_data_url_beside_the_text_of_a_request_is_named() -> None:
    asked, _ = missing_of(agent("AGENT", json.dumps({"question": "What is this?", "image": URL}), "A lamp."))
    assert asked == ["not all of the question is text: 1 part of type 'image'"]
    asked, _ = missing_of(agent("AGENT", json.dumps({"args": [URL], "kwargs": {}}), "A lamp."))
    assert asked == [NO_QUESTION]


@pytest.mark.parametrize(
    ("told", "read", "wrote"),
    [
        ({"traceloop.span.kind": "workflow"}, "traceloop.entity.input", "traceloop.entity.output"),
        ({"langfuse.observation.type": "agent"}, "langfuse.observation.input", "langfuse.observation.output"),
        ({"mlflow.spanType": '"AGENT"'}, "mlflow.spanInputs", "mlflow.spanOutputs"),
    ],
)
def test_the_inputs_of_all_conventions_are_read_alike(told: dict[str, str], read: str, wrote: str) -> None:
    names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    spans = [span(1, 0, "desk", {**told, read: json.dumps(URL), wrote: json.dumps(URL)}), span(2, 1, "look", names)]
    asked, answered = missing_of(spans)
    assert asked == [NO_QUESTION]
    assert NO_ANSWER in answered
