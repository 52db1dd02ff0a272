"""Finds the invocation to which each event of a session belongs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from traceweir.schemas.continued_invocations import responses_in
from traceweir.schemas.continued_turns import TurnStep, turns_of_steps
from traceweir.schemas.events import (
    InvocationCompleted,
    InvocationEvent,
    InvocationRecorded,
    InvocationStarted,
    ResponseIntermediate,
    ToolCalled,
    ToolReturned,
)
from traceweir.schemas.invocation import Content

QUESTION_OF_RUN_BEFORE = "the question is that of the run before"
"""How the sentence in `missing` begins with which a start says that its invocation goes on after a person."""
_ANONYMOUS = "\0"
"""How the name of an invocation without an id begins: the ids of senders do not start with a control character."""


class EventStep(NamedTuple):
    """An event, or a response in it that belongs to another invocation than the rest."""

    event: InvocationEvent
    name: str
    """The invocation in which the source has the event."""
    turn: str
    """The invocation to which it belongs."""
    answer: str | None
    """The id of the call whose response in the event is meant; None for the event."""

    @property
    def is_anonymous(self) -> bool:
        """Whether the invocation in which the source has the event has no id."""
        return self.name.startswith(_ANONYMOUS)


def event_steps(events: Sequence[InvocationEvent]) -> list[EventStep]:
    """Returns the events of a session with their invocations, without those that are no part of one.

    Args:
        events: The events that count, in order.
    """
    places: list[tuple[InvocationEvent, str, str | None]] = []
    steps: list[TurnStep] = []
    anonymous = 0
    latest = ""
    for event in events:
        if not event.of_invocation:
            continue
        name = event.invocation_id
        if not name:
            if not latest or isinstance(event, InvocationStarted | InvocationRecorded):
                anonymous += 1
                latest = f"{_ANONYMOUS}{anonymous}"
            name = latest
        latest = name
        for answer, step in _steps(event, name):
            places.append((event, name, answer))
            steps.append(step)
    return [
        EventStep(event, name, turn, answer)
        for (event, name, answer), turn in zip(places, turns_of_steps(steps), strict=True)
        if answer is None or turn != name
    ]


def _steps(event: InvocationEvent, name: str) -> Iterator[tuple[str | None, TurnStep]]:
    """Yields the step of an event, and before it those of responses that can belong to another invocation."""
    match event:
        case ToolCalled():
            yield None, TurnStep(name, calls=_known(event.call_id), begins=False)
        case ToolReturned():
            yield None, TurnStep(name, answers=_known(event.call_id), begins=False)
        case InvocationStarted():
            # A source can leave questions out, so a turn without one only goes on if its source says so.
            asks = not (_goes_on(event) or _is_answer(event.user_content))
            # Nothing but this invocation is compared with its reference, so it continues no earlier one.
            yield from _asking(event, TurnStep(name, asks=asks, says=asks and event.has_reference))
        case InvocationRecorded():
            yield from _recorded(event, name)
        case InvocationCompleted():
            says = event.final_response is not None and bool(event.final_response.text)
            yield None, TurnStep(name, says=says, begins=False)
        case ResponseIntermediate():
            yield None, TurnStep(name, says=bool(event.content.text), begins=False)
        case _:
            yield None, TurnStep(name, begins=False)


def _recorded(event: InvocationRecorded, name: str) -> Iterator[tuple[str | None, TurnStep]]:
    invocation = event.invocation
    if invocation is None or event.has_reference:
        yield None, TurnStep(name, asks=True, says=True)
        return
    question = invocation.user_content
    final = invocation.final_response
    step = TurnStep(
        name,
        asks=question is not None and not _is_answer(question),
        says=final is not None and bool(final.text),
        calls=[call.id for call in invocation.tool_uses if call.id],
    )
    yield from _asking(event, step)


def _asking(event: InvocationEvent, step: TurnStep) -> Iterator[tuple[str | None, TurnStep]]:
    """Yields the step of an event that can have responses to calls of other invocations."""
    late = [each.id for each in responses_in(event) if each.id and each.id not in step.calls]
    if not step.asks:
        yield None, step._replace(answers=late)
        return
    for call_id in dict.fromkeys(late):
        yield call_id, TurnStep(step.turn, answers=[call_id], alone=True)
    yield None, step


def _known(call_id: str | None) -> Collection[str]:
    return (call_id,) if call_id else ()


def _goes_on(event: InvocationStarted) -> bool:
    """Returns whether the source says that the invocation only goes on with an earlier one, after a person."""
    missing = event.missing or ()
    return event.user_content is None and any(each.startswith(QUESTION_OF_RUN_BEFORE) for each in missing)


def _is_answer(content: Content | None) -> bool:
    """Returns whether the user only answers calls of tools."""
    parts = content.parts if content is not None else None
    return bool(parts) and all(part.function_response is not None and not part.text for part in parts or ())
