"""Spread messages: what a span tells does not depend on its keys, and a set of large keys is not kept in memory."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from tests.support.spans import span

from traceweir.streams.intake.spans.conventions.source import Rank, Source, SourcePlace, SourceTable, spread_beginnings
from traceweir.streams.intake.spans.key_sets import keys_there
from traceweir.streams.intake.spans.reader import read_trace
from traceweir.streams.intake.spans.spread_messages import indexed

KEY = "llm.input_messages.0.message.content"
BEGINNINGS = ("llm.input_messages.",)


@pytest.mark.parametrize("other", ["short", "x" * 2_000, "x" * 2_001])
def test_only_parts_of_messages_are_read_as_messages(other: str) -> None:
    source = Source(BEGINNINGS[0], lambda _, spread: spread, Rank.VALUE, SourcePlace.SPREAD)
    table = SourceTable([source], spread_beginnings([source]))
    assert list(table.read_all(span(1, 0, "llm", {KEY: "hello", other: 1}))) == [{KEY: "hello"}]
    assert list(table.read_all(span(1, 0, "llm", {other: 1}))) == []


def test_a_large_key_is_let_go_with_its_span() -> None:
    large, short = "x" * 2_001, "x" * 200
    kept = []
    for key in (large, short):
        before = sys.getrefcount(key)
        assert keys_there([key]).of(span(1, 0, "llm", {key: 1}).key_set)
        kept.append(sys.getrefcount(key) > before)
    assert kept == [False, True]


def test_an_object_that_is_a_value_is_not_changed_by_keys_below_it() -> None:
    value: dict[str, object] = {"a": 1}
    for keys in ((KEY, f"{KEY}.0"), (f"{KEY}.0", KEY)):
        indexed(dict.fromkeys(keys, value), BEGINNINGS[0])
        assert value == {"a": 1}


LLM = {"openinference.span.kind": "LLM", "llm.model_name": "m"}
ASKED = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hours?"}


def read(attributes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the events of a model call by their type."""
    return {each["type"]: each for each in read_trace([span(1, 0, "ChatCompletion", LLM | attributes)]).events}


def test_a_call_of_the_api_before_tool_calls_is_a_call() -> None:
    answer = "llm.output_messages.0.message"
    call = {f"{answer}.function_call_name": "hours", f"{answer}.function_call_arguments_json": '{"day": "Sunday"}'}
    called = read(ASKED | {f"{answer}.role": "assistant"} | call)["tool.called"]
    assert (called["name"], called["args"]) == ("hours", {"day": "Sunday"})


def test_the_texts_of_a_model_without_a_chat_are_question_and_answer() -> None:
    found = read({"llm.prompts.0.prompt.text": "Hours?", "llm.choices.0.completion.text": "Until 6."})
    assert found["invocation.started"]["user_content"]["parts"] == [{"text": "Hours?"}]
    assert found["invocation.completed"]["final_response"]["parts"] == [{"text": "Until 6."}]


@pytest.mark.parametrize(("key", "answer"), [("choices", "Until 6."), ("output", "Until 6.\nOr 7.")])
def test_of_several_choices_of_an_api_the_first_is_the_answer(key: str, answer: str) -> None:
    texts = ("Until 6.", "Or 7.")
    spread = {f"llm.output_messages.{place}.message.content": text for place, text in enumerate(texts)}
    spread |= {f"llm.output_messages.{place}.message.role": "assistant" for place in range(2)}
    choices = [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}} for text in texts]
    completed = read(ASKED | spread | {"output.value": json.dumps({key: choices})})["invocation.completed"]
    assert completed["final_response"]["parts"] == [{"text": answer}]
