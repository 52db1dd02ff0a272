"""Reads the question and the answer of an invocation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from traceweir.streams.intake.spans.conventions import hooks_of, keys_of, sources_of
from traceweir.streams.intake.spans.conventions.source import Rank, Source, read_all
from traceweir.streams.intake.spans.dialects import input_messages
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.model_calls import ModelCall, last_of
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.span_events import event_fields, named_events
from traceweir.streams.intake.spans.texts_in_values import chat_text, newest_user_text
from traceweir.streams.intake.spans.tree import Node
from traceweir.streams.intake.spans.turns import TurnSpans

_QUESTIONS = sources_of(lambda each: each.questions)
_ALL_ANSWERS = sources_of(lambda each: each.answers)
_ANSWERS = tuple(source for source in _ALL_ANSWERS if source.rank < Rank.REST)
_LAST_ANSWERS = tuple(source for source in _ALL_ANSWERS if source.rank is Rank.REST)
_AGENT_TEXTS = sources_of(lambda each: each.agent_texts)
_HISTORIES = keys_of(lambda each: each.histories)
_REACT = re.compile(r"\s*Thought:.*?\n(?:Final )?Answer:(.*)\Z", re.DOTALL)
_PADDING = "".join(keys_of(lambda each: each.answer_padding))
_ARE_PROTOCOL = hooks_of(lambda each: each.is_protocol)


def question_of(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the user's question; empty if the spans do not have it."""
    if not turn.bare:
        for node in _outermost(turn):
            if found := _told(node.span, _QUESTIONS):
                return found
            if "gen_ai.input.messages" in node.span.attributes or (node.kind == "workflow" and node.span.events):
                found = newest_user_text(input_messages(node.span))
                if found:
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
    return ""


def _outermost(turn: TurnSpans, *, last: bool = False) -> Iterable[Node]:
    """Yields the outermost spans, and below them the first agents or workflows: the frames of the same request.

    Args:
        turn: The spans of the invocation.
        last: Whether to take those that end last: of several agents one after the other, the last one answers.
    """
    for root in turn.roots:
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


def _is_frame(node: Node) -> bool:
    return all(child.kind not in ("llm", "tool") for child in node.children)


def _told(span: Span, sources: tuple[Source, ...]) -> str:
    text: str
    for text in read_all(span, sources):
        # JSON of nothing, as of a function that returns nothing.
        if text and text != "null":
            return text
    return ""


def given_answer(turn: TurnSpans, models: Sequence[ModelCall]) -> str:
    """Returns the answer to the user that the outermost spans have; empty if they do not have it."""
    for node in () if turn.bare else _outermost(turn, last=True):
        found = _told(node.span, _ANSWERS)
        found = found or (_told(node.span, _AGENT_TEXTS) if node.kind == "agent" else "")
        if found := found or _told(node.span, _LAST_ANSWERS):
            return found
        if "gen_ai.output.messages" in node.span.attributes:
            messages = read_messages(node.span.attributes["gen_ai.output.messages"], "assistant")
            if messages and messages[-1].text and not messages[-1].calls:
                return _as_written(messages[-1].text, models)
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
    return ""


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
