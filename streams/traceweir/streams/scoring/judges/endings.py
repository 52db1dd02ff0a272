"""Says why a model stopped before its answer was complete, by what the provider reports of the end."""

from __future__ import annotations

from typing import Any, NamedTuple

from traceweir.schemas.score import Cause

_LENGTH = ("length", "max_tokens")
_FILTERED = ("content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal")
"""Reasons of OpenAI, Anthropic and Gemini, in lower case, as litellm passes them on."""


class Stopped(NamedTuple):
    """Why a model stopped before its answer was complete."""

    why: str
    """The reason and the way out, as the end of a sentence about the model."""
    cause: Cause


def why_stopped(
    reason: object, message: Any, usage: Any, output_tokens: int, limit: object, setting: str
) -> Stopped | None:
    """Returns why an answer is not complete.

    Args:
        reason: `finish_reason` of the answer.
        message: The message of the answer.
        usage: What the provider says of the tokens.
        output_tokens: Number of tokens of the answer.
        limit: The longest answer, in tokens.
        setting: The setting of the config that says so.

    Returns:
        None if the provider says nothing of the kind.
    """
    word = reason.lower() if isinstance(reason, str) else ""
    if word in _LENGTH:
        reasoning = count(getattr(usage, "completion_tokens_details", None), "reasoning_tokens")
        spent = f"; {reasoning} of {output_tokens} tokens were reasoning" if reasoning else ""
        return Stopped(f"was cut off at {limit} tokens{spent}: raise {setting}", "judge_truncated")
    # litellm keeps the field `refusal` of OpenAI's message among the fields that only some providers have.
    if (getattr(message, "provider_specific_fields", None) or {}).get("refusal"):
        return Stopped(
            "refused to answer: ask another model, or leave this criterion out for such sessions", "judge_refused"
        )
    if word in _FILTERED:
        return Stopped(
            f"was stopped by its provider's filter ({word}): loosen the filter of the judge, or ask another model",
            "judge_refused",
        )
    if getattr(message, "tool_calls", None):
        return Stopped("called a tool in place of an answer: use a model that answers with text", "judge_unparsable")
    thoughts = getattr(message, "reasoning_content", None)
    if isinstance(thoughts, str) and thoughts.strip() and not getattr(message, "content", None):
        return Stopped(
            f"sent {len(thoughts):,} characters of reasoning and no answer: set the reasoning parser of its server that fits "
            "the model, or none",
            "judge_unparsable",
        )
    return None


def count(holder: Any, name: str) -> int:
    """Returns a number of tokens under a name; 0 if there is none."""
    found = getattr(holder, name, 0)
    return found if isinstance(found, int) and found > 0 else 0
