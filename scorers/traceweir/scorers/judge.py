"""Defines the judge protocol of the scorers: a language model that answers a question with text.

A scorer writes the question and reads the reply. The caller who provides the judge decides about the provider, the
retries, the budget and stored verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import JsonValue

from traceweir.schemas.score import Cause, Cost

SCORE_ENDS_AT_S: ContextVar[float | None] = ContextVar("score_ends_at_s", default=None)
"""Time of the event loop at which the score that is computed becomes NOT_EVALUATED `timeout`; None: at no time.

A judge starts no further attempt that can end after it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Holds a question to a judge. A judge can answer equal questions with the same stored reply."""

    metric: str
    """Name of the criterion that asks."""
    version: str
    """Version of the criterion's scorer."""
    model: str
    """Name of the judge model, as in the config: `gemini-2.5-flash`, `openai/gpt-4o-mini`."""
    prompt: str
    """The whole prompt. Text of agents and users is delimited in it, as data."""
    stable_characters: int = 0
    """Length of the beginning of the prompt that is equal for all sessions of an agent. It is sent as the system message,
    so that a provider can read it from its cache. 0: the whole prompt is the user's message."""
    tag: str = ""
    """The tag in the marks around the data of the prompt, which occurs nowhere else in it. A judge puts a secret tag of
    its own in its place. Empty: the prompt has no such marks."""
    answer: Mapping[str, JsonValue] | None = None
    """JSON Schema of the answer, for models with structured output; other models follow the format in the prompt."""
    sampling: Mapping[str, JsonValue] = field(default_factory=dict)
    """Sampling parameters that the criterion sets, in litellm's names."""
    is_single: bool = field(default=False, compare=False)
    """Whether one answer decides, so that a model gives its most probable one unless a temperature is set."""
    app_name: str | None = field(default=None, compare=False)
    """Name of the app whose agent is judged, for the budget; None if it is not known."""
    asked_for: str = field(default="", compare=False)
    """Name of the metric whose score needs the answer, for the budget; empty: `metric`."""
    sample: int = 0
    """Number of the question within its vote, from 0; questions of a vote differ in this number only."""
    problem: Callable[[str], str | None] = field(default=lambda reply: None, compare=False, repr=False)
    """Returns what a reply lacks to be a verdict, in words for the judge; None: it is one.

    The words contain no text of the reply, which can quote an agent.
    """

    def repaired(self, problem: str) -> Question:
        """Returns the question that asks again, after a reply with this problem.

        >>> question = Question(metric="m", version="1", model="any", prompt="Is it?")
        >>> question.repaired("it contains no verdict").prompt.splitlines()[-1]
        'Your last answer cannot be used: it contains no verdict. Write the whole answer again, in the form above.'
        """
        again = f"Your last answer cannot be used: {problem}. Write the whole answer again, in the form above."
        return replace(self, prompt=f"{self.prompt}\n\n{again}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Holds the judge's unchanged reply and its cost."""

    text: str
    cost: Cost
    model: str = ""
    """The model that has answered, without secrets; empty if the judge does not say it."""


@dataclass(frozen=True, slots=True)
class Room:
    """Holds how many tokens a prompt has, and how many it may have."""

    tokens: int
    """The tokens of the prompt: counted, or an upper bound that is known to fit."""
    limit: int
    """The most tokens of a prompt with which the longest answer still fits into the window of each model that can be
    asked."""

    @property
    def is_enough(self) -> bool:
        """Whether the prompt fits."""
        return self.tokens <= self.limit


class Judge(Protocol):
    """Protocol of a judge, which answers questions."""

    async def ask(self, question: Question) -> Reply:
        """Returns the reply to a question.

        Raises:
            BudgetSpent: the answer would exceed the budget.
            JudgeFailed: the judge returned no answer.
        """

    async def room(self, question: Question) -> Room | None:
        """Returns how much of the window the question takes; None if the window is unknown. Nothing is paid."""
        return None


class BudgetSpent(Exception):  # noqa: N818  # an outcome that the caller handles
    """Raised if the budget does not allow a question; becomes NOT_EVALUATED `budget`."""


class JudgeFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """Raised if the judge could not be asked or did not answer; becomes NOT_EVALUATED `error`.

    >>> JudgeFailed("no connection").cause, JudgeFailed("it refused", "judge_refused").cause
    ('judge_unavailable', 'judge_refused')
    """

    def __init__(
        self,
        message: str,
        cause: Cause = "judge_unavailable",
        cost: Cost | None = None,
        *,
        fails_every_question: bool = False,
    ) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        """What the judge lacked; the cause of the Score."""
        self.cost = cost or Cost()
        """What the question cost although there is no answer."""
        self.fails_every_question = fails_every_question
        """Whether the model is unavailable, so that another model can be asked."""


class AnswerUnusable(JudgeFailed):
    """Raised if the judge's answers contain no verdict; the cause is `judge_unparsable`."""

    def __init__(self, message: str, cost: Cost | None = None) -> None:
        super().__init__(message, "judge_unparsable", cost)
