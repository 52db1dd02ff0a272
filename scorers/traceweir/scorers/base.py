"""What a scorer is: a small immutable value whose fields are its options, with one method that measures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from traceweir.schemas.base import JsonObject
from traceweir.schemas.invocation import Invocation, Level
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Cost
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.scorers.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is measured: an invocation, a trace or a session, with what was expected of it.

    A scorer of level `invocation` finds `invocation` and, if there is one, its `reference`; one of level `trace` finds `trace`.
    """

    session: Session | None = None
    invocation: Invocation | None = None
    trace: ReasoningTrace | None = None
    reference: Reference | None = None
    judge: Judge | None = None
    """Who may be asked; a scorer that is `judged` always finds one."""

    @property
    def response(self) -> str:
        """The text of the final response, empty if there is none."""
        answer = self.invocation.final_response if self.invocation else None
        return answer.text if answer else ""


NOTHING_SPENT = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured number, in the scorer's range, higher is better; and how it came about.

    Raises:
        ValueError: the value is NaN or infinite.
        TypeError: the rationale is no text.
    """

    value: float
    rationale: str = ""
    """One sentence that a person can check."""
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    cost: Cost = NOTHING_SPENT

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"a measurement must be a finite number, not {self.value}")
        if not isinstance(self.rationale, str):
            raise TypeError(f"a measurement's rationale must be text, not {type(self.rationale).__name__}")


class MissingInput(Exception):  # noqa: N818  # an outcome that the caller handles
    """Raised by a scorer whose subject lacks something it cannot do without; becomes NOT_EVALUATED `missing_input`."""


class Scorer(BaseModel, ABC):
    """Measures one thing. Fields are options, in snake_case or camelCase; an option that does not exist is refused.

    `score` may be `def` or `async def`. A `def` runs where all sessions are scored, one after the other, and no timeout ends it: what
    waits for anything, or computes for more than some milliseconds, is an `async def` (with `asyncio.to_thread` for the computing). It
    never compares with a threshold: `evaluate` alone decides a status.

    A worker pickles its scorers to its scoring process. A session over which that is held for 10 s, and again when it is tried alone,
    becomes a dead letter.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, alias_generator=to_camel, populate_by_name=True
    )

    version: ClassVar[str] = "1"
    """Raise it when the same subject would get another value."""
    level: ClassVar[Level] = "invocation"
    judged: ClassVar[bool] = False
    """Whether it asks a judge."""
    informational: ClassVar[bool] = False
    """Whether it only tells a number: no threshold is allowed, and every value has PASSED."""
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """The least and the greatest value; a threshold lies between them."""

    @abstractmethod
    def score(self, subject: Subject) -> Measurement | Awaitable[Measurement]:
        """Measure the subject.

        Raises:
            Missing: the subject lacks what is needed.
        """

    def aggregate(self, measured: Sequence[Measurement]) -> float:
        """The session's value from those of its invocations, at least one: the arithmetic mean, as Google ADK takes it."""
        return sum(m.value for m in measured) / len(measured)

    def summary(self, measured: Sequence[Measurement]) -> JsonObject:
        """What the session's Score says in `details`, beside how many invocations were measured, of those that were, at least one."""
        return {}

    @property
    def judge_model(self) -> str | None:
        """The model that is asked; None, if none is."""
        return None

    def decisive_options(self) -> JsonObject:
        """The options on which the values depend, as JSON: with the judge's model, they tell this measurement from another."""
        options: JsonObject = self.model_dump(mode="json")
        return options
