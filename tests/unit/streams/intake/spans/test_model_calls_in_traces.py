"""A bare client makes a trace of each model call: what their spans tell together of a turn."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.scoring import make_session
from tests.support.spans import span

from traceweir.schemas.conversation import Exchange, conversation_of
from traceweir.schemas.events import EVENT
from traceweir.streams.intake.spans.reader import read_trace

Message = dict[str, Any]
ASKED: Message = {"role": "user", "parts": [{"type": "text", "content": "Open on Sunday?"}]}


def called(call_id: str, **args: Any) -> Message:
    call = {"type": "tool_call", "name": "hours", "arguments": args} | ({"id": call_id} if call_id else {})
    return {"role": "assistant", "parts": [call]}


def returned(call_id: str, result: Any) -> Message:
    response = {"type": "tool_call_response", "response": result} | ({"id": call_id} if call_id else {"name": "hours"})
    return {"role": "tool", "parts": [response]}


def answered(text: str) -> Message:
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def model_calls(*messages: Message, session: str = "s") -> list[dict[str, Any]]:
    """Returns the events of a conversation whose model calls are traces of their own, each with the messages before it."""
    events: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 2,
                "gen_ai.input.messages": json.dumps(messages[:number]),
                "gen_ai.output.messages": json.dumps([message]),
            }
            attributes |= {"gen_ai.conversation.id": session} if session else {}
            end = number * 10**9 + 5 * 10**8
            only = span(number, 0, "chat", attributes, end_ns=end)
            events += read_trace([replace(only, trace_id=f"{number:032x}")]).events
    return events


def exchanges(events: list[dict[str, Any]]) -> list[Exchange]:
    found = [EVENT.validate_json(json.dumps(each)) for each in events]
    return conversation_of(make_session("s", events=found))


def told(exchange: Exchange) -> tuple[Any, ...]:
    tools = [(each.name, each.args, each.response if each.response_known else "missing") for each in exchange.tools]
    return exchange.question, tools, exchange.answer


SUNDAY = {"day": "Sunday"}


@pytest.mark.parametrize("ids", [("c1", "c2"), ("", "")], ids=["with ids", "without ids"])
def test_model_calls_of_one_session_are_one_turn_if_the_later_ones_repeat_the_earlier_ones(
    ids: tuple[str, str],
) -> None:
    first, second = ids
    messages = [ASKED, called(first, day="Sunday"), returned(first, "closed")]
    messages += [called(second, day="Monday"), returned(second, "from nine"), answered("No, but on Monday from nine.")]
    (turn,) = exchanges(model_calls(*messages))
    uses = [("hours", SUNDAY, "closed"), ("hours", {"day": "Monday"}, "from nine")]
    assert told(turn) == ("Open on Sunday?", uses, "No, but on Monday from nine.")
    usage = turn.turn.invocation.token_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, turn.turn.invocation.model_calls) == (21, 6, 3)
    unread = turn.turn.invocation.unread or []
    assert [each for each in unread if not each.startswith("the name of the agent ")] == []


def test_the_same_question_again_is_a_turn_of_its_own() -> None:
    once = [ASKED, called("c1", day="Sunday"), returned("c1", "closed"), answered("No.")]
    again = [ASKED, called("c2", day="Sunday"), returned("c2", "open"), answered("Yes, today.")]
    turns = [told(each) for each in exchanges(model_calls(*once, *again))]
    expected = [("closed", "No."), ("open", "Yes, today.")]
    assert turns == [("Open on Sunday?", [("hours", SUNDAY, result)], answer) for result, answer in expected]


def test_a_call_does_not_get_the_result_of_a_former_call_with_the_same_arguments() -> None:
    messages = [ASKED, called("c1", day="Sunday"), returned("c1", "closed"), called("c2", day="Sunday")]
    (turn,) = exchanges(model_calls(*messages))
    assert told(turn) == ("Open on Sunday?", [("hours", SUNDAY, "closed"), ("hours", SUNDAY, "missing")], None)


def test_without_a_session_it_is_said_that_each_model_call_is_one() -> None:
    messages = [ASKED, called("c1", day="Sunday"), returned("c1", "closed"), answered("No.")]
    ends = [each for each in model_calls(*messages, session="") if each["type"] == "invocation.completed"]
    assert len(ends) == 2
    assert all(
        any(sentence.startswith("the session is not in the spans: ") for sentence in each["missing"]) for each in ends
    )
    alone = model_calls(ASKED, answered("No."), session="")
    assert "the session" not in str(alone)


IMAGE: Message = {"role": "user", "parts": [{"type": "blob", "modality": "image", "content": "A"}]}


def test_a_question_that_is_only_an_image_takes_nothing_of_the_turn_before() -> None:
    call, result = called("c"), returned("c", "closed")
    first, second = exchanges(model_calls(ASKED, call, result, answered("No."), IMAGE, answered("A cat.")))

    assert (first.question, first.answer) == ("Open on Sunday?", "No.")
    assert (second.question, second.answer, second.tools) == (None, "A cat.", [])
    unread = second.turn.invocation.unread or []
    assert any("question" in sentence and "blob" in sentence for sentence in unread), unread


def test_an_image_beside_a_question_or_a_result_begins_no_turn() -> None:
    call, result = called("c"), returned("c", "closed")
    [only] = exchanges(model_calls(ASKED, IMAGE, call, result, IMAGE, answered("No.")))

    assert (only.question, only.answer, len(only.tools)) == ("Open on Sunday?", "No.", 1)


@pytest.mark.parametrize("has_ids", [True, False])
def test_equal_calls_of_a_loop_are_as_many_calls_of_one_turn(has_ids: bool) -> None:
    messages = [ASKED]
    for number in range(3):
        own = f"c{number}" if has_ids else ""
        messages += [called(own), returned(own, f"closed {number}")]

    [only] = exchanges(model_calls(*messages, answered("Closed.")))

    assert (only.question, only.answer) == ("Open on Sunday?", "Closed.")
    assert [tool.response for tool in only.tools] == ["closed 0", "closed 1", "closed 2"]
