"""Says why a model stopped before its answer was complete, by what the provider reports of the end."""

from __future__ import annotations

from typing import Any, NamedTuple

from traceweir.schemas.score import Cause

_CUT_OFF = "length"
_FILTERED = "content_filter"
_OTHER_WORDS = {
    _CUT_OFF: (
        "max_tokens",
        "max_output_tokens",
        "max_completion_tokens",
        "max_length",
        "model_length",
        "model_context_window_exceeded",
        "error_limit",
    ),
    _FILTERED: (
        "content_filtered",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "refusal",
        "sensitive",
        "error_toxic",
        "guardrail_intervened",
    ),
}
"""OpenAI's words for why a model stopped, each with those of other providers and servers, in lower case."""
_USUAL = {other: usual for usual, others in _OTHER_WORDS.items() for other in (usual, *others)}


class Stopped(NamedTuple):
    """Why a model stopped before its answer was complete."""

    why: str
    """The reason and the way out, as the end of a sentence about the model."""
    cause: Cause


def usual_reason(reason: str) -> str:
    """Returns OpenAI's word for why a model stopped; a word of unknown meaning as it is.

    litellm takes a word that it does not know, also one in another case, for the end of a complete answer.

    >>> usual_reason("model_length"), usual_reason("Content_Filter: SAFETY"), usual_reason("eos")
    ('length', 'content_filter', 'eos')
    """
    return _USUAL.get(reason.partition(":")[0].strip().lower(), reason)


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
    word = usual_reason(reason) if isinstance(reason, str) else ""
    if word == _CUT_OFF:
        reasoning = count(getattr(usage, "completion_tokens_details", None), "reasoning_tokens")
        spent = f"; {reasoning} of {output_tokens} tokens were reasoning" if reasoning else ""
        return Stopped(f"was cut off at {limit} tokens{spent}: raise {setting}", "judge_truncated")
    # litellm keeps the field `refusal` of OpenAI's message among the fields that only some providers have.
    if (getattr(message, "provider_specific_fields", None) or {}).get("refusal"):
        return Stopped(
            "refused to answer: ask another model, or leave this criterion out for such sessions", "judge_refused"
        )
    if word == _FILTERED:
        return Stopped(
            f"was stopped by its provider's filter ({_FILTERED}): loosen the filter of the judge, or ask another model",
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
