"""Returns the two texts that Mastra's metrics compare: the user's message and the final response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from traceweir.schemas.invocation import Content
from traceweir.scorers.base import MissingInput, Subject, invocation_of, require_read

Compat = Literal["mastra"] | None
"""The implementation whose values a metric reproduces: @mastra/evals 1.10, or Traceweir's own for any script."""

SHOWN_WORDS = 100
SHOWN_CHARACTERS = 60


def question_and_answer(subject: Subject, compat: Compat) -> tuple[str, str]:
    """Returns the user's message and the final response; a missing response is empty.

    With `compat: "mastra"` only the last text part of a message counts, as in Mastra; without `compat` all text parts
    count.

    Raises:
        MissingInput: there is no user content, or the response is missing because its source recorded no content.
    """
    invocation = invocation_of(subject)
    if invocation.user_content is None:
        require_read(invocation, "question")
    if invocation.final_response is None:
        require_read(invocation, "answer")
    if invocation.user_content is None:
        raise MissingInput("the invocation has no user content to compare the final response with")
    return _text(invocation.user_content, compat), _text(invocation.final_response, compat)


def shown(words: Sequence[str]) -> list[JsonValue]:
    """Returns at most 100 words, with words of more than 60 characters truncated, so that they fit in a Score.

    >>> shown(["a", "b" * 61]) == ["a", "b" * 59 + "…"]
    True
    """
    return [
        word if len(word) <= SHOWN_CHARACTERS else word[: SHOWN_CHARACTERS - 1] + "…" for word in words[:SHOWN_WORDS]
    ]


def _text(content: Content | None, compat: Compat) -> str:
    if content is None:
        return ""
    if compat is None:
        return content.text
    return next((part.text for part in reversed(content.parts or ()) if part.text is not None), "")
