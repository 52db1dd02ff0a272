"""Takes the reasoning of a model out of its messages: parts of certain kinds, and text as open models write it."""

from __future__ import annotations

import re

REASONING_KINDS = frozenset(
    {
        *("thinking", "redacted_thinking", "reasoning", "reasoning_text", "thought"),
        # Of Bedrock.
        "reasoningContent",
        # What a model notes for itself of a conversation that becomes too long.
        "compaction",
    }
)
"""The types of parts of a message that are reasoning, of all providers. Gemini marks a part with `thought` instead."""
_MARKS = (
    (r"<(?P<mark>think|thinking|thought|reasoning|seed:think)>", r"</(?P=mark)>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    # The channels of gpt-oss.
    (r"(?:<\|start\|>assistant)?<\|channel\|>analysis<\|message\|>", r"<\|channel\|>final<\|message\|>"),
)
"""What open models write before and after their reasoning."""
_BLOCKS = re.compile(
    r"\A(?:\s*(?:" + "|".join(rf"{begin}.*?(?:{end}|\Z)" for begin, end in _MARKS) + r"))+\s*", re.DOTALL
)
_END_OF_CHANNEL = re.compile(r"<\|(?:return|end)\|>\s*\Z")
_REST_OF_BLOCK = re.compile(r"\A(?:(?!<think).)*?</(?:think|thinking)>[ \t]*\n\s*", re.DOTALL)
"""Some chat templates put the opening mark into the prompt. The closing one then ends its line."""


def without_reasoning(text: str) -> str:
    """Returns the answer in a text that begins with the reasoning of a model; any other text unchanged.

    >>> without_reasoning("<think>Norway...</think>Oslo."), without_reasoning("Write <think> first.")
    ('Oslo.', 'Write <think> first.')
    >>> without_reasoning("Norway, so...\\n</think>\\n\\nOslo."), without_reasoning("<think>cut off")
    ('Oslo.', '')
    >>> without_reasoning("<|channel|>analysis<|message|>Norway...<|end|><|channel|>final<|message|>Oslo.<|return|>")
    'Oslo.'
    >>> without_reasoning("Thoughts end with </think> and an answer follows.")
    'Thoughts end with </think> and an answer follows.'
    """
    answer = _BLOCKS.sub("", text, count=1)
    if answer == text:
        return _REST_OF_BLOCK.sub("", text) if "</think" in text else text
    return _END_OF_CHANNEL.sub("", answer)
