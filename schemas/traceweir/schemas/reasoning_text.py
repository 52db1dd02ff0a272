"""Takes the reasoning of a model out of its messages: parts of certain kinds, and text as open models write it."""

from __future__ import annotations

import re

REASONING_KINDS = frozenset(
    {
        *("thinking", "redacted_thinking", "reasoning", "reasoning_text", "thought"),
        # Of Bedrock.
        "reasoningContent",
    }
)
"""The types of parts of a message that are reasoning, of all providers. Gemini marks a part with `thought` instead."""
_BLOCKS = re.compile(r"\A(?:\s*<(?P<mark>think|thinking)>.*?(?:</(?P=mark)>|\Z))+\s*", re.DOTALL)
_REST_OF_BLOCK = re.compile(r"\A(?:(?!<think).)*?</(?:think|thinking)>[ \t]*\n\s*", re.DOTALL)
"""Some chat templates put the opening mark into the prompt. The closing one then ends its line."""


def without_reasoning(text: str) -> str:
    """Returns the answer in a text that begins with the reasoning of a model; any other text unchanged.

    >>> without_reasoning("<think>Norway...</think>Oslo."), without_reasoning("Write <think> first.")
    ('Oslo.', 'Write <think> first.')
    >>> without_reasoning("Norway, so...\\n</think>\\n\\nOslo."), without_reasoning("<think>cut off")
    ('Oslo.', '')
    >>> without_reasoning("Thoughts end with </think> and an answer follows.")
    'Thoughts end with </think> and an answer follows.'
    """
    if "<think" not in text and "</think" not in text:
        return text
    answer = _BLOCKS.sub("", text)
    return _REST_OF_BLOCK.sub("", text) if answer == text else answer
