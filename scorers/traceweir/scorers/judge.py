"""The judge as scorers see it: a language model that is asked a question and answers with text.

A scorer writes the question and reads the answer. Which provider is asked, how often it is tried again, what it may cost and what is
remembered, is the business of whoever hands the judge in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from traceweir.schemas.score import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a judge is asked. Two equal questions may be given the same answer, out of a memory."""

    metric: str
    """The criterion that asks."""
    version: str
    """Of the criterion's scorer."""
    model: str
    """As the config names it: `gemini-2.5-flash`, `openai/gpt-4o-mini`."""
    prompt: str
    """The whole text. What came from agents and users stands in it delimited, as data."""
    answer: Mapping[str, JsonValue] | None = None
    """The JSON Schema of the answer that is wanted, for models that can keep to one; others answer as the prompt says."""
    sample: int = 0
    """Its number among the equal questions of one vote, from 0: only one of the same number is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the judge said, as it said it, and what that cost."""

    text: str
    cost: Cost


class Judge(Protocol):
    """Answers questions."""

    async def ask(self, question: Question) -> Reply:
        """Ask once.

        Raises:
            BudgetSpent: the answer would cost more than may be spent now.
            JudgeFailed: no answer could be had.
        """


class BudgetSpent(Exception):  # noqa: N818  # an outcome that the caller handles
    """What may be spent is spent; becomes NOT_EVALUATED `budget`."""


class JudgeFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """The judge could not be asked, or gave no answer; becomes NOT_EVALUATED `error`."""


class AnswerUnusable(JudgeFailed):
    """The judge answered, and no verdict is in what it said."""

    def __init__(self, message: str, cost: Cost) -> None:
        super().__init__(message)
        self.cost = cost
        """What the answers cost all the same."""
