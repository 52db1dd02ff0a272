"""Divides what lasts a conversation into its turns: a step that brings a new message of the user begins a turn.

A framework can write a conversation as one trace, with a span around it that ends when the user leaves. The steps below
it are agents or model calls; those that go on with a message of the user belong to one turn.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.dialects import input_messages, output_messages
from traceweir.streams.intake.spans.frame_content import answer_on, last_message_on, question_on
from traceweir.streams.intake.spans.identity import agent_name
from traceweir.streams.intake.spans.key_sets import keys_there
from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.span_events import event_name
from traceweir.streams.intake.spans.texts_in_values import newest_user_place, newest_user_text
from traceweir.streams.intake.spans.tree import Node, below

_CONTENT = keys_there(keys_of(lambda each: each.contents))
_ARE_TURNS = hooks_of(lambda each: each.is_turn)
_EVENTS = "gen_ai."
"""Beginning of the names of events with messages."""
_REQUEST = ("http.", "rpc.", "messaging.")
"""Beginnings of the attributes of a span around one request, which brings one message of the user."""
_LOOP = re.compile(r"^[^\S\n]*(?:Thought|Action|Action Input):", re.MULTILINE)
"""The text of a model that asks for a tool in words; the result follows in the user's name."""
_MAX_COMPARED = 16
"""Maximum number of former steps with which a step is compared."""
_MAX_ABOVE = 16
"""Maximum number of spans above a model call that are looked at."""
_MIN_DERIVED_CHARS = 16
"""Minimum length of a message that is looked for in the texts of agents: shorter ones are in many texts."""


@dataclass(slots=True)
class SpanStep:
    """An outermost step of a trace, and which message of the user it serves."""

    node: Node
    asked: set[str] = field(default_factory=set)
    """The newest message of the user, as the step and its first model call tell it; empty if it is unknown."""
    questions_before: set[str] = field(default_factory=set)
    """The messages of the user before it that the first model call has read."""
    answers_before: set[str] = field(default_factory=set)
    """The texts of the agent before it that the first model call has read."""
    answer: str = ""
    """What the step answered; empty if it did not, or if it is unknown."""

    @classmethod
    def of(cls, node: Node) -> SpanStep:
        """Reads a step."""
        step = cls(node)
        frame = node.kind not in ("llm", "tool", "retriever")
        question = question_on(node) if frame else ""
        models = sorted((each for each in below([node]) if each.kind == "llm"), key=lambda each: each.order)
        messages = next((found for each in models if (found := input_messages(each.span))), [])
        step.asked = {text.strip() for text in (question, newest_user_text(messages)) if text.strip()}
        for message in messages[: max(newest_user_place(messages), 0)]:
            known = {"user": step.questions_before, "assistant": step.answers_before}.get(message.role)
            if known is not None and message.text:
                known.add(message.text.strip())
        step.answer = (answer_on(node) or last_message_on(node)) if frame else ""
        if not step.answer and models:
            last = max(models, key=lambda each: (each.span.end_ns, each.order))
            step.answer = _answer_in(output_messages(last.span))
        step.answer = step.answer.strip()
        return step

    def follows(self, former: SpanStep) -> bool:
        """Returns whether the step has read what a former one was asked and answered, before its own message."""
        has_read_question = not former.asked.isdisjoint(self.questions_before)
        has_read_answer = bool(former.answer) and former.answer in self.answers_before
        return has_read_question and (has_read_answer or not former.answer)


def _answer_in(messages: Sequence[SpanMessage]) -> str:
    return messages[-1].text if messages and not messages[-1].calls else ""


def goes_on(turn: Sequence[SpanStep], step: SpanStep) -> bool:
    """Returns whether a step goes on with the message of the user that the steps of a turn have served."""
    if turn[-1].asked.isdisjoint(step.asked):
        return False
    answered = [each for each in turn[-_MAX_COMPARED:] if each.answer]
    if any(each.answer in step.answers_before for each in answered):
        # The user has said the same again.
        return False
    if step.questions_before or step.answers_before:
        return True
    # Without a history, an agent that has answered is asked again.
    name = agent_name(step.node)
    return not any(each.node.kind == step.node.kind and agent_name(each.node) == name for each in answered)


def turns_below(root: Node, steps: Iterable[Node]) -> list[list[Node]]:
    """Returns the turns of the conversation that an outermost span lasts; a single one if it is no conversation.

    A span that tells a question of its own serves that question, whatever agents pass on to each other below it. So
    does an agent that works itself.

    Args:
        root: The outermost span.
        steps: The outermost steps below it.
    """
    nodes = sorted(steps, key=lambda node: node.order)
    is_agent = root.kind == "agent"
    if len(nodes) < 2 or _has_content(root) or (is_agent and any(node.kind != "agent" for node in nodes)):
        return [nodes]
    return _divided(nodes, needs_history=is_agent)


def turns_without_agent(nodes: Iterable[Node]) -> list[list[Node]]:
    """Returns the turns of model calls and tools without an agent around them."""
    ordered = sorted(nodes, key=lambda node: node.order)
    if sum(node.kind == "llm" for node in ordered) < 2 or any(map(_is_in_request, ordered)):
        return [ordered]
    return _divided(ordered, needs_history=True)


def _divided(nodes: Sequence[Node], *, needs_history: bool) -> list[list[Node]]:
    turns: list[list[Node]] = []
    of_turn: list[SpanStep] = []
    former = deque[SpanStep](maxlen=_MAX_COMPARED)
    for node in nodes:
        step = SpanStep.of(node)
        is_new = bool(of_turn) and bool(step.asked) and not goes_on(of_turn, step)
        if not turns or (is_new and _is_from_user(step, former, needs_history=needs_history or node.kind == "llm")):
            turns.append([])
            of_turn = []
        turns[-1].append(node)
        if step.asked:
            of_turn.append(step)
            former.append(step)
    return turns


def _is_from_user(step: SpanStep, former: Iterable[SpanStep], *, needs_history: bool) -> bool:
    """Returns whether the message of a step is one of the user, and none that an agent has passed on.

    The history that the model reads proves it. Without it, the user speaks after the others have ended, to an agent
    that has answered before, and does not say what an agent has said.
    """
    if any(step.follows(each) and not _LOOP.search(each.answer) for each in former):
        return True
    if needs_history or any(each.node.span.end_ns > step.node.span.start_ns for each in former):
        return False
    if any(_is_passed_on(text, each.answer) for text in step.asked for each in former):
        return False
    name = agent_name(step.node)
    return any(each.answer and agent_name(each.node) == name for each in former)


def _is_passed_on(text: str, answer: str) -> bool:
    """Returns whether a message says what an agent has said, or the agent has said it."""
    return min(len(text), len(answer)) >= _MIN_DERIVED_CHARS and (text in answer or answer in text)


def is_turn(node: Node) -> bool:
    """Returns whether a convention says that a span is a turn of a conversation, whose span lasts longer."""
    return any(tell(node.span) for tell in _ARE_TURNS)


def _has_content(root: Node) -> bool:
    if _CONTENT.of(root.span.key_set) or question_on(root):
        return True
    return any(event_name(event).startswith(_EVENTS) for event in root.span.events)


def _is_in_request(node: Node) -> bool:
    above = node.parent
    for _ in range(_MAX_ABOVE):
        if above is None:
            break
        if any(key.startswith(_REQUEST) for key in above.span.attributes):
            return True
        above = above.parent
    return False
