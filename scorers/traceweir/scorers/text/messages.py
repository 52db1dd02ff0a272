"""The two texts that a metric of Mastra's compares: what the user said, and the final response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import JsonValue

from traceweir.schemas.invocation import Content
from traceweir.scorers.base import MissingInput, Subject

Compat = Literal["mastra"] | None
"""Whose numbers to give: those of @mastra/evals 1.10, or ours, in which a text may be of any script."""

SHOWN_WORDS = 100
SHOWN_CHARACTERS = 60


def question_and_answer(subject: Subject, compat: Compat) -> tuple[str, str]:
    """What the user said, and the final response; empty, if there is none. As in Mastra, only the last text part of a message counts.

    Without `compat` all of them do.

    Raises:
        Missing: there is no user content.
    """
    if subject.invocation is None or subject.invocation.user_content is None:
        raise MissingInput("the invocation has no user content to compare the final response with")
    return _text(subject.invocation.user_content, compat), _text(subject.invocation.final_response, compat)


def shown(words: Sequence[str]) -> list[JsonValue]:
    """As many words as fit a Score, long ones cut.

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
