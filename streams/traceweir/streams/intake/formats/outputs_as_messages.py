"""Finds the outputs of tools that an agent writes as messages of the user, because its model calls tools in its texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from traceweir.streams.intake.formats.chat_turns import ChatMessage

_OUTPUT = re.compile(
    r"<returncode>-?\d+</returncode>|<function_results>|EXECUTION RESULT of \[|\[\w+(?: for '[^'\n]*')?\] Result:|OBSERVATION:\n"
)
"""How the messages of mini-SWE-agent, Claude's first form of tools, OpenHands, Cline and SWE-agent begin that have what a
tool returned."""
_OBSERVATION = re.compile(r"Observations?:")
_ACTION = re.compile(r"^(?:\*\*)?Action(?: Input)?:|^```|<code>", re.MULTILINE)
"""How a model asks for a tool in a text, to which an observation is the answer."""
_KIND = "output of a tool"
_MISSING = (
    "the tool calls are not known: the model calls tools in its texts, and their outputs stand in the name of the user"
)


def with_outputs_apart(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Returns messages without those of the user that have the output of a tool: they begin no turn, and are named.

    Such a message stands after a text of the model. An observation is only one after a text that asks for a tool.
    """
    found: list[ChatMessage] = []
    for message in messages:
        asking = next((each for each in reversed(found) if each.text), None)
        after_model = asking is not None and asking.role == "assistant" and found[-1].role == "assistant"
        text = message.text.lstrip() if message.role == "user" and after_model else ""
        is_answer = asking is not None and _OBSERVATION.match(text) and _ACTION.search(asking.text)
        if text and (_OUTPUT.match(text) or is_answer):
            message = ChatMessage("assistant", "", unread=Counter([_KIND]), at=message.at, missing=(_MISSING,))
        found.append(message)
    return found
