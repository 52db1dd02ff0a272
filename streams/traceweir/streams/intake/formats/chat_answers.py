"""Tells which tool calls of a transcript a model asked for in one answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceweir.streams.intake.formats.openai_chat_messages import ChatMessage


def parallel_answers(messages: Sequence[ChatMessage]) -> dict[int, str]:
    """Returns the ids of the model's answers that ask for several calls, by the places of their messages.

    An answer goes on until a result of a tool or a message of the user: some formats have a message for each call.
    """
    number = 0
    answers: dict[int, int] = {}
    calls: Counter[int] = Counter()
    for place, message in enumerate(messages):
        if message.role == "assistant" and message.are_parallel:
            answers[place] = number
            calls[number] += len(message.calls)
        else:
            number += 1
    return {place: f"answer-{answer}" for place, answer in answers.items() if calls[answer] > 1}
