"""Finds the invocation to which each event of a session belongs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
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
from traceweir.schemas.tool_results import is_pending

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

    Of an invocation that repeats the calls of the one that it continues, the repeated calls and responses are left out.

    Args:
        events: The events that count, in order.
    """
    named = named_events(events)
    may_repeat = _asks_twice(events)
    if all(name == named[0][1] for _, name in named) or not (may_repeat or _may_answer_earlier(named)):
        # Nearly all sessions are so, and the search would take a fifth of the time of scoring them without a judge.
        return [EventStep(event, name, name, None) for event, name in named]
    return searched_steps(named, may_repeat=may_repeat)


def searched_steps(named: Sequence[tuple[InvocationEvent, str]], *, may_repeat: bool) -> list[EventStep]:
    """Returns the steps of a session in which an invocation can continue or repeat an earlier one.

    Args:
        named: The events, each with the name of the invocation in which the source has it.
        may_repeat: Whether two invocations have the same question.
    """
    places: list[tuple[InvocationEvent, str, str | None]] = []
    steps: list[TurnStep] = []
    for event, name in named:
        for answer, step in _steps(event, name, may_repeat=may_repeat):
            places.append((event, name, answer))
            steps.append(step)
    found = [
        EventStep(event, name, turn, answer)
        for (event, name, answer), turn in zip(places, turns_of_steps(steps), strict=True)
        if answer is None or turn != name
    ]
    return _without_repetitions(found) if may_repeat else found


def named_events(events: Sequence[InvocationEvent]) -> list[tuple[InvocationEvent, str]]:
    """Returns the events that are a part of an invocation, each with the name under which the source has it."""
    found = []
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
        found.append((event, name))
    return found


def _asks_twice(events: Sequence[InvocationEvent]) -> bool:
    """Returns whether two invocations have the same question."""
    questions = [text for event in events if isinstance(event, InvocationStarted) and (text := _question_in(event))]
    return len(set(questions)) < len(questions)


def _may_answer_earlier(named: Sequence[tuple[InvocationEvent, str]]) -> bool:
    """Returns whether an invocation can have a response to a call that it has not made itself."""
    called = {(event.call_id, name) for event, name in named if isinstance(event, ToolCalled)}
    for event, name in named:
        if isinstance(event, ToolReturned):
            if event.call_id and (event.call_id, name) not in called:
                return True
        elif isinstance(event, InvocationStarted | InvocationRecorded) and any(responses_in(event)):
            return True
    return False


def _without_repetitions(steps: Sequence[EventStep]) -> list[EventStep]:
    """Leaves out the calls and the responses that an invocation repeats of the one that it continues."""
    asked: dict[str, str] = {}
    repeating: set[str] = set()
    known: defaultdict[str, Counter[str]] = defaultdict(Counter)
    of_part: defaultdict[str, Counter[str]] = defaultdict(Counter)
    kept = []
    for step in steps:
        question = _question_in(step.event) if isinstance(step.event, InvocationStarted) else ""
        if question and question == asked.setdefault(step.turn, question) and step.name != step.turn:
            repeating.add(step.name)
        content = _content_of(step.event) if isinstance(step.event, ToolCalled | ToolReturned) else ""
        if content:
            part = of_part[step.name]
            part[content] += 1
            if part[content] <= known[step.turn][content] and step.name in repeating:
                continue
            known[step.turn][content] += 1
        kept.append(step)
    return kept


def _question_in(event: InvocationStarted) -> str:
    """Returns the question by which a repetition is known.

    Nothing but an invocation with a reference is compared with that reference, so it continues no other one.
    """
    return "" if event.has_reference or event.user_content is None else event.user_content.text


def _content_of(event: ToolCalled | ToolReturned) -> str:
    """Returns what a call or a response has in common with its repetitions; empty if that cannot be compared."""
    said = event.args if isinstance(event, ToolCalled) else _lacks_result(event)
    try:
        return json.dumps([event.type, event.call_id, event.name, said], sort_keys=True)
    except RecursionError:
        return ""


def _lacks_result(event: ToolReturned) -> bool:
    """Returns whether an event only says that its source does not have the result, which a later run can have."""
    return event.response is None and event.error is None and bool(event.missing)


def _steps(event: InvocationEvent, name: str, *, may_repeat: bool) -> Iterator[tuple[str | None, TurnStep]]:
    """Yields the step of an event, and before it those of responses that can belong to another invocation."""
    match event:
        case ToolCalled():
            content = _content_of(event) if may_repeat else ""
            yield None, TurnStep(name, calls=_known(event.call_id), begins=False, content=content)
        case ToolReturned():
            answers = _known(event.call_id)
            is_open = _lacks_result(event) or (event.error is None and is_pending(event.response))
            pending = answers if is_open else ()
            yield None, TurnStep(name, answers=answers, pending=pending, begins=False, responds=True)
        case InvocationStarted():
            # A source can leave questions out, so a turn without one only goes on if its source says so.
            asks = not (_goes_on(event) or _is_answer(event.user_content))
            # Nothing but this invocation is compared with its reference, so it continues no earlier one.
            says = asks and event.has_reference
            yield from _asking(event, TurnStep(name, asks=asks, says=says, content=_question_in(event)))
        case InvocationRecorded():
            yield from _recorded(event, name)
        case InvocationCompleted():
            says = event.final_response is not None and bool(event.final_response.text)
            # An error ends what the turn has begun: asking again is a new turn.
            yield None, TurnStep(name, says=says, begins=False, responds=bool(event.error))
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
