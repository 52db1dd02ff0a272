"""The work of reading a trace grows with the number of its spans, whatever their shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.spans import span
from tests.support.work import calls_made

from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.span import Span

MODEL = {"openinference.span.kind": "LLM", "output.value": "Yes.", "llm.model_name": "m"}
TOOL = {"openinference.span.kind": "TOOL", "tool.name": "look"}
STEP = {"openinference.span.kind": "CHAIN"}
AGENT = {"openinference.span.kind": "AGENT", "input.value": "Open?", "output.value": "Yes."}


def tool(number: int, parent: int, value: Any) -> Span:
    return span(number, parent, "look", {**TOOL, "input.value": json.dumps(value)})


def nested_models(size: int) -> list[Span]:
    return [span(1, 0, "step", STEP), *(span(number, number - 1, "model", MODEL) for number in range(2, size))]


def models_below_nested_steps(size: int) -> list[Span]:
    steps = [span(number, number - 1, "step", STEP) for number in range(1, size)]
    return [*steps, *(span(size + number, size - 1, "model", MODEL) for number in range(size))]


def tools_below_nested_steps(size: int) -> list[Span]:
    steps = [span(number, number - 1, "step", STEP) for number in range(1, size)]
    return [*steps, *(tool(size + number, size - 1, {"day": number}) for number in range(size))]


def model_with_history(size: int, *, with_ids: bool, parent: int = 0) -> list[Span]:
    def named(number: int) -> str:
        return f"c{number}" if with_ids else ""

    calls = [
        {"id": named(number), "function": {"name": "look", "arguments": json.dumps({"day": number})}}
        for number in range(size)
    ]
    results = [
        {"role": "tool", "tool_call_id": named(number), "name": "look", "content": f"open {number}"}
        for number in reversed(range(size))
    ]
    history = [{"role": "user", "content": "Open?"}, {"role": "assistant", "tool_calls": calls}, *results]
    told = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(history)}
    return [span(2, parent, "chat", {**told, "gen_ai.output.messages": '[{"role": "assistant", "content": "Yes."}]'})]


def history_with_ids(size: int) -> list[Span]:
    return model_with_history(size, with_ids=True)


def history_and_as_many_models(size: int) -> list[Span]:
    asked = [
        {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": f'{{"day": {-number}}}'}}]}
        for number in range(size)
    ]
    models = [
        span(10 + number, 0, "chat", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([each])})
        for number, each in enumerate(asked)
    ]
    return [*model_with_history(size, with_ids=False), *models]


def history_and_spans_of_tools(size: int) -> list[Span]:
    tools = [tool(10 + number, 1, size - number) for number in range(size)]
    return [span(1, 0, "agent", AGENT), *model_with_history(size, with_ids=True, parent=1), *tools]


def steps_without_the_spans_above(size: int) -> list[Span]:
    agents = [span(number, 0, "agent", AGENT) for number in range(1, size)]
    steps = [span(size + number, 10 * size + number, "step", STEP) for number in range(size)]
    return [*agents, *steps, *(tool(2 * size + number, size + number, {}) for number in range(size))]


def calls_with_one_id(size: int) -> list[Span]:
    asked = [{"id": "c", "function": {"name": "look", "arguments": f'{{"day": {number}}}'}} for number in range(size)]
    told = json.dumps([{"role": "assistant", "tool_calls": asked}])
    model = span(2, 1, "chat", {"gen_ai.operation.name": "chat", "gen_ai.output.messages": told})
    runs = [span(10 + number, 1, "look", {**TOOL, "tool_call.id": "c"}) for number in range(size)]
    return [span(1, 0, "agent", AGENT), model, *runs]


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape",
    [
        nested_models,
        models_below_nested_steps,
        tools_below_nested_steps,
        history_with_ids,
        history_and_as_many_models,
        history_and_spans_of_tools,
        steps_without_the_spans_above,
        calls_with_one_id,
    ],
)
def test_twice_the_spans_are_about_twice_the_work(shape: Callable[[int], list[Span]]) -> None:
    small, large = shape(80), shape(160)
    assert calls_made(lambda: read_trace(large)) < 2.1 * calls_made(lambda: read_trace(small))


@pytest.mark.parametrize("key", ["output.value", "input.value"])
def test_a_long_word_is_read_like_any_other_text(key: str) -> None:
    """A pattern that tries each part of the word would take hours, and the suite's limit ends the test."""
    word = "ACGT" * 200_000
    records = read_trace([span(1, 0, "agent", {**AGENT, key: word})])
    assert word in json.dumps(records.events)
