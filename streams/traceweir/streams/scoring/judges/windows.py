"""Knows how long a prompt can be for a model, and counts its tokens before anything is paid."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from traceweir.schemas.judge_config import JudgeConfig
from traceweir.scorers.judge import Room
from traceweir.streams.scoring.judges.models import OVERHEAD_TOKENS

OTHER_TOKENIZERS = 1.1
"""How many times as many tokens as the counted ones are expected, because litellm counts with a tokenizer of OpenAI."""


def longest_prompt(config: JudgeConfig, model: str, known: Mapping[str, object], answer: int) -> int | None:
    """Returns the most tokens of a prompt that leave room for the longest answer; None if the window is unknown.

    Args:
        config: Windows by litellm's name of the model, which take precedence.
        model: litellm's name of the model.
        known: litellm's information about the model.
        answer: The most tokens of an answer.
    """
    if (window := config.window_tokens.get(model)) is not None:
        return window - answer
    window_of_provider = known.get("max_input_tokens")
    if not isinstance(window_of_provider, int):
        return None
    longest = known.get("max_output_tokens")
    # Some providers count the answer apart. At least half of the window is left: the limit of an answer can be larger.
    reserved = min(answer, longest) if isinstance(longest, int) else answer
    return window_of_provider - min(reserved, window_of_provider // 2)


async def room_in(litellm: Any, model: str, prompt: str, limit: int) -> Room:
    """Returns the room of a prompt: its bytes if they fit, because no token has less than one, else its tokens."""
    most = len(prompt.encode("utf-8", "replace")) + OVERHEAD_TOKENS
    if most <= limit:
        return Room(most, limit)
    # In a thread: a long prompt takes tenths of a second.
    counted = await asyncio.to_thread(litellm.token_counter, model=model, text=prompt)
    return Room(int(counted * OTHER_TOKENIZERS) + OVERHEAD_TOKENS, limit)
