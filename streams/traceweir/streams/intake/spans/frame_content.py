"""Reads the question and the answer that the span of an agent, a workflow or a step itself tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from traceweir.schemas.finish_reasons import finish_in
from traceweir.schemas.result_parts import data_url_kind
from traceweir.streams.intake.spans.attributes import structure
from traceweir.streams.intake.spans.conventions import keys_of, sources_of
from traceweir.streams.intake.spans.conventions.source import Rank, SourceTable
from traceweir.streams.intake.spans.dialects import input_messages, output_messages
from traceweir.streams.intake.spans.key_sets import KeyTable, keys_there
from traceweir.streams.intake.spans.message import SpanMessage, unread_question
from traceweir.streams.intake.spans.messages import read_message, read_messages
from traceweir.streams.intake.spans.printed_objects import PRINTED
from traceweir.streams.intake.spans.span import Span
from traceweir.streams.intake.spans.texts_in_values import is_printed, media_in, newest_user_text
from traceweir.streams.intake.spans.tree import Node

_INPUT = "gen_ai.input.messages"
_OUTPUT = "gen_ai.output.messages"
_ALL_QUESTIONS = sources_of(lambda each: each.questions)
_QUESTIONS = SourceTable(_ALL_QUESTIONS)
_ALL_ANSWERS = sources_of(lambda each: each.answers)
_ANSWERS = SourceTable(source for source in _ALL_ANSWERS if source.rank < Rank.REST)
_LAST_ANSWERS = SourceTable(source for source in _ALL_ANSWERS if source.rank is Rank.REST)
_ANSWER_KEYS = keys_there(dict.fromkeys(source.key for source in _ALL_ANSWERS))
_QUESTION_KEYS = dict.fromkeys(source.key for source in _ALL_QUESTIONS)
_QUESTION_KEYS_THERE = keys_there(_QUESTION_KEYS)
_ASKED_KEYS = keys_there((*_QUESTION_KEYS, *keys_of(lambda each: each.histories)))
_AGENT_TEXTS = SourceTable(sources_of(lambda each: each.agent_texts))


def question_on(node: Node) -> str:
    """Returns the question that a span tells; empty if it tells none."""
    if found := _text_in(node.span, _QUESTIONS):
        return found
    if _INPUT in node.span.attributes or (node.kind == "workflow" and node.span.events):
        return newest_user_text(input_messages(node.span))
    return ""


def answer_on(node: Node) -> str:
    """Returns the answer that a span tells outside of messages; empty if it tells none."""
    found = _text_in(node.span, _ANSWERS)
    found = found or (_text_in(node.span, _AGENT_TEXTS) if node.kind == "agent" else "")
    return found or _text_in(node.span, _LAST_ANSWERS)


def last_message_on(node: Node) -> str:
    """Returns the text of the last message that a span tells as its output; empty if there is none, or if it asks for tools."""
    if _OUTPUT not in node.span.attributes:
        return ""
    messages = read_messages(node.span.attributes[_OUTPUT], "assistant")
    return messages[-1].text if messages and not messages[-1].calls else ""


def unread_question_on(node: Node) -> Counter[str]:
    """Returns how many parts of each kind of the question that a span tells are no text: in its messages, or data URLs."""
    span = node.span
    if found := unread_question(input_messages(span)):
        return found
    of_values = ((media_in(value), unread_question(_messages(value))) for value in _values(span, _ASKED_KEYS))
    return next((found for each in of_values for found in each if found), Counter())


def unread_answer_on(node: Node) -> Counter[str]:
    """Returns how many parts of each kind of the answer that a span tells are no text: in its messages, or data URLs."""
    written = output_messages(node.span)[-1:]
    if written and written[0].unread:
        return written[0].unread
    return next((found for value in _values(node.span, _ANSWER_KEYS) if (found := media_in(value))), Counter())


def printed_on(node: Node, part: str) -> Counter[str]:
    """Returns one part if the question or the answer that a span tells is an object as Python prints it."""
    keys = _QUESTION_KEYS_THERE if part == "question" else _ANSWER_KEYS
    return Counter([PRINTED] if any(is_printed(part, value) for value in _values(node.span, keys)) else [])


def _values(span: Span, keys: KeyTable[tuple[str, ...]]) -> Iterator[Any]:
    return map(span.attributes.__getitem__, keys.of(span.key_set))


def _messages(value: Any) -> list[SpanMessage]:
    """Returns the messages in a value; none if it is no list of messages, nor an object with one."""
    found = structure(value)
    found = found.get("messages") if isinstance(found, dict) else found
    are_messages = isinstance(found, list) and all(isinstance(each, dict) and "role" in each for each in found)
    return read_messages(found) if are_messages else []


def finish_on(node: Node) -> str:
    """Returns why the answer ended that is the last of the messages of a span's output; empty if they do not say it."""
    for found in _values(node.span, _ANSWER_KEYS):
        value = structure(found)
        messages = value.get("messages") if isinstance(value, dict) else None
        last = messages[-1] if isinstance(messages, list) and messages else None
        if isinstance(last, dict) and read_message(last).role == "assistant":
            return finish_in(last)
    return ""


def _text_in(span: Span, sources: SourceTable) -> str:
    text: str
    for text in sources.read_all(span):
        # JSON of nothing, as of a function that returns nothing.
        if text and text != "null" and not data_url_kind(text):
            return text
    return ""
