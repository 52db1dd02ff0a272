"""Takes out of the tool results of an invocation what is no text, and says so in the invocation."""

from __future__ import annotations

from traceweir.schemas.invocation import (
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
)
from traceweir.schemas.result_parts import has_media, not_text_of_result, read_result


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
