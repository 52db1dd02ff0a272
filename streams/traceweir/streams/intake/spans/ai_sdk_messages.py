"""Reads what Vercel's AI SDK has in its messages alone: calls of tools together with their results, and frames of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from traceweir.streams.intake.spans.attributes import ABSENT, text_of
from traceweir.streams.intake.spans.hosted_tools import DENIED
from traceweir.streams.intake.spans.message import RequestedCall, SpanMessage, ToolResult

_TOOL = "tool-"
_REQUESTED = "tool-approval-request"
APPROVAL = "tool-approval-response"
"""The kind of a part with what a person answered to the request for an approval."""
_FRAMED = {"text", "json", "content", "error-text", "error-json"}


def read_ui_tool(part: Mapping[str, Any], message: SpanMessage) -> bool:
    """Adds a call and its result from a part of a message of a user interface; returns whether the part is one."""
    kind = text_of(part.get("type"))
    inner = part.get("toolInvocation") if kind == "tool-invocation" else part
    if not isinstance(inner, dict) or not isinstance(inner.get("toolCallId"), str) or "state" not in inner:
        return False
    call_id = inner["toolCallId"]
    name = text_of(inner.get("toolName")) or kind.removeprefix(_TOOL)
    args = next((inner[key] for key in ("input", "args") if inner.get(key) is not None), ABSENT)
    message.add_call(RequestedCall(call_id, name, args))
    approval = inner.get("approval")
    if inner["state"] == "output-denied" or (isinstance(approval, dict) and approval.get("approved") is False):
        reason = text_of(approval.get("reason")) if isinstance(approval, dict) else ""
        message.results.append(ToolResult(call_id, name, reason or DENIED, failed=True))
    elif inner["state"] == "output-error":
        message.results.append(ToolResult(call_id, name, text_of(inner.get("errorText")), failed=True))
    elif inner["state"] in ("output-available", "result"):
        value = next((inner[key] for key in ("output", "result") if key in inner), ABSENT)
        message.results.append(ToolResult(call_id, name, value))
    return True


def unframed_output(value: Any) -> tuple[Any, bool]:
    """Returns the value in the frame of a result, and whether the frame says that the tool failed.

    >>> unframed_output({"type": "error-text", "value": "no seats"}), unframed_output({"type": "json", "value": {"t": 4}})
    (('no seats', True), ({'t': 4}, False))
    >>> unframed_output({"type": "json"})
    ({'type': 'json'}, False)
    """
    if not isinstance(value, dict) or not set(value) <= {"type", "value", "reason", "providerOptions"}:
        return value, False
    kind = text_of(value.get("type"))
    if kind == DENIED:
        return text_of(value.get("reason")) or DENIED, True
    if kind in _FRAMED and "value" in value:
        return value["value"], kind.startswith("error-")
    return value, False


def with_denials(messages: Sequence[Any]) -> Sequence[Any]:
    """Returns messages in which a denied approval is the result of its call, unless the call has a result of its own.

    The approval names only its request, which names the call; a loop of the SDK adds the result in its next step.

    >>> asked = {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c"}
    >>> denied = {"type": "tool-approval-response", "approvalId": "p", "approved": False, "reason": "too risky"}
    >>> with_denials([{"role": "assistant", "content": [asked]}, {"role": "tool", "content": [denied]}])[1]["content"]
    [{'type': 'tool-result', 'toolCallId': 'c', 'output': {'type': 'execution-denied', 'reason': 'too risky'}}]
    """
    parts = list(_parts_of(messages))
    calls = {
        text_of(part.get("approvalId")): part.get("toolCallId") for part in parts if part.get("type") == _REQUESTED
    }
    if not calls:
        return messages
    answered = {text_of(part.get("toolCallId")) for part in parts if part.get("type") == "tool-result"}

    def read(part: Any) -> Any:
        if not isinstance(part, dict) or part.get("type") != APPROVAL or part.get("approved") is not False:
            return part
        call_id = calls.get(text_of(part.get("approvalId")))
        if not isinstance(call_id, str) or call_id in answered:
            return part
        output = {"type": DENIED, "reason": part.get("reason")}
        return {"type": "tool-result", "toolCallId": call_id, "output": output}

    return [
        {**each, "content": [read(part) for part in each["content"]]}
        if isinstance(each, dict) and isinstance(each.get("content"), list)
        else each
        for each in messages
    ]


def _parts_of(messages: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    for each in messages:
        content = each.get("content") if isinstance(each, dict) else None
        if isinstance(content, list):
            yield from (part for part in content if isinstance(part, dict))
