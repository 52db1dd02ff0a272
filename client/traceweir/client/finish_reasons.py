"""Says that a model ended before it had written its whole answer, in the words of Traceweir's readers of spans and files."""

from __future__ import annotations

from traceweir.client.json_values import short_text

_LIMIT = "max_tokens"
_OTHERS = ("safety", "recitation", "blocklist", "prohibited_content", "spii", "content_filter")
_MAX_CHARS = 60


def not_whole(answer: str, reason: object) -> str:
    """Returns the sentence about an answer that the model has not written to its end; empty about any other.

    Args:
        answer: The text of the answer; empty if there is none.
        reason: Why the model ended: a member or the name of a member of google.genai's `FinishReason`.

    >>> not_whole("It is", "MAX_TOKENS")
    "not all of the answer is there: the model stopped at its limit 'MAX_TOKENS'"
    >>> not_whole("", "SAFETY"), not_whole("It is 7.", "STOP")
    ("the answer is not there: the model stopped because of 'SAFETY'", '')
    """
    name = short_text(getattr(reason, "value", reason), _MAX_CHARS)
    word = name.lower()
    if word != _LIMIT and word not in _OTHERS:
        return ""
    part = "not all of the answer is there" if answer else "the answer is not there"
    return f"{part}: the model stopped {'at its limit' if word == _LIMIT else 'because of'} {name!r}"
