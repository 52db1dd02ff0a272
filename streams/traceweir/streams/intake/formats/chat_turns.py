"""Defines the messages of a chat transcript, and groups them into turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from traceweir.schemas.continued_invocations import APPROVED_IN_WORDS
from traceweir.schemas.continued_turns import TurnStep, turns_of_steps
from traceweir.schemas.figures import counted
from traceweir.schemas.finish_reasons import FAILED, INTERRUPTED, NOT_WHOLE, not_whole
from traceweir.schemas.part_kinds import counted_kinds, not_text
from traceweir.schemas.result_parts import not_text_of_result
from traceweir.schemas.text import printable
from traceweir.schemas.tool_results import is_pending
from traceweir.streams.intake.formats.chat_calls import ChatToolCall
from traceweir.streams.intake.formats.chat_times import NO_TIMES
from traceweir.streams.intake.formats.chat_usage import ModelUse

Role = Literal["user", "assistant", "tool"]
NO_ANSWER = (*NOT_WHOLE, FAILED)
"""The reasons of finishing of a text that is not the answer."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of the user, the agent or a tool."""

    role: Role
    text: str
    calls: tuple[ChatToolCall, ...] = ()
    are_parallel: bool = True
    """Whether the model asked for all calls at once; False if the message has results between them."""
    is_item: bool = field(default=False, compare=False)
    """Whether the format has a message for each call, so that the next one can have a further call of the same answer."""
    call_id: str | None = None
    """For the answer of a tool: the id of the call that it answers."""
    tool: str = ""
    """For the answer of a tool: the tool's name; empty if the transcript does not name the tool."""
    failed: bool = False
    """For the answer of a tool: whether the call failed."""
    at: datetime | None = None
    """When the message was written; None if it does not say it."""
    untimed: str = field(default=NO_TIMES, compare=False)
    """Why the message has no time that counts, if it has none."""
    unread: Counter[str] = field(default_factory=Counter)
    """How many parts of each kind could not be read."""
    notes_after: Counter[str] = field(default_factory=Counter, compare=False)
    """For the last message: how many notes of each kind stand after it in the name of the user."""
    is_note: bool = field(default=False, compare=False)
    """Whether a message of the user has nothing but what a coding agent writes in the user's name."""
    finish: str = field(default="", compare=False)
    """Why the model ended the message, in the words of its API; empty if unknown."""
    used: tuple[ModelUse, ...] = field(default=(), compare=False)
    """The model calls whose tokens the message tells."""
    missing: tuple[str, ...] = ()
    """What the source of the message does not have of its turn, a sentence for each part, as in an event."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A user message and all messages that belong to it: as a rule, those before the next user message."""

    question: ChatMessage | None
    """The user message; None for messages of the agent before the first user message."""
    messages: tuple[ChatMessage, ...]
    """The messages of the agent and of tools after the user message."""
    places: tuple[int, ...]
    """The place of the question, if there is one, and of each message in the transcript, from 0."""
    approved_in_words: bool = False
    """Whether a further message of the user let an open call of a tool go on."""

    @property
    def final(self) -> int | None:
        """The index of the agent's last text in `messages`, which is the final response; None without a whole one."""
        if self._finish in NO_ANSWER:
            return None
        with_text = [i for i, message in enumerate(self.messages) if message.role == "assistant" and message.text]
        return with_text[-1] if with_text else None

    @property
    def _finish(self) -> str:
        return next((each.finish for each in reversed(self.messages) if each.role == "assistant"), "")

    @property
    def missing(self) -> list[str]:
        """A sentence for each part of the turn that the transcript does not have, or that is no text."""
        found = []
        if self.question is not None:
            found += not_text("question", self.question.text, [self.question.unread])
        answers = [message for message in self.messages if message.role == "assistant"]
        found += not_text("answer", "".join(message.text for message in answers), (each.unread for each in answers))
        found += not_whole("" if self.final is None else "a text", self._finish)
        # The calls that an interrupted agent made are all there.
        if self._finish in NO_ANSWER and self._finish != INTERRUPTED:
            found += _not_whole_calls(answers[-1].calls, self._finish)
        found += _kept_as_text(call for message in answers for call in message.calls)
        for each in self.messages:
            if each.role == "tool":
                found += not_text_of_result(each.tool, each.text, each.unread)
        final = None if self.final is None else self.messages[self.final]
        if self.question is not None and final is not None and None in (self.question.at, final.at):
            found.append(final.untimed)
        if self.approved_in_words:
            found.append(APPROVED_IN_WORDS)
        stated = [self.question, *self.messages] if self.question else self.messages
        if notes := counted_kinds(each.notes_after for each in stated):
            found.append(f"the user's last message is no question ({notes})")
        return [*dict.fromkeys([*found, *(sentence for each in stated for sentence in each.missing)])]


def _not_whole_calls(calls: Sequence[ChatToolCall], finish: str) -> list[str]:
    """Returns the sentences about the calls of an answer that has no end."""
    cause = NOT_WHOLE.get(finish, "the model's provider has failed")
    lacks = f"the tool calls of a model's answer, which was cut off, are perhaps not all recorded: {cause}"
    return [
        # Of an answer that has failed, no further call was to come.
        *([lacks] if finish in NOT_WHOLE else ()),
        *(
            f"the arguments of the call of tool {printable(call.name, 80)!r} are not whole: {cause}"
            for call in calls
            if call.arguments is None
        ),
    ]


def _kept_as_text(calls: Iterable[ChatToolCall]) -> list[str]:
    """Returns a sentence for each tool with calls whose arguments are no JSON object."""
    tools = Counter(call.name for call in calls if call.kept_as_text)
    return [
        f"the arguments of {counted(number, 'call')} of tool {printable(tool, 80)!r} are no JSON object, and are kept as text"
        for tool, number in tools.items()
    ]


def turns_of(messages: Sequence[ChatMessage]) -> list[ChatTurn]:
    """Groups the messages into turns, in order.

    Each user message begins a turn. The late result of a tool belongs to the turn of its call, as `continued_turns` says.
    """
    number = 0
    steps = []
    for message in messages:
        is_question = message.role == "user"
        answered = (message.call_id,) if message.role == "tool" and message.call_id is not None else ()
        number += is_question
        steps.append(
            TurnStep(
                str(number),
                asks=is_question,
                says=message.role == "assistant" and bool(message.text),
                calls=[call.id for call in message.calls if call.id is not None],
                answers=answered,
                pending=answered if answered and is_pending(message.text) else (),
            )
        )
    groups: dict[str, list[int]] = {}
    for place, turn in enumerate(turns_of_steps(steps, named=False)):
        groups.setdefault(turn, []).append(place)
    return [_turn(messages, places) for places in groups.values()]


def _turn(messages: Sequence[ChatMessage], places: Sequence[int]) -> ChatTurn:
    asked = [place for place in places if messages[place].role == "user"]
    others = [place for place in places if messages[place].role != "user"]
    return ChatTurn(
        messages[asked[0]] if asked else None,
        tuple(messages[place] for place in others),
        (*asked[:1], *others),
        approved_in_words=len(asked) > 1,
    )
