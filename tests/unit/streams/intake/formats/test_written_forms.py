"""What a model, a chat template or a program writes into the text of a message is read as what it is, or named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines
from tests.support.openai_chat import assistant_message, tool_calls, tool_result, user_message

from traceweir.schemas.invocation import Invocation

QUESTION = user_message("Weather?")
ANSWER = assistant_message("It rains.")
ASKED = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
RETURNED = "<tool_response>\nrain\n</tool_response>"


def only(*messages: Document, **beside: Any) -> Invocation:
    (found,) = invocations(lines({"messages": list(messages), **beside}))
    return found


def calls(found: Invocation) -> list[tuple[str, Any]]:
    return [(each.name, each.args) for each in found.tool_uses]


def said(found: Invocation) -> tuple[str | None, str | None]:
    return (found.user_content.text if found.user_content is not None else None), answer(found)


def unread(found: Invocation) -> list[str]:
    return [each for each in found.unread or () if "times of the messages" not in each]


@pytest.mark.parametrize("role", ["tool", "user"])
def test_calls_and_results_that_a_chat_template_writes_as_elements_are_read(role: str) -> None:
    found = only(QUESTION, assistant_message(f"I look.\n{ASKED}"), {"role": role, "content": RETURNED}, ANSWER)

    assert calls(found) == [("weather", {"city": "Oslo"})]
    assert [(each.name, each.response) for each in found.tool_responses] == [("weather", "rain")]
    assert (answer(found), unread(found)) == ("It rains.", [])


def test_each_of_several_results_in_one_message_is_that_of_its_call() -> None:
    failed = "<tool_response>\nError: no such city\n</tool_response>"
    found = only(QUESTION, assistant_message(f"{ASKED}\n{ASKED}"), user_message(f"{RETURNED}\n{failed}"), ANSWER)

    assert [each.response for each in found.tool_responses] == ["rain", {"error": "Error: no such city"}]


def test_an_element_that_is_no_call_is_named_and_stays_in_the_text() -> None:
    found = only(QUESTION, assistant_message('<tool_call>\n{"name": "weather", \n</tool_call>'))

    assert unread(found) == [
        "not all of the answer is text: 1 part of type 'tool_call'",
        "the tool calls are not known: a text of the model has a call that cannot be read",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Write <tool_call>the call</tool_call> and wait.",
        f"It writes JSON in an element:\n```\n{ASKED}\n```\nThen it waits.",
        f"It writes JSON in an element:\n```\n{ASKED}\n```",
        f"It writes JSON in an element:\n```\n{ASKED}",
        f"It writes {ASKED} and waits.",
        '> <tool_call>{"name": "f", "arguments": {}}</tool_call>',
        'It writes:\n\n    <tool_call>{"name": "f", "arguments": {}}</tool_call>',
        '`<tool_call>{"name": "f", "arguments": {}}</tool_call>`',
        "Look for the beginning, e.g. `<tool_call>{`",
    ],
)
def test_a_text_about_elements_stays_as_it_is(text: str) -> None:
    found = only(QUESTION, assistant_message(text))

    assert (answer(found), calls(found), unread(found)) == (text, [], [])


def test_a_call_that_a_message_has_beside_its_text_is_read_once() -> None:
    asked = {**tool_calls(("c", "weather", '{"city": "Oslo"}')), "content": ASKED}
    found = only(QUESTION, asked, tool_result("c", "rain"), ANSWER)

    assert calls(found) == [("weather", {"city": "Oslo"})]


@pytest.mark.parametrize("before", [(), (QUESTION, ANSWER)])
def test_an_element_of_a_result_is_a_question_if_nobody_has_called(before: tuple[Document, ...]) -> None:
    found = invocations(lines({"messages": [*before, user_message("<tool_response>ok</tool_response>"), ANSWER]}))

    assert [said(each) for each in found][-1] == ("<tool_response>ok</tool_response>", "It rains.")
    assert [each.tool_responses for each in found] == [[] for _ in found]


@pytest.mark.parametrize(
    ("asking", "output"),
    [
        (
            "DISCUSSION\nI look.\n```\nls\n```",
            "OBSERVATION:\na.py",
        ),
        ("Thought: I look.\nAction 1: search[Oslo]", "Observation: rain"),
        ('Action:\n```\n{"action": "search", "action_input": "Oslo"}\n```', "Observation: rain"),
        ("Thought: I look.\n<code>\nls()\n</code>", "Observation:\nExecution logs:\na.py"),
        ("Thought: I look.\nCode:\n```py\nls()\n```", "Observation:\nExecution logs:\na.py"),
        ("Thought: I look.\nAction: search: Oslo\nPAUSE", "Observation: rain"),
        ("```bash\nls\n```", "<returncode>0</returncode>\n<output>\na.py\n</output>"),
        ("<function=bash>ls</function>", "EXECUTION RESULT of [bash]:\na.py"),
        ("<read_file><path>a.py</path></read_file>", "[read_file for 'a.py'] Result:\nprint(1)"),
        ("Thought: I look.\nAction: search\nAction Input: Oslo", "Observation: rain"),
        ('<function_calls>\n<invoke name="ls">\n</invoke>\n</function_calls>', "<function_results>\na.py"),
    ],
)
def test_the_output_of_a_tool_in_the_name_of_the_user_begins_no_turn_and_is_named(asking: str, output: str) -> None:
    found = only(QUESTION, assistant_message(asking), user_message(output), ANSWER)

    assert found.user_content is not None
    assert (found.user_content.text, answer(found)) == ("Weather?", "It rains.")
    assert any("'output of a tool'" in each for each in unread(found))
    assert any(each.startswith("the tool calls are not known") for each in unread(found))


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("It rains.", "Observation: it stopped."),
        ("How can I help?", "OBSERVATION:\nPatient has fever. What should I write in the report?"),
        ("Try:\n```\nprint(x)\n```", "OBSERVATION:\nNothing is printed."),
        ("Try:\n```\nprint(x)\n```", "Observation: it prints nothing when x is empty. Why?"),
        ("Try <code>print(x)</code>.", "Observation: it prints nothing."),
        ("Action: call the bank on Monday.", "Observations: the bank is closed Monday. What now?"),
        ("Action: call the bank on Monday.", "Observation: the bank is closed Monday. What now?"),
        ("Call to action: Monday: the bank.", "Observation: the bank is closed Monday. What now?"),
        ("Try:\nCode:\n```py\nprint(x)\n```", "Observation: it prints nothing."),
        ("Run pytest.", "[pytest] Result: 3 failed. Which fixture is wrong?"),
        ("Run <pytest>.", "[pytest] Result: 3 failed. Which fixture is wrong?"),
        ("I read it.", "[read_file for 'a.py'] Result:\nprint(1)"),
        ("Run it.", "EXECUTION RESULT of [bash]:\na.py"),
        ("Run:\n```\nls\n```", "<returncode>0</returncode> What is that?"),
        ("Look.", "<function_results> is what?"),
    ],
)
def test_what_a_user_says_that_is_like_an_output_is_a_question(before: str, text: str) -> None:
    found = invocations(lines({"messages": [QUESTION, assistant_message(before), user_message(text), ANSWER]}))

    assert [said(each) for each in found] == [("Weather?", before), (text, "It rains.")]
    assert not any("output of a tool" in each for every in found for each in unread(every))


def test_an_output_after_a_text_that_is_not_the_last_one_is_a_question() -> None:
    asking = assistant_message("Action: search\nAction Input: Oslo")
    found = invocations(lines({"messages": [QUESTION, asking, ANSWER, user_message("Observation: rain"), ANSWER]}))

    assert [said(each) for each in found][-1] == ("Observation: rain", "It rains.")


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_the_mark_with_which_a_simulated_user_ends_is_no_question_and_no_part_of_the_answer(finish: str) -> None:
    found = only(QUESTION, {**ANSWER, "finish_reason": finish}, user_message("###STOP###"))
    (plain,) = invocations(lines({"messages": [QUESTION, {**ANSWER, "finish_reason": finish}]}))

    said_at_end = "the user's last message is no question (1 part of type 'end of the conversation')"
    assert said(found) == said(plain)
    assert unread(found) == [*unread(plain), said_at_end]


def test_a_request_stays_without_the_mark_that_ends_the_conversation() -> None:
    asked = user_message("Please cancel order 2 too. ###STOP###")
    _, found = invocations(lines({"messages": [QUESTION, ANSWER, asked, assistant_message("Cancelled order 2.")]}))

    assert said(found) == ("Please cancel order 2 too.", "Cancelled order 2.")
    assert said(only(user_message("Where is my order? ###STOP###"), ANSWER)) == ("Where is my order?", "It rains.")


def test_a_question_about_the_mark_stays_as_it_is() -> None:
    found = only(user_message("What is ###STOP###"), ANSWER)

    assert (said(found), unread(found)) == (("What is ###STOP###", "It rains."), [])


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_parts_that_somebody_has_written_as_a_text_are_read(write: Any) -> None:
    def written(text: str) -> str:
        return write([{"type": "text", "text": text}])  # type: ignore[no-any-return]

    found = only(user_message(written("Weather?")), assistant_message(written("It rains.")))

    assert found.user_content is not None
    assert (found.user_content.text, answer(found)) == ("Weather?", "It rains.")


def test_an_answer_that_is_json_stays_an_answer() -> None:
    text = '[{"type": "bus", "line": 4}]'

    assert answer(only(QUESTION, assistant_message(text))) == text


@pytest.mark.parametrize(
    "text",
    [
        "ChatCompletionMessage(content='It rains.', refusal=None, role='assistant', tool_calls=None)",
        "[TextBlock(citations=None, text='It rains.', type='text')]",
        "content='It rains.' additional_kwargs={} response_metadata={}",
        "content='It rains.' additional_kwargs={} response_metadata={} id='run-1'",
        "{'content': 'It rains.', 'role': 'assistant'}",
        "{'messages': [HumanMessage(content='Weather?'), AIMessage(content='It rains.')]}",
        "[{'role': 'assistant', 'content': 'It rains.'}]",
        "<agent.Answer object at 0x7f0c>",
        "AgentResult(stop_reason='end_turn', message={'role': 'assistant', 'content': [{'text': 'Hi'}]})",
    ],
)
def test_an_object_of_an_sdk_as_python_prints_it_is_no_answer(text: str) -> None:
    found = only(QUESTION, assistant_message(text))

    assert answer(found) is None
    assert unread(found) == ["the answer is no text: 1 part of type 'object printed by Python'"]


@pytest.mark.parametrize(
    "text",
    [
        "Message(role='user', content='Hi')",
        "AIMessage(content='Hi')",
        "<Response [500]>",
        "{'output': 42}",
        "{'role': 'user', 'content': 'Hi'}",
    ],
)
def test_an_object_that_can_be_the_answer_itself_stays_and_is_named(text: str) -> None:
    found = only(user_message("How do I make a message?"), assistant_message(text))

    assert answer(found) == text
    assert unread(found) == ["not all of the answer is text: 1 part of type 'object printed by Python'"]


@pytest.mark.parametrize(
    "text",
    [
        "<Response [500]>",
        "content='Hi' response_metadata={'a': 1} - why does my print show this?",
        "ChatCompletionMessage(content='It rains.', refusal=None, role='assistant', tool_calls=None)",
        "{'role': 'user'} or {'content': 'Hi'}?",
        "{'role': 'user' gives a syntax error, why?",
        "{'role': 'user'} works, but this fails: {'role': 1}",
    ],
)
def test_an_object_that_a_user_shows_is_the_question(text: str) -> None:
    found = only(user_message(text), ANSWER)

    assert (said(found), unread(found)) == ((text, "It rains."), [])


@pytest.mark.parametrize(
    "text",
    [
        "content='Weather?' additional_kwargs={} response_metadata={}",
        "[HumanMessage(content='Weather?', additional_kwargs={}, response_metadata={})]",
        "{'role': 'user', 'content': 'Weather?'}",
    ],
)
def test_a_message_of_a_user_as_python_prints_it_is_no_question(text: str) -> None:
    found = only(user_message(text), ANSWER)

    assert said(found) == ("", "It rains.")
    assert unread(found) == ["the question is no text: 1 part of type 'object printed by Python'"]


def test_a_text_about_the_fields_of_an_object_is_an_answer() -> None:
    text = "content='Hi' response_metadata={'a': 1} is what it prints."
    found = only(QUESTION, assistant_message(text))

    assert answer(found) == text


def test_arguments_that_are_encoded_twice_are_read() -> None:
    found = only(QUESTION, tool_calls(("c", "weather", json.dumps('{"city": "Oslo"}'))), tool_result("c", "1"), ANSWER)

    assert calls(found) == [("weather", {"city": "Oslo"})]
    assert unread(found) == []


def test_arguments_that_are_no_json_are_kept_and_named_once_a_tool_with_a_count() -> None:
    asked = tool_calls(("a", "weather", '{"city": "Os'), ("b", "weather", "{'city': 1}"), ("c", "tide", "{}"))
    found = only(QUESTION, asked, ANSWER)

    assert calls(found)[0] == ("weather", {"arguments": '{"city": "Os'})
    assert unread(found) == ["the arguments of 2 calls of tool 'weather' are no JSON object, and are kept as text"]


def test_the_text_that_a_custom_tool_takes_is_not_named() -> None:
    item = {"type": "custom_tool_call", "call_id": "c", "name": "python", "input": "print(1)"}
    found = only(QUESTION, item, ANSWER)

    assert calls(found) == [("python", {"arguments": "print(1)"})]
    assert unread(found) == []


CITED: list[Document] = [
    {"type": "text", "text": "It "},
    {"type": "text", "text": "rains", "citations": [{"type": "char_location", "cited_text": "rain"}]},
    {"type": "text", "text": "."},
]


def test_pieces_of_a_text_with_citations_are_one_text() -> None:
    assert answer(only(QUESTION, assistant_message(CITED))) == "It rains."


def test_pieces_with_citations_in_a_stream_are_one_text() -> None:
    events: list[Document] = [{"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}]
    for index, part in enumerate(CITED):
        block: Document = {"type": "text", "text": ""} | ({"citations": []} if "citations" in part else {})
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        deltas: list[Document] = [{"type": "text_delta", "text": part["text"]}]
        deltas += [{"type": "citations_delta", "citation": {}}] if "citations" in part else []
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]

    (found,) = invocations(lines(*events))

    assert answer(found) == "It rains."


@pytest.mark.parametrize(
    ("stored", "cause"),
    [
        ({"candidates": [{"finishReason": "SAFETY", "safetyRatings": []}]}, "because of 'SAFETY'"),
        (
            {"choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "length"}]},
            "at its limit 'length'",
        ),
    ],
)
def test_an_answer_that_was_stopped_before_its_first_word_is_missing(stored: Document, cause: str) -> None:
    found = only(QUESTION, **stored)

    assert answer(found) is None
    assert unread(found) == [f"the answer is not there: the model stopped {cause}"]


def test_the_answer_of_ollama_beside_the_messages_of_its_request_is_read() -> None:
    said = {"role": "assistant", "content": "It rains.", "thinking": "Rain?"}
    found = only(QUESTION, model="llama", message=said, done=True, prompt_eval_count=3, eval_count=2)

    assert (answer(found), found.token_usage and found.token_usage.output_tokens) == ("It rains.", 2)


@pytest.mark.parametrize(
    "beside",
    [{"response": "The task is done."}, {"message": assistant_message("It rains.")}],
    ids=["response", "message"],
)
def test_the_end_of_a_transcript_with_its_answer_is_no_answer_of_ollama(beside: Document) -> None:
    found = only(QUESTION, ANSWER, done=True, **beside)
    without = only(QUESTION, ANSWER)

    assert said(found) == ("Weather?", "It rains.")
    assert found.intermediate_data == without.intermediate_data


def test_keys_of_a_part_that_are_null_are_no_parts() -> None:
    part = {"text": "It rains.", "tool_call": None, "function_call": None, "inline_data": None}
    found = only(QUESTION, {"role": "assistant", "content": [part]})

    assert (answer(found), unread(found)) == ("It rains.", [])


def test_the_message_of_an_error_beside_an_empty_result_is_read() -> None:
    failed = {**tool_result("c", ""), "error": {"type": "timeout", "message": "timed out"}}
    found = only(QUESTION, tool_calls(("c", "weather", "{}")), failed, ANSWER)

    assert [each.response for each in found.tool_responses] == [{"error": "timed out"}]


@pytest.mark.parametrize("mark", ["<|im_end|>", "</s>", "\n<|eot_id|>\n"])
def test_the_mark_with_which_a_model_ends_its_message_is_no_text_after_a_call(mark: str) -> None:
    found = only(QUESTION, assistant_message(f"{ASKED}{mark}"), user_message(RETURNED), ANSWER)

    assert calls(found) == [("weather", {"city": "Oslo"})]
    assert answer(found) == "It rains."


@pytest.mark.parametrize(
    "broken",
    [
        '<tool_call>{"name": weather}</tool_call>',
        "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
    ],
    ids=["broken", "Qwen's coder", "GLM"],
)
def test_the_result_of_a_call_that_cannot_be_read_is_no_question(broken: str) -> None:
    found = only(QUESTION, assistant_message(broken), user_message(RETURNED), ANSWER)

    assert said(found) == ("Weather?", "It rains.")


def test_each_of_several_outputs_in_a_row_is_no_question() -> None:
    asking = assistant_message("Action: search\nAction Input: Oslo")
    outputs = [user_message(f"Observation: {number}") for number in (1, 2)]
    found = only(QUESTION, asking, *outputs, ANSWER)

    assert said(found) == ("Weather?", "It rains.")


def test_an_error_without_a_message_is_kept_whole() -> None:
    result = {"role": "tool", "tool_call_id": "c", "content": None, "error": {"code": 5}}
    found = only(QUESTION, tool_calls(("c", "weather", "{}")), result, ANSWER)

    assert [each.response for each in found.tool_responses] == [{"error": '{"code":5}'}]
