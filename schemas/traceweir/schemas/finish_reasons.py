"""Reads why the answer of a model ended, as the APIs of all providers write it, and tells which answers were cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceweir.schemas.text import printable

CUT_OFF = "cut_off"
"""Why a stored answer has finished of whose stream pieces are missing; no provider gives this reason."""
MIXED = "mixed"
"""Why one has finished whose stream cannot be told from another one; no provider gives this reason."""
INTERRUPTED = "interrupted"
"""Why one has finished that the user has stopped, as a transcript says; no provider gives this reason."""
FAILED = "failed"
"""Why one has finished that its provider has ended with an error, which says so; no provider gives this reason."""
NOT_WHOLE: Mapping[str, str] = {
    CUT_OFF: "pieces of its stream are missing",
    MIXED: "pieces of another stream are mixed with its own",
    INTERRUPTED: "the user has interrupted it",
}
"""Why an answer, or a call of it, is not whole, by the reason of finishing."""
_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason")
_HOLDERS = (
    *("message", "kwargs", "data", "response_metadata", "generation_info", "generationInfo"),
    *("meta", "_meta", "delta", "choices", "candidates", "generations"),
)
"""The keys of the objects, or of lists of them, in which APIs and frameworks have the reason."""
_ANY = frozenset((*_KEYS, "status", *_HOLDERS))
_MAX_DEPTH = 5
_MAX_CHARS = 60
_LIMITS = frozenset(
    (
        *("length", "max_tokens", "max_output_tokens", "max_completion_tokens", "max_new_tokens", "max_length"),
        *("model_length", "model_context_window_exceeded", "token_limit"),
    )
)
"""The reasons why a model ends at a limit before it has written the whole answer."""
_OTHERS = frozenset(
    (
        *("incomplete", "content_filter", "content_filtered", "safety", "recitation", "prohibited_content"),
        *("blocklist", "spii", "error"),
    )
)
"""The other reasons why it does so."""


def finish_in(found: object, depth: int = 0) -> str:
    """Returns why an answer ended, from an answer, a choice or a message of any API; empty if it does not say so.

    Of several choices, the first one counts.

    >>> finish_in({"choices": [{"message": {"content": "It is"}, "finish_reason": "length"}]})
    'length'
    >>> finish_in({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}})
    'max_output_tokens'
    """
    if isinstance(found, list):
        found = found[0] if found else None
        if isinstance(found, list):
            found = found[0] if found else None
    # As of most messages: none of the keys is there.
    if not isinstance(found, Mapping) or depth > _MAX_DEPTH or _ANY.isdisjoint(found):
        return ""
    for key in _KEYS:
        reason = found.get(key)
        if reason and isinstance(reason, str):
            return reason
        if isinstance(reason, Mapping) and isinstance(word := reason.get("unified", reason.get("type")), str):
            # Version 7 of the AI SDK has its own word beside that of the provider.
            return word
    if found.get("status") == "incomplete":
        details: Any = found.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return reason if isinstance(reason, str) and reason else "incomplete"
    for key in _HOLDERS:
        inner = found.get(key)
        if isinstance(inner, dict | list) and (reason := finish_in(inner, depth + 1)):
            return reason
    return ""


def known_word(reason: str) -> str:
    """Returns a reason in the form in which it is compared: in lower case, without the name of an enumeration.

    >>> known_word("FinishReason.MAX_TOKENS"), known_word("content-filter")
    ('max_tokens', 'content_filter')
    """
    return reason.rpartition(".")[2].lower().replace("-", "_").removeprefix("finish_reason_")


def is_unfinished(reason: str) -> bool:
    """Returns whether a model that ended for this reason has not written the whole answer."""
    return known_word(reason) in _LIMITS | _OTHERS


def not_whole(answer: str, reason: str) -> list[str]:
    """Returns a sentence about an answer that was cut; none about any other.

    >>> not_whole("It is", "length"), not_whole("It is 7.", "stop")
    (["not all of the answer is there: the model stopped at its limit 'length'"], [])
    >>> not_whole("", "content_filter")
    ["the answer is not there: the model stopped because of 'content_filter'"]
    >>> not_whole("", CUT_OFF)
    ['the answer is not whole: pieces of its stream are missing']
    """
    if reason in NOT_WHOLE:
        return [f"the answer is not whole: {NOT_WHOLE[reason]}"]
    if not is_unfinished(reason):
        return []
    cause = "at its limit" if known_word(reason) in _LIMITS else "because of"
    part = "not all of the answer is there" if answer else "the answer is not there"
    return [f"{part}: the model stopped {cause} {printable(reason, _MAX_CHARS)!r}"]
