"""Takes the model's reasoning out of invocations, and puts it back for metrics that count it as text, as Google ADK does."""

from __future__ import annotations

from traceweir.schemas.invocation import Content, IntermediateData, Invocation, InvocationEvents, Part, SpokenParts
from traceweir.schemas.reasoning_text import without_reasoning


def invocation_without_reasoning(invocation: Invocation) -> Invocation:
    """Returns an invocation whose agent's messages are without what open models write as reasoning into their texts.

    An invocation without such texts is returned as it is. What the user wrote is never changed.

    >>> answer = Content.of("<think>Norway...</think>Oslo.", "model")
    >>> invocation = invocation_without_reasoning(Invocation(final_response=answer))
    >>> invocation.final_response.text, invocation_with_reasoning(invocation).final_response == answer
    ('Oslo.', True)
    """
    final = _spoken(invocation.final_response)
    data = invocation.intermediate_data
    if isinstance(data, InvocationEvents):
        steps = [
            step
            if step.author in ("", "user") or (content := _spoken(step.content)) is step.content
            else step.model_copy(update={"content": content})
            for step in data.invocation_events
        ]
        if any(step is not former for step, former in zip(steps, data.invocation_events, strict=True)):
            data = data.model_copy(update={"invocation_events": steps})
    elif data is not None:
        responses = [(author, _spoken_parts(parts)) for author, parts in data.intermediate_responses]
        if any(new is not old for (_, new), (_, old) in zip(responses, data.intermediate_responses, strict=True)):
            data = data.model_copy(update={"intermediate_responses": responses})
    if final is invocation.final_response and data is invocation.intermediate_data:
        return invocation
    return invocation.model_copy(update={"final_response": final, "intermediate_data": data})


def _spoken(message: Content | None) -> Content | None:
    if message is None or not message.parts:
        return message
    parts = _spoken_parts(message.parts)
    return message if parts is message.parts else message.model_copy(update={"parts": parts})


def _spoken_parts(parts: list[Part]) -> list[Part]:
    texts = [part.text and without_reasoning(part.text) for part in parts]
    if all(text == part.text for text, part in zip(texts, parts, strict=True)):
        return parts
    spoken = SpokenParts(
        part if text == part.text else part.model_copy(update={"text": text})
        for text, part in zip(texts, parts, strict=True)
        if text or not part.text
    )
    spoken.every = _every(parts)
    return spoken


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
