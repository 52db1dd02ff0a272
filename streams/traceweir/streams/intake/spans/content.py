"""Reads the question and the answer of an invocation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traceweir.streams.intake.spans.conventions import hooks_of, keys_of
from traceweir.streams.intake.spans.dialects import input_messages
from traceweir.streams.intake.spans.frame_content import answer_on, finish_on, last_message_on, question_on
from traceweir.streams.intake.spans.interrupts import repeats_question, resumption_on
from traceweir.streams.intake.spans.message import newest_turn
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.model_calls import ModelCall, last_of
from traceweir.streams.intake.spans.span_events import event_fields, named_events
from traceweir.streams.intake.spans.texts_in_values import chat_text, newest_user_text
from traceweir.streams.intake.spans.tree import Node
from traceweir.streams.intake.spans.turns import TurnSpans

_HISTORIES = keys_of(lambda each: each.histories)
_REACT = re.compile(r"\s*Thought:.*?\n(?:Final )?Answer:(.*)\Z", re.DOTALL)
_PADDING = "".join(keys_of(lambda each: each.answer_padding))
_HEARD = hooks_of(lambda each: each.heard)
_ARE_PROTOCOL = hooks_of(lambda each: each.is_protocol)


def question_of(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the user's question; empty if the spans do not have it."""
    if not turn.bare:
        for node in _outermost(turn):
            if found := question_on(node):
                return found
    for model in models:
        found = newest_user_text(model.inputs)
        if found:
            return found
        if any(node.span.cut_texts for node in model.nodes):
            # A later model can have the question of an agent to another one.
            break
    for node in _outermost(turn):
        found = newest_user_text(input_messages(node.span))
        if found:
            return found
        for key in _HISTORIES:
            found = newest_user_text(read_messages(node.span.attributes.get(key)))
            if found:
                return found
    spans = [node.span for node in turn.nodes]
    heard = next((found for tell in _HEARD if (found := tell(spans))), "")
    return heard or next((found for node in _agents_alone(turn, models) if (found := question_on(node))), "")


def resumption_of(turn: TurnSpans) -> str | None:
    """Returns what a person answered, if the invocation goes on with that; as `resumption_on`."""
    frames = _frames_of(turn, turn.roots[0])
    return next((found for node in frames if (found := resumption_on(node.span)) is not None), None)


def goes_on_with_question(turn: TurnSpans) -> bool:
    """Returns whether the invocation can go on with the question of a former one; as `repeats_question`."""
    return any(repeats_question(node.span) for node in _frames_of(turn, turn.roots[0]))


def reads_only_results(models: Sequence[ModelCall]) -> bool:
    """Returns whether the first model call reads the results of tools without the question and the calls before them."""
    inputs = [message for message in models[0].inputs if message.role != "system"] if models else []
    return bool(inputs) and all(message.results and not (message.calls or message.text) for message in inputs)


def began_with_question(turn: TurnSpans, models: Sequence[ModelCall]) -> bool:
    """Returns whether the agent began with the question that its first model call has read, and with no call after it."""
    root = turn.roots[0]
    question = question_on(root) if models and not turn.bare else ""
    if not question or question != newest_user_text(models[0].inputs):
        return False
    return not any(message.calls for message in newest_turn(input_messages(root.span)))


def _outermost(turn: TurnSpans, *, last: bool = False) -> Iterable[Node]:
    """Yields the outermost spans, and below them the first agents or workflows: the frames of the same request.

    Args:
        turn: The spans of the invocation.
        last: Whether to take those that end last: of several agents one after the other, the last one answers.
    """
    for root in turn.last_roots if last else turn.roots:
        yield from _frames_of(turn, root, last=last)


def _frames_of(turn: TurnSpans, root: Node, *, last: bool = False) -> Iterable[Node]:
    node: Node | None = root
    for _ in range(4):
        if node is None:
            break
        yield node
        # The agent inside a step without the spans above it works for another agent, whose span is lost.
        kinds = ("chain",) if turn.is_fragment else ("agent", "workflow", "chain")
        inner = [child for child in node.children if child.kind in kinds]
        inner = inner if _is_frame(node) else []
        if last:
            node = max(inner, key=lambda each: (each.span.end_ns, each.order), default=None)
        else:
            node = min(inner, key=lambda each: each.order, default=None)


def _agents_alone(turn: TurnSpans, models: Sequence[ModelCall]) -> list[Node]:
    """Returns the agents that work for no other one, in the order of their start; none if a span of a model call tells
    what they were asked and answered.
    """
    if turn.bare or turn.is_fragment or any(model.nodes[0].kind == "llm" for model in models):
        return []
    return [node for node in turn.nodes if node.kind == "agent" and not _works_for_another(node)]


def _works_for_another(node: Node) -> bool:
    above = node.parent
    while above is not None and above.kind not in ("agent", "tool"):
        above = above.parent
    return above is not None


def _is_frame(node: Node) -> bool:
    return all(child.kind not in ("llm", "tool") for child in node.children)


def given_answer(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the answer to the user that the outermost spans have; empty if they do not have it."""
    for node in () if turn.bare else _outermost(turn, last=True):
        if found := answer_on(node) or last_message_on(node):
            return _as_written(found, models)
    return ""


def written_answer(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the answer to the user that the last model wrote as a text; empty if the spans do not have it."""
    last = last_of(models)
    if last is not None and (last.is_cut or (turn.bare and last.calls)):
        return ""
    answering = [model for model in models if model.text and not model.calls]
    if answering:
        return bare_answer(max(answering, key=lambda model: (model.end_ns, model.start_ns)).text)
    for node in _outermost(turn, last=True):
        for event in named_events(node.span, "gen_ai.choice"):
            text = read_message({**event_fields(event), "event.name": "gen_ai.choice"}, "assistant").text
            if text:
                return text.rstrip(_PADDING)
    agents = sorted(_agents_alone(turn, models), key=lambda node: (node.span.end_ns, node.order))
    return (answer_on(agents[-1]) or last_message_on(agents[-1])) if agents else ""


def finish_of(turn: TurnSpans) -> str:
    """Returns why the answer ended, as the outermost spans say it; empty if they do not."""
    return next((found for node in _outermost(turn, last=True) if (found := finish_on(node))), "")


def bare_answer(text: str) -> str:
    """Returns the answer in a text that thinks aloud as the prompt of a ReAct agent demands, or that is the only field of
    an object of a chat; any other text unchanged.

    >>> bare_answer("Thought: I know it.\\nFinal Answer: 42"), bare_answer("The answer: 42")
    ('42', 'The answer: 42')
    """
    found = _REACT.match(text)
    return found[1].strip() if found else chat_text(text)


def is_protocol(text: str) -> bool:
    """Returns whether a text of a model is only for the framework, which reads fields from it."""
    return any(tell(text) for tell in _ARE_PROTOCOL)


def _as_written(text: str, models: Sequence[ModelCall]) -> str:
    """Returns the text of the model to whose end the framework added something; else the text as it is."""
    bare = text.rstrip(_PADDING)
    return bare if any(model.text == bare for model in models) else text
