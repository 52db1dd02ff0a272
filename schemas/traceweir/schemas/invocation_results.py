"""Takes out of the tool results and the messages of an invocation what is no text, and says so in the invocation."""

from __future__ import annotations

from collections import Counter

from traceweir.schemas.invocation import (
    Content,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
)
from traceweir.schemas.part_kinds import not_text
from traceweir.schemas.result_parts import data_url_kind, has_media, not_text_of_result, read_result


def with_text_results(invocation: Invocation) -> Invocation:
    """Returns an invocation whose tool results are without parts that are no text; `unread` names these parts.

    An invocation without such parts is returned as it is.
    """
    data = invocation.intermediate_data
    # A text can be JSON with such parts.
    if not any(isinstance(each.response, str) or has_media(each.response) for each in invocation.tool_responses):
        return invocation
    unread: list[str] = []
    kept: IntermediateData | InvocationEvents | None = None
    if isinstance(data, InvocationEvents):
        kept = InvocationEvents(invocation_events=[_step(step, unread) for step in data.invocation_events])
    elif data is not None:
        responses = [_response(each, unread) for each in data.tool_responses]
        kept = data.model_copy(update={"tool_responses": responses})
    if not unread:
        return invocation
    return invocation.model_copy(
        update={"intermediate_data": kept, "unread": list(dict.fromkeys([*(invocation.unread or ()), *unread]))}
    )


def with_text_messages(invocation: Invocation) -> Invocation:
    """Returns an invocation whose messages are without texts that are nothing but a data URL; `unread` names them.

    A message of which nothing is left is absent. An invocation without such texts is returned as it is.

    >>> picture = Content.of("data:image/png;base64,QUJD", "model")
    >>> found = with_text_messages(Invocation(final_response=picture))
    >>> found.final_response, found.unread
    (None, ["the answer is no text: 1 part of type 'image'"])
    """
    unread: list[str] = []
    question = _text_message(invocation.user_content, "question", unread)
    answer = _text_message(invocation.final_response, "answer", unread)
    data = invocation.intermediate_data
    kept: IntermediateData | InvocationEvents | None = data
    if isinstance(data, InvocationEvents):
        steps = [
            step.model_copy(update={"content": content})
            if (content := _text_message(step.content, INTERMEDIATE, unread)) is not step.content
            else step
            for step in data.invocation_events
        ]
        kept = data.model_copy(update={"invocation_events": steps})
    elif data is not None:
        kinds: Counter[str] = Counter()
        said = [(author, _text_parts(parts, kinds)) for author, parts in data.intermediate_responses]
        if kinds:
            unread += not_text(INTERMEDIATE, "", [kinds])
            responses = [(author, parts) for author, parts in said if parts]
            kept = data.model_copy(update={"intermediate_responses": responses})
    if not unread:
        return invocation
    return invocation.model_copy(
        update={
            "user_content": question,
            "final_response": answer,
            "intermediate_data": kept,
            "unread": list(dict.fromkeys([*(invocation.unread or ()), *unread])),
        }
    )


INTERMEDIATE = "intermediate response"
"""How sentences name a message between the question and the answer."""


def _text_message(message: Content | None, name: str, unread: list[str]) -> Content | None:
    if message is None or not message.parts:
        return message
    kinds: Counter[str] = Counter()
    parts = _text_parts(message.parts, kinds)
    if not kinds:
        return message
    kept = message.model_copy(update={"parts": parts}) if parts else None
    unread += not_text(name, kept.text if kept is not None else "", [kinds])
    return kept


def _text_parts(parts: list[Part], kinds: Counter[str]) -> list[Part]:
    """Returns the parts without those whose text is nothing but a data URL, which are counted by their kinds."""
    found = [data_url_kind(part.text) if part.text else "" for part in parts]
    if not any(found):
        return parts
    kinds.update(kind for kind in found if kind)
    return [part for part, kind in zip(parts, found, strict=True) if not kind]


def _response(response: FunctionResponse, unread: list[str]) -> FunctionResponse:
    found = read_result(response.response)
    if not found.unread:
        return response
    unread += not_text_of_result(response.name, found.value, found.unread)
    return response.model_copy(update={"response": found.value})


def _step(step: InvocationStep, unread: list[str]) -> InvocationStep:
    content = step.content
    if content is None or not any(part.function_response for part in content.parts or ()):
        return step
    parts = [_part(part, unread) for part in content.parts or ()]
    return step.model_copy(update={"content": content.model_copy(update={"parts": parts})})


def _part(part: Part, unread: list[str]) -> Part:
    if part.function_response is None:
        return part
    return part.model_copy(update={"function_response": _response(part.function_response, unread)})
