"""Tells which tool calls of a transcript a model asked for in one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceweir.streams.intake.formats.chat_turns import ChatMessage


def parallel_answers(messages: Sequence[ChatMessage]) -> dict[int, str]:
    """Returns the ids of the model's answers that ask for several calls, by the places of their messages.

    A message is an answer. Where each call is an item of its own, the answer goes on until a result of a tool, a message of
    the user or one with calls that is no item.
    """
    number = 0
    answers: dict[int, int] = {}
    calls: Counter[int] = Counter()
    for place, message in enumerate(messages):
        is_answer = message.role == "assistant" and message.are_parallel
        is_item = is_answer and (message.is_item or not message.calls)
        number += not is_item
        if is_answer:
            answers[place] = number
            calls[number] += len(message.calls)
            # The next message cannot continue one that has all its calls.
            number += not is_item
    return {place: f"answer-{answer}" for place, answer in answers.items() if calls[answer] > 1}
