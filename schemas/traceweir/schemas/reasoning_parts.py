"""Puts the model's reasoning back into messages, for metrics that count it as text, as Google ADK does."""

from __future__ import annotations

from traceweir.schemas.invocation import Content, IntermediateData, Invocation, InvocationEvents, Part, SpokenParts


def with_reasoning(message: Content | None) -> Content | None:
    """Returns a message with the parts that are reasoning, as far as its source had them.

    >>> parts = [{"text": "Norway...", "thought": True}, {"text": "Oslo."}]
    >>> message = Content.model_validate({"parts": parts})
    >>> message.text, with_reasoning(message).text
    ('Oslo.', 'Norway...\\nOslo.')
    """
    if message is None or not isinstance(message.parts, SpokenParts):
        return message
    return message.model_copy(update={"parts": message.parts.every})


def invocation_with_reasoning(invocation: Invocation) -> Invocation:
    """Returns an invocation with the parts of its messages that are reasoning, as far as its source had them."""
    data = invocation.intermediate_data
    if isinstance(data, InvocationEvents):
        steps = [step.model_copy(update={"content": with_reasoning(step.content)}) for step in data.invocation_events]
        data = data.model_copy(update={"invocation_events": steps})
    elif isinstance(data, IntermediateData):
        responses = [(author, _every(parts)) for author, parts in data.intermediate_responses]
        data = data.model_copy(update={"intermediate_responses": responses})
    return invocation.model_copy(
        update={
            "user_content": with_reasoning(invocation.user_content),
            "final_response": with_reasoning(invocation.final_response),
            "intermediate_data": data,
        }
    )


def _every(parts: list[Part]) -> list[Part]:
    return parts.every if isinstance(parts, SpokenParts) else parts
