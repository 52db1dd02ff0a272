"""Tells which tool calls a model asked for in one answer, as its spans tell them."""

from __future__ import annotations

from traceweir.streams.intake.spans.message import SpanMessage
from traceweir.streams.intake.spans.model_calls import ModelCall


def answers_of(model: ModelCall) -> list[str]:
    """Returns the id of the answer of each call in `all_calls`; empty if it is unknown.

    A model that answers with several items, such as those of the Responses API, writes each of them as a message. Of a
    span of several answers, each message is an answer.
    """
    span_id = model.nodes[0].span.span_id
    found = []
    number = 0
    for message in model.rounds:
        number += 1
        found += [answer_in(message, f"{span_id}:{number}")] * len(message.calls)
    for message in model.outputs:
        number += bool(model.earlier or message.results or message.role != "assistant")
        if message.role == "assistant":
            found += [answer_in(message, f"{span_id}:answer:{number}")] * len(message.calls)
    return found


def answer_in(message: SpanMessage, name: str) -> str:
    """Returns the name of the answer that a message is; empty if results lie between its calls."""
    return "" if message.results or any(call.hosted for call in message.calls) else name
