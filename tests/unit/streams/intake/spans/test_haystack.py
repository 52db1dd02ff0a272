"""Haystack 2 writes the steps of its agent as components; a pipeline has its question under the names of components."""

from __future__ import annotations

import json
from typing import Any

from tests.support.spans import span

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span


def component(number: int, parent: int, kind: str, read: Any, wrote: Any, name: str = "part") -> Span:
    told = {"haystack.component.name": name, "haystack.component.type": kind}
    told |= {"haystack.component.input": json.dumps(read), "haystack.component.output": json.dumps(wrote)}
    return span(number, parent, "haystack.component.run", told)


def pipeline(read: Any, wrote: Any) -> Span:
    told = {"haystack.pipeline.input_data": json.dumps(read), "haystack.pipeline.output_data": json.dumps(wrote)}
    return span(1, 0, "haystack.pipeline.run", told)


def events(*spans: Span) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for event in read_trace(spans).events:
        found.setdefault(event["type"], []).append(event)
    return found


USER: dict[str, Any] = {"role": "user", "meta": {}, "name": None, "content": [{"text": "Open on Sunday?"}]}
CALL = {"tool_name": "look", "arguments": {"day": "Sunday"}, "id": "c1"}
USAGE = {"model": "m", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
ASKED: dict[str, Any] = {"role": "assistant", "meta": USAGE, "name": None, "content": [{"tool_call": CALL}]}
ANSWER: dict[str, Any] = {"role": "assistant", "meta": USAGE, "name": None, "content": [{"text": "No."}]}


def told(result: str, *, error: bool) -> dict[str, Any]:
    block = {"tool_call_result": {"result": result, "origin": CALL, "error": error}}
    return {"role": "tool", "meta": {}, "name": None, "content": [block]}


def agent_of_haystack_2(result: str, *, error: bool) -> list[Span]:
    read = [USER, ASKED, told(result, error=error)]
    return [
        pipeline({"desk": {"messages": [USER]}}, {"desk": {"messages": [*read, ANSWER]}}),
        component(2, 1, "Agent", {"messages": [USER]}, {"messages": [*read, ANSWER]}, "desk"),
        span(3, 2, "haystack.agent.run", {"haystack.agent.input": json.dumps({"messages": [USER]})}),
        component(4, 3, "OpenAIChatGenerator", {"messages": [USER]}, {"replies": [ASKED]}),
        component(5, 3, "ToolInvoker", {"messages": [ASKED]}, {"tool_messages": read[2:]}),
        component(6, 3, "OpenAIChatGenerator", {"messages": read}, {"replies": [ANSWER]}),
    ]


def test_an_agent_whose_steps_are_components_is_read() -> None:
    found = events(*agent_of_haystack_2("closed", error=False))
    (called,), (returned,), (last,) = found["tool.called"], found["tool.returned"], found["invocation.completed"]
    assert (called["name"], called["args"], returned["response"]) == ("look", {"day": "Sunday"}, "closed")
    assert found["invocation.started"][0]["user_content"]["parts"] == [{"text": "Open on Sunday?"}]
    assert last["final_response"]["parts"] == [{"text": "No."}]
    assert [(each["model"], each["input_tokens"], each["output_tokens"]) for each in found["model.called"]] == [
        ("m", 7, 3),
        ("m", 7, 3),
    ]
    assert (last["agent_name"], last.get("missing")) == ("desk", None)


def test_a_result_that_is_an_error_is_the_error_of_the_call() -> None:
    (returned,) = events(*agent_of_haystack_2("no such day", error=True))["tool.returned"]
    assert returned["error"] == "no such day"


def test_a_pipeline_with_a_retriever_and_a_generator_of_texts_is_read() -> None:
    documents = {"documents": [{"id": "d1", "content": "Open on Monday.", "meta": {"file_path": "hours.md"}}]}
    found = events(
        pipeline({"embedder": {"text": "Open?"}, "prompt": {"topic": "Open?"}}, {"llm": {"replies": ["On Monday."]}}),
        component(2, 1, "InMemoryBM25Retriever", {"query": "Open?"}, documents),
        component(
            3, 1, "OpenAIGenerator", {"prompt": "Documents: ... Open?"}, {"replies": ["On Monday."], "meta": [USAGE]}
        ),
    )
    assert found["invocation.started"][0]["user_content"]["parts"] == [{"text": "Open?"}]
    assert found["invocation.completed"][0]["final_response"]["parts"] == [{"text": "On Monday."}]
    assert found["retrieval.returned"][0]["chunks"] == [{"doc_uri": "hours.md", "content": "Open on Monday."}]
    assert found["model.called"][0]["output_tokens"] == 3


def test_what_an_agent_without_content_tracing_lacks_is_said_with_the_setting() -> None:
    spans = [
        span(1, 0, "haystack.agent.run", {"haystack.agent.max_steps": 100}),
        span(2, 1, "haystack.agent.step", {"haystack.agent.step": 0}),
        span(3, 2, "haystack.agent.step.llm", {}),
    ]
    (last,) = events(*spans)["invocation.completed"]
    parts = ("answer", "tokens", "model")
    assert all(
        any(part in each and "HAYSTACK_CONTENT_TRACING_ENABLED" in each for each in last["missing"]) for part in parts
    )
    assert any("an agent of Haystack has no name" in each for each in last["missing"])
