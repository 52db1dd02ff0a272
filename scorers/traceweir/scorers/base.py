"""Defines the scorer contract: an immutable model whose fields are its options, with a method that measures."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from traceweir.schemas.base import JsonObject
from traceweir.schemas.dimensions import UNKNOWN, Dimensions
from traceweir.schemas.invocation import FunctionCall, Invocation, Level
from traceweir.schemas.reference import Reference
from traceweir.schemas.refused_record import REFUSED, TOOL_CALLS, refused_part
from traceweir.schemas.score import Cause, Cost
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn
from traceweir.scorers.judge import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Holds what a scorer measures: an invocation, a trace or a session, with its reference.

    For scorers of level `invocation`, `invocation` is set, and `reference` if the invocation has one. For scorers of
    level `trace`, `trace` is set. For scorers of level `session`, `reference` holds what the references of the turns
    expect of the session as a whole, as `session_reference` says.
    """

    session: Session | None = None
    invocation: Invocation | None = None
    trace: ReasoningTrace | None = None
    reference: Reference | None = None
    turns: Sequence[Turn] = ()
    """The session's invocations in order, each with its reference; those of one segment."""
    position: int = 0
    """The index of `invocation` in `turns`, from 0."""
    judge: Judge | None = None
    """The judge that the scorer can ask; always set for a scorer that is `judged`."""
    started_at: datetime | None = None
    """When the subject began, by the agents' own clock, in UTC; None if unknown."""
    dimensions: Dimensions = UNKNOWN
    """Whose work the subject is: app, agent, version, environment, model, user and labels."""
    found_of_session: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """What a scorer has worked out of the session, for other scorers that need the same; all its subjects share it."""

    @property
    def earlier_turns(self) -> Sequence[Turn]:
        """The turns of the session before `invocation`, in order."""
        return self.turns[: self.position]

    @property
    def response(self) -> str:
        """The text of the final response; empty if there is none.

        Raises:
            MissingInput: there is none because its source was cut, or recorded no content.
        """
        answer = self.invocation.final_response if self.invocation else None
        if answer is None and self.invocation is not None:
            require_read(self.invocation, "answer")
        return answer.text if answer else ""


def invocation_of(subject: Subject) -> Invocation:
    """Returns the invocation that a scorer of level `invocation` measures.

    Raises:
        MissingInput: the subject is a trace or a session.
    """
    if subject.invocation is None:
        raise MissingInput("there is no invocation")
    return subject.invocation


def turns_of_session(subject: Subject) -> Sequence[Turn]:
    """Returns the turns that a scorer of level `session` measures, at least one.

    Raises:
        MissingInput: the session has no turn.
    """
    if not subject.turns:
        raise MissingInput("the session has no invocation")
    return subject.turns


def require_read(invocation: Invocation, part: str) -> None:
    """Checks that no sentence in `unread` says that a part of the invocation is missing.

    Args:
        invocation: The invocation.
        part: The word with which the sentence begins after `the`, such as `answer` or `arguments`.

    Raises:
        MissingInput: a sentence does; without the part a value would be a guess.
    """
    found = [sentence for sentence in invocation.unread or () if sentence.startswith(f"the {part} ")]
    if found:
        more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
        raise MissingInput(f"{found[0]}{more}", "record_refused" if REFUSED in found[0] else "not_recorded")


def require_accepted(invocation: Invocation, *parts: str) -> None:
    """Checks that no part of the invocation can be in a record that was refused.

    Args:
        invocation: The invocation.
        parts: Names of parts of which an invocation can have several, such as `TOOL_CALLS`: those that came are not all.

    Raises:
        MissingInput: a part can be; without it a value would be a guess.
    """
    for part in parts:
        require_read(invocation, refused_part(part))


def require_calls(invocation: Invocation) -> None:
    """Checks that the tool calls were recorded: those of all models' answers, and any at all if the invocation has none.

    Raises:
        MissingInput: they were not; an unknown call must not be compared as no call.
    """
    require_accepted(invocation, TOOL_CALLS)
    require_read(invocation, "tool calls of a model's answer,")
    if not invocation.tool_uses:
        require_read(invocation, "tool")


def recorded_calls(invocation: Invocation) -> Sequence[FunctionCall]:
    """Returns the tool calls of an invocation whose source records tool calls; empty if it called no tool.

    Google ADK takes an invocation without intermediate data for one without calls. Metrics of ADK use `require_calls`.

    Raises:
        MissingInput: the tool calls were not recorded.
    """
    require_calls(invocation)
    if invocation.intermediate_data is None:
        raise MissingInput("the tool calls of the invocation were not recorded", "not_recorded")
    return invocation.tool_uses


def require_arguments(invocation: Invocation, *, unless: Callable[[FunctionCall], bool] | None = None) -> None:
    """Checks that no tool call lacks its arguments because their source was cut, or recorded no content.

    Args:
        invocation: The invocation.
        unless: Returns whether the arguments of a call do not matter; None: those of all calls matter.

    Raises:
        MissingInput: a call does; it must not be compared as a call without arguments.
    """
    if any(call.args is None and not (unless and unless(call)) for call in invocation.tool_uses):
        require_read(invocation, "arguments")


@dataclass(frozen=True, slots=True)
class NeededReference:
    """States what a reference must have, so that a scorer has a value."""

    fields: tuple[str, ...]
    """The fields of `Reference` of which one must be there."""
    option: str = ""
    """The option of the criterion that is the other way to a value; empty: there is none."""
    change: str = "set"
    """What to do with the option, in words before its name."""
    where: str = ""
    """Where there is a value, in words; empty: where a reference has one of the fields."""


NOTHING_SPENT = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Holds a measured value, its rationale, details and cost. The value is in the scorer's range.

    Raises:
        ValueError: the value is NaN or infinite.
        TypeError: the rationale is not a string.
    """

    value: float
    rationale: str = ""
    """A sentence with which a person can check the value."""
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    cost: Cost = NOTHING_SPENT
    judge: str | None = None
    """The model that judged; `evaluate` sets it."""
    category: str | None = None
    """The answer of a categorical criterion, of which the value is the number; None for every other."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"a measurement must be a finite number, not {self.value}")
        if not isinstance(self.rationale, str):
            raise TypeError(f"a measurement's rationale must be a string, not {type(self.rationale).__name__}")


class Measurements(tuple[Measurement, ...]):
    """The measurements of the invocations of one session that have a value."""

    invocations: int
    """Number of the session's invocations; it counts those without a value too."""

    @classmethod
    def of(cls, measured: Iterable[Measurement], invocations: int) -> Self:
        """Returns the measurements of a session with a number of invocations."""
        found = cls(measured)
        found.invocations = invocations
        return found


Direction = Literal["higher", "lower", "neutral"]
"""Which values of a metric are better; `neutral`: none is better than another."""

AdkCompat = Literal["adk"] | None
"""`adk`: as Google ADK, also where Traceweir differs on purpose. Reasoning in messages then counts as text, as far as the
source has it."""


class MissingInput(Exception):  # noqa: N818  # an outcome that the caller handles
    """Raised by a scorer if its subject lacks a required input; becomes NOT_EVALUATED `missing_input`.

    >>> MissingInput("nothing was expected").cause, MissingInput("no tokens", "not_recorded").cause
    (None, 'not_recorded')
    """

    def __init__(self, reason: str, cause: Literal["not_recorded", "record_refused"] | None = None) -> None:
        """Makes the exception.

        Args:
            reason: The rationale of the Score.
            cause: Why the input is missing, if the session should have had it; None if nothing is lost.
        """
        super().__init__(reason)
        self.cause: Cause | None = cause


class Scorer(BaseModel, ABC):
    """Base class of all scorers. The fields are options, in snake_case or camelCase; unknown options are errors.

    `score` can be `def` or `async def`. A `def` runs on the event loop that scores all sessions, and no timeout
    interrupts it. Therefore, use `async def` for a scorer that waits, or that computes for more than a few
    milliseconds, and run the computation with `asyncio.to_thread`. A scorer never compares its value with a threshold:
    only `evaluate` decides a status.

    A worker pickles its scorers and sends them to its scoring process. A session that blocks the scoring process for
    10 s of CPU time or 120 s of waiting, and blocks it again when the session is retried alone, becomes a dead letter.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, alias_generator=to_camel, populate_by_name=True
    )

    version: ClassVar[str] = "1"
    """Increase the version when the value of an unchanged subject changes."""
    level: ClassVar[Level] = "invocation"
    """What the scorer measures: invocations, traces or sessions."""
    judged: ClassVar[bool] = False
    """Whether the scorer asks a judge."""
    informational: ClassVar[bool] = False
    """Whether the metric only reports a number: the config must set no threshold, and every value has PASSED."""
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """The minimum and the maximum value; a threshold must be in this range."""
    direction: ClassVar[Direction] = "higher"
    """Which values are better: with `higher` the threshold is the least value that has PASSED, with `lower` the greatest.

    An informational metric is `neutral` unless its class, or one that it derives from, says otherwise. Only an
    informational metric can be: a threshold needs a better side.
    """
    unit: ClassVar[str | None] = None
    """The unit of the values, such as `s` or `tokens`; None: they have none, such as a share."""
    default_threshold: ClassVar[float | None] = None
    """The threshold of a criterion that sets none; None: the config must set one."""

    @abstractmethod
    def score(self, subject: Subject) -> Measurement | Awaitable[Measurement]:
        """Measures the subject.

        Raises:
            MissingInput: the subject lacks a required input.
        """

    def aggregate(self, measured: Measurements) -> float:
        """Returns the session's value from at least one measurement: the arithmetic mean, as in Google ADK."""
        return sum(m.value for m in measured) / len(measured)

    def summary(self, measured: Measurements) -> JsonObject:
        """Returns additional `details` of the session's Score from at least one measurement of its invocations.

        `evaluate` adds the number of invocations, and of those with a measurement.
        """
        return {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        """Refuses methods that are not called any more, and a direction that does not exist or has no use.

        Raises:
            TypeError: the class defines one of them.
        """
        for former, name in (("aggregate_of", "aggregate"), ("summary_of", "summary")):
            if former in vars(cls):
                raise TypeError(
                    f"{cls.__name__}.{former} would never be called; define {name}(self, measured), "
                    "where measured.invocations is the number of invocations"
                )
        if cls.informational and not any("direction" in vars(base) for base in cls.__mro__ if base is not Scorer):
            cls.direction = "neutral"
        if cls.direction not in get_args(Direction):
            raise TypeError(
                f"{cls.__name__}.direction is {cls.direction!r}; it must be one of {', '.join(get_args(Direction))}"
            )
        if cls.direction == "neutral" and not cls.informational:
            raise TypeError(
                f"{cls.__name__}.direction is neutral, so no side of a threshold is better: set informational = True, "
                "or the direction to higher or lower"
            )

    @property
    def value_range(self) -> tuple[float, float]:
        """The minimum and the maximum value with these options."""
        return self.range

    @property
    def judge_model(self) -> str | None:
        """The name of the judge model; None if the scorer asks no judge."""
        return None

    @property
    def needed_reference(self) -> NeededReference | None:
        """What a reference must have, so that there is a value; None: values need no reference."""
        return None

    def decisive_options(self) -> JsonObject:
        """Returns the options that the values depend on, as JSON; part of the metric digest, as the judge model is."""
        options: JsonObject = self.model_dump(mode="json")
        return options
