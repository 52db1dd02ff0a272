"""Makes the reasoning trace of a chat transcript."""

from __future__ import annotations

from collections.abc import Sequence

from traceweir.schemas.base import JsonObject
from traceweir.schemas.finish_reasons import INTERRUPTED, NOT_WHOLE, is_unfinished
from traceweir.schemas.part_kinds import counted_kinds
from traceweir.streams.intake.formats.chat_identity import field_of
from traceweir.streams.intake.formats.chat_turns import ChatMessage
from traceweir.streams.intake.formats.transcript_items import TranscriptPlace


def trace_of(
    document: JsonObject, messages: Sequence[ChatMessage], task_domain: str, place: TranscriptPlace, error: str
) -> JsonObject | None:
    """Returns the trace without ids and time.

    None if the model's provider failed before the agent did anything, if all that the agent wrote is no text, or if the
    input lacks a part of the last answer or says that a part is missing, so that a trace would have a part of a step.
    """
    if any((each.finish in NOT_WHOLE and each.finish != INTERRUPTED) or each.missing for each in messages):
        return None
    steps = _steps(messages)
    # Without a question, no invocation could say what was not read.
    unread = [message.unread for message in messages if message.role == "assistant" and message.unread]
    is_cut = any(is_unfinished(message.finish) for message in messages)
    if not steps and (error or ((unread or is_cut) and any(message.role == "user" for message in messages))):
        return None
    if not steps:
        found = f", but {counted_kinds(unread)}" if unread else ""
        way_out = "write each message with its role and its content, or remove it" if unread else "remove it"
        raise place.error(
            f"contains no message of an assistant or a tool with a text or a call (reasoning is neither){found}, so there is "
            f"nothing to score; {way_out}"
        )
    user_texts = [message.text for message in messages if message.role == "user" and message.text.strip()]
    agent_texts = [message.text for message in messages if message.role == "assistant" and message.text.strip()]
    domain = field_of(document, "task_domain")
    success = field_of(document, "success")
    confidence = field_of(document, "confidence")
    metadata: JsonObject = {
        "framework": "openai-chat",
        "task_domain": task_domain if domain is None else domain,
        "success": True if success is None else success,
        "quality_score": 0,
        "visibility": "network",
        "privacy_level": "aggregated",
    }
    return {
        "metadata": metadata,
        "task": {"objective": [*user_texts, *agent_texts, "(no objective)"][0]},
        "steps": list(steps),
        "outcome": {
            "result_summary": agent_texts[-1] if agent_texts else "",
            "confidence": 1.0 if confidence is None else confidence,
        },
    }


def _steps(messages: Sequence[ChatMessage]) -> list[JsonObject]:
    steps: list[JsonObject] = []
    failed = False
    for message in messages:
        if message.role == "tool":
            # `content`, not `output_summary`: the novelty metric compares `content`, and must include answers of tools.
            steps.append({"step_id": len(steps), "type": "observation", "content": message.text})
            failed = failed or message.failed
        elif message.role == "assistant" and message.text:
            steps.append({"step_id": len(steps), "type": "thought", "content": message.text})
        for call in message.calls:
            kind = "error_recovery" if failed else "tool_call"
            step: JsonObject = {
                "step_id": len(steps),
                "type": kind,
                "tool": {"name": call.name},
                **({} if call.arguments is None else {"input": call.arguments}),
            }
            steps.append(step)
            failed = False
    return steps
