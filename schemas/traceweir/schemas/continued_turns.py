"""Finds the turn of each step of a session where an approval or a late response continues an earlier turn.

The rules are those of all sources: events on topics, saved sessions of Google ADK, and chat transcripts.

- A turn without a question that answers a call of an earlier turn continues that turn: the user has approved a call, or
  the response of a long-running tool has come.
- So does a turn whose question is followed by the response to an open call, before the agent has said or done anything
  else, if the agent had said nothing after that call: the user has approved in words.
- So does a turn that repeats the question and all calls of an earlier turn, after which nothing had come there: its
  source has a turn for each call of a model, which reads again what came before.
- Any other late response alone belongs to the turn of its call, if a call of that turn still waits for a response, or if
  the response before only said that the final one comes later. In a source without names of turns, it always does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple


class TurnStep(NamedTuple):
    """A message or an event, as far as it decides about turns."""

    turn: str
    """The turn in which the source has the step."""
    asks: bool = False
    """Whether the user says something, other than the answer to a call."""
    says: bool = False
    """Whether the agent says something to the user."""
    calls: Collection[str] = ()
    """Ids of the calls that the step makes."""
    answers: Collection[str] = ()
    """Ids of the calls to which the step has the response or the approval."""
    pending: Collection[str] = ()
    """Ids of those answered calls whose final response is still to come, as the step says."""
    alone: bool = False
    """Whether the step never lets its whole turn continue another one."""
    begins: bool = True
    """Whether the source can only have this step in a turn whose beginning it knows."""
    responds: bool = False
    """Whether the step is a response to a call, also one without an id."""
    content: str = ""
    """The question, or the call with its id, name and arguments, by which a repetition is known; empty if unknown."""


def turns_of_steps(steps: Sequence[TurnStep], *, named: bool = True) -> list[str]:
    """Returns the turn to which each step belongs.

    Args:
        steps: The steps of a session, in order.
        named: Whether the source names the turns. Otherwise a step stands in the turn of the last question, and what the
            agent says after a late response belongs to the turn of that response, if it has answered the last question.

    >>> asked = [TurnStep("1", asks=True), TurnStep("1", calls=["c"])]
    >>> turns_of_steps([*asked, TurnStep("2", answers=["c"]), TurnStep("2", says=True)])
    ['1', '1', '1', '1']
    >>> turns_of_steps([*asked, TurnStep("2", asks=True), TurnStep("2", says=True), TurnStep("2", answers=["c"])])
    ['1', '1', '2', '2', '1']
    """
    if all(step.turn == steps[0].turn for step in steps):
        return [step.turn for step in steps]
    return _Turns(steps, named).found


class _Turns:
    def __init__(self, steps: Sequence[TurnStep], named: bool) -> None:
        self._named = named
        self._own_calls: dict[str, set[str]] = {}
        """The calls of each turn, also those after the step at hand."""
        for step in steps:
            self._own_calls.setdefault(step.turn, set()).update(step.calls)
        self._contents: dict[str, list[str]] = {}
        """The contents of the calls of each turn and of those that continue it, also after the step at hand."""
        for step in steps:
            if step.content and not step.asks:
                self._contents.setdefault(step.turn, []).append(step.content)
        self._questions: dict[str, str] = {}
        """The turn that asked each question last."""
        self._ends_with_call: set[str] = set()
        """Turns after whose last call nothing has come."""
        self._begins = {step.turn for step in steps if step.begins}
        self._asked = {step.turn for step in steps if step.asks}
        """The turns with a question, also those after the step at hand."""
        self._called_in: dict[str, str] = {}
        """The turn of each call so far."""
        self._continued: dict[str, str] = {}
        """The turn that a turn continues."""
        self._begun: set[str] = set()
        """Turns in which the agent has said or done something."""
        self._said: set[str] = set()
        """Turns in which the agent has said something after its last call."""
        self._open: dict[str, set[str]] = {}
        """The calls without a response of each turn."""
        self._pending: dict[str, set[str]] = {}
        """The calls of each turn whose final response is still to come."""
        # The first steps of a turn stand before the step that shows that the turn continues another one.
        self.found = [self._whole(turn) for turn in self._each(steps)]

    def _each(self, steps: Sequence[TurnStep]) -> list[str]:
        found = []
        follows = ""
        for step in steps:
            if step.asks:
                follows = ""
            own = self._whole(step.turn)
            repeated = self._repeated(step, own)
            earlier = repeated or self._earlier(step, own)
            if repeated is not None:
                self._continued[own] = repeated
                self._contents[repeated] = self._contents[own]
            elif earlier is not None and self._continues(step, own, earlier):
                self._continued[own] = earlier
                self._contents.setdefault(earlier, []).extend(self._contents.get(own, ()))
            elif earlier is not None and not self._named and own in self._said and not self._open.get(own):
                follows = earlier
            turn = earlier or follows or own
            self._note(step, turn)
            found.append(turn)
        return found

    def _whole(self, turn: str) -> str:
        while turn in self._continued:
            turn = self._continued[turn]
        return turn

    def _repeated(self, step: TurnStep, own: str) -> str | None:
        """Returns the turn whose question and calls a turn repeats from its first step on; None if there is none."""
        turn = self._questions.get(step.content) if step.asks and step.content else None
        if turn is None or (turn := self._whole(turn)) == own or own in self._begun:
            return None
        contents = self._contents.get(turn, [])
        is_repeated = turn in self._ends_with_call and contents == self._contents.get(own, [])[: len(contents)]
        return turn if is_repeated else None

    def _earlier(self, step: TurnStep, own: str) -> str | None:
        for call_id in step.answers:
            called_in = self._called_in.get(call_id)
            if called_in is None or call_id in self._own_calls[step.turn]:
                continue
            turn = self._whole(called_in)
            # Named turns can use the same ids, and such a turn can lack its beginning or its call. If no call of the
            # earlier turn waits for a response, that is what happened, unless the turn begins without a question.
            begins_without_question = own not in self._asked and step.turn in self._begins
            if turn != own and (begins_without_question or not self._named or self._waits(turn, step)):
                return turn
        return None

    def _waits(self, turn: str, step: TurnStep) -> bool:
        """Returns whether a call of a turn waits for the response in a step."""
        return bool(self._open.get(turn)) or not self._pending.get(turn, set()).isdisjoint(step.answers)

    def _continues(self, step: TurnStep, own: str, earlier: str) -> bool:
        if step.alone or step.asks:
            return False
        if own not in self._asked:
            return True
        return own not in self._begun and earlier not in self._said and self._waits(earlier, step)

    def _note(self, step: TurnStep, turn: str) -> None:
        if step.asks and step.content:
            self._questions[step.content] = turn
        if step.content and not step.asks:
            self._ends_with_call.add(turn)
        elif step.says or step.answers or step.responds:
            self._ends_with_call.discard(turn)
        if step.says:
            self._said.add(turn)
        if step.says or step.calls or (step.answers and not step.asks):
            self._begun.add(turn)
        if step.calls:
            self._said.discard(turn)
            self._called_in.update(dict.fromkeys(step.calls, turn))
            self._open.setdefault(turn, set()).update(step.calls)
        self._open.get(turn, set()).difference_update(step.answers)
        if step.answers:
            pending = self._pending.setdefault(turn, set())
            pending.difference_update(step.answers)
            pending.update(step.pending)
