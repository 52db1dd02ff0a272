"""A call that waits for the approval of a person is one call, with the result that it has in the end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.chat_files import Document, answer, invocations, lines

from traceweir.schemas.invocation import Invocation

QUESTION = {"role": "user", "content": "Delete a.txt"}
ANSWER = {"role": "assistant", "content": "Done."}
REQUEST = {"type": "mcp_approval_request", "id": "r1", "name": "delete", "arguments": '{"path": "a.txt"}'}
RAN = {"type": "mcp_call", "id": "m1", "name": "delete", "arguments": '{"path": "a.txt"}', "output": "ok"}
MODEL_CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "delete", "input": {"path": "a.txt"}}
MODEL_RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "delete"}


def reply(approve: bool, **more: Any) -> Document:
    return {"type": "mcp_approval_response", "approve": approve, "approval_request_id": "r1", **more}


def part_of_page(state: str, **more: Any) -> Document:
    part = {"type": "tool-delete", "toolCallId": "c1", "state": state, "input": {"path": "a.txt"}, **more}
    return {"role": "assistant", "parts": [part, {"type": "text", "text": "Done."}]}


def of_model(approved: bool, output: Document) -> list[Document]:
    return [
        {
            "role": "assistant",
            "content": [MODEL_CALL, {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c1"}],
        },
        {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "p", "approved": approved}]},
        {"role": "tool", "content": [{**MODEL_RESULT, "output": output}]},
        ANSWER,
    ]


def without_result(messages: list[Document], **more: Any) -> list[Document]:
    asked, replied, _, answered = messages
    return [asked, {**replied, "content": [{**replied["content"][0], **more}]}, answered]


DENIED = {"id": "p", "approved": False, "reason": "too risky"}


@pytest.mark.parametrize(
    ("messages", "response"),
    [
        ([REQUEST, reply(True), {**RAN, "approval_request_id": "r1"}, ANSWER], "ok"),
        ([REQUEST, reply(False, reason="too risky"), ANSWER], {"error": "too risky"}),
        ([REQUEST, reply(False), ANSWER], {"error": "execution-denied"}),
        ([part_of_page("output-denied", approval=DENIED)], {"error": "too risky"}),
        ([part_of_page("approval-responded", approval=DENIED)], {"error": "too risky"}),
        (of_model(True, {"type": "text", "value": "ok"}), "ok"),
        (of_model(False, {"type": "execution-denied", "reason": "too risky"}), {"error": "too risky"}),
        # Stored before the next step of the SDK, which writes the result.
        (without_result(of_model(False, {})), {"error": "execution-denied"}),
        (without_result(of_model(False, {}), reason="too risky"), {"error": "too risky"}),
    ],
)
def test_an_approved_or_denied_call_is_one_call_with_its_result(messages: list[Document], response: Any) -> None:
    (found,) = invocations(lines({"messages": [QUESTION, *messages]}))

    assert [(each.name, each.args) for each in found.tool_uses] == [("delete", {"path": "a.txt"})]
    assert [(each.name, each.response) for each in found.tool_responses] == [("delete", response)]
    assert answer(found) == "Done."
    assert not _parts(found)


def test_a_call_that_still_waits_for_its_approval_has_no_result() -> None:
    (found,) = invocations(lines({"messages": [QUESTION, REQUEST]}))

    assert [each.name for each in found.tool_uses] == ["delete"]
    assert (found.tool_responses, answer(found)) == ([], None)


def test_a_patch_that_failed_is_a_failed_call() -> None:
    call = {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "create_file", "path": "b.txt"}}
    output = {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "denied"}
    (found,) = invocations(lines({"messages": [QUESTION, call, output, ANSWER]}))

    assert [each.response for each in found.tool_responses] == [{"error": "denied"}]


def _parts(found: Invocation) -> list[str]:
    return [sentence for sentence in found.unread or () if "type" in sentence]
