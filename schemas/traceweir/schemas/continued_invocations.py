"""Joins an invocation with one that continues it: an approval, or the late response of a tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TypeVar

from traceweir.schemas.events import InvocationEvent, InvocationRecorded, InvocationStarted, ToolReturned
from traceweir.schemas.invocation import (
    Content,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvents,
    InvocationStep,
    Part,
    TokenUsage,
    known_sum,
)

Item = TypeVar("Item")
APPROVED_IN_WORDS = "the message of the user that let an open call of a tool go on is no part of the question"


def continued_invocation(first: Invocation, later: Invocation) -> Invocation:
    """Returns an invocation with what happened in another one that continues it.

    The question is that of the first, and the answer the last one. Calls, responses, tokens, context and sentences about
    what is missing are those of both. If the later invocation failed, its error is that of the whole, which then has no
    answer but that of the later one. The latency is unknown unless the later invocation has neither an answer nor an
    error.

    Args:
        first: The invocation with the question and the call.
        later: The invocation that has the approval, or the response of the tool.
    """
    first = _without_answered(first, later)
    has_end = later.final_response is not None or later.error is not None
    interim = first.final_response if has_end else None
    unread = [each for each in first.unread or () if not (has_end and each.startswith("the answer "))]
    unread += [each for each in later.unread or () if not each.startswith("the question ") and each not in unread]
    asked = first.user_content.text if first.user_content is not None else ""
    if later.user_content is not None and later.user_content.text and first.user_content is not None:
        # A source with an invocation for each call of a model repeats the question.
        unread += [APPROVED_IN_WORDS] if later.user_content.text != asked else []
    first_tokens = first.reported_tokens or TokenUsage()
    later_tokens = later.reported_tokens or TokenUsage()
    tokens = TokenUsage(
        input_tokens=known_sum((first_tokens.input_tokens, later_tokens.input_tokens)),
        output_tokens=known_sum((first_tokens.output_tokens, later_tokens.output_tokens)),
    )
    return first.model_copy(
        update={
            "user_content": later.user_content if first.user_content is None else first.user_content,
            "final_response": later.final_response if has_end else first.final_response,
            "error": later.error if has_end else first.error,
            "intermediate_data": _joined(first, interim, later),
            "retrieved_context": _both(first.retrieved_context, later.retrieved_context),
            "token_usage": None if tokens == TokenUsage() else tokens,
            "inference_call_count": known_sum((first.model_calls, later.model_calls)),
            "latency_seconds": None if has_end else first.latency_seconds,
            "duration": _sum(first.duration, later.duration),
            "app_details": first.app_details or later.app_details,
            "rubrics": _both(first.rubrics, later.rubrics),
            "labels": _both(first.labels, later.labels),
            "unread": unread or None,
        }
    )


def _without_answered(first: Invocation, later: Invocation) -> Invocation:
    """Removes the missing results that the later invocation has, and the sentences about them."""
    data = first.intermediate_data
    if not isinstance(data, IntermediateData) or not any(each.response is None for each in data.tool_responses):
        return first
    answered = {each.id for each in later.tool_responses if each.id is not None and each.response is not None}
    kept = [each for each in data.tool_responses if each.response is not None or each.id not in answered]
    were_open = Counter(each.name for each in data.tool_responses if each.response is None)
    are_open = Counter(each.name for each in kept if each.response is None)
    unread = [*(first.unread or ())]
    for name, number in (were_open - are_open).items():
        about = [each for each in unread if each.startswith(f"the result of the call of tool {name!r} is not ")]
        # Calls of one tool have equal sentences, and one of them can stand for several calls.
        for each in about[: max(0, min(number, len(about) - are_open[name]))]:
            unread.remove(each)
    changes = {"intermediate_data": data.model_copy(update={"tool_responses": kept}), "unread": unread or None}
    return first.model_copy(update=changes)


def responses_in(event: InvocationEvent) -> Iterator[FunctionResponse]:
    """Yields the responses of tools in an event, those in the message of the user first."""
    match event:
        case ToolReturned():
            answer = event.response if event.error is None else {"error": event.error}
            yield FunctionResponse.trusted(id=event.call_id, name=event.name, response=answer)
        case InvocationStarted():
            yield from _responses_of(event.user_content)
        case InvocationRecorded() if event.invocation is not None:
            yield from _responses_of(event.invocation.user_content)
            data = event.invocation.intermediate_data
            if isinstance(data, InvocationEvents):
                for step in data.invocation_events:
                    yield from _responses_of(step.content)
            elif data is not None:
                yield from data.tool_responses


def without_responses(invocation: Invocation, call_ids: Collection[str]) -> Invocation:
    """Returns an invocation without the responses to some calls."""
    data = invocation.intermediate_data
    rest: IntermediateData | InvocationEvents | None = data
    if isinstance(data, InvocationEvents):
        steps = [
            step.model_copy(update={"content": _without(step.content, call_ids)}) for step in data.invocation_events
        ]
        rest = data.model_copy(update={"invocation_events": steps})
    elif data is not None:
        kept = [each for each in data.tool_responses if each.id not in call_ids]
        rest = data.model_copy(update={"tool_responses": kept})
    question = _without(invocation.user_content, call_ids)
    return invocation.model_copy(update={"user_content": question, "intermediate_data": rest})


def _without(content: Content | None, call_ids: Collection[str]) -> Content | None:
    if content is None or not content.parts:
        return content
    parts = [
        part for part in content.parts if part.function_response is None or part.function_response.id not in call_ids
    ]
    return content.model_copy(update={"parts": parts})


def _responses_of(content: Content | None) -> list[FunctionResponse]:
    parts = content.parts if content is not None else None
    return [part.function_response for part in parts or () if part.function_response is not None]


def _joined(first: Invocation, interim: Content | None, later: Invocation) -> IntermediateData | InvocationEvents:
    """Returns what happened in both invocations; as events if one of them has events."""
    said = [interim] if interim is not None and interim.text else []
    approvals = _responses_of(later.user_content)
    both = (first.intermediate_data, later.intermediate_data)
    if any(isinstance(data, InvocationEvents) for data in both):
        steps = [
            *_steps(first.intermediate_data),
            *(InvocationStep(content=content) for content in said),
            *(_step_of(Part(function_response=each), "user") for each in approvals),
            *_steps(later.intermediate_data),
        ]
        return InvocationEvents(invocation_events=steps)
    one = _grouped(first.intermediate_data)
    other = _grouped(later.intermediate_data)
    return IntermediateData.trusted(
        tool_uses=[*one.tool_uses, *other.tool_uses],
        tool_responses=[*one.tool_responses, *approvals, *other.tool_responses],
        intermediate_responses=[
            *one.intermediate_responses,
            *(("", [part for part in content.parts or () if part.text]) for content in said),
            *other.intermediate_responses,
        ],
    )


def _grouped(data: IntermediateData | InvocationEvents | None) -> IntermediateData:
    return data if isinstance(data, IntermediateData) else IntermediateData()


def _steps(data: IntermediateData | InvocationEvents | None) -> list[InvocationStep]:
    """Returns the events of intermediate data; of data that is grouped by kind, calls come before responses."""
    if isinstance(data, InvocationEvents):
        return list(data.invocation_events)
    if data is None:
        return []
    return [
        *(_step_of(Part(function_call=each)) for each in data.tool_uses),
        *(_step_of(Part(function_response=each)) for each in data.tool_responses),
        *(
            InvocationStep(author=author, content=Content(parts=parts, role="model"))
            for author, parts in data.intermediate_responses
        ),
    ]


def _step_of(part: Part, role: str | None = None) -> InvocationStep:
    return InvocationStep(content=Content(parts=[part], role=role))


def _both(first: list[Item] | None, later: list[Item] | None) -> list[Item] | None:
    return None if first is None and later is None else [*(first or ()), *(later or ())]


def _sum(first: float | None, later: float | None) -> float | None:
    known = [each for each in (first, later) if each is not None]
    return sum(known) if known else None
