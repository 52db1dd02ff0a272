"""Chooses the sessions on which a criterion is measured by what cheaper criteria have found."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field, model_validator

from traceweir.schemas.base import ConfigModel, Fraction, NonEmpty
from traceweir.schemas.score import Score, Status
from traceweir.scorers.evaluation.outcome import Unmeasured

Number = Annotated[float, Field(allow_inf_nan=False)]


class Condition(ConfigModel):
    """A condition on the session's score of another criterion."""

    metric: NonEmpty
    """The other criterion."""
    status: Status | None = None
    """The status that its score must have."""
    below: Number | None = None
    """Its value must be less than this."""
    above: Number | None = None
    """Its value must be greater than this."""

    @model_validator(mode="after")
    def _check_one(self) -> Condition:
        given = [name for name in ("status", "below", "above") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"set one of status, below and above, not {len(given)} of them")
        return self

    def __str__(self) -> str:
        """Returns the condition for a person."""
        if self.status is not None:
            return f"{self.metric} is {self.status}"
        return f"{self.metric} < {self.below:g}" if self.below is not None else f"{self.metric} > {self.above:g}"

    def holds(self, score: Score | None) -> bool:
        """Returns whether the score of the session fulfils the condition; without a score it does not."""
        if score is None:
            return False
        if self.status is not None:
            return score.status == self.status
        if score.value is None:
            return False
        return score.value < self.below if self.below is not None else score.value > (self.above or 0.0)


class When(ConfigModel):
    """When a criterion is measured: if one of the conditions holds, and on a random share of the other sessions."""

    any: Annotated[list[Condition], Field(min_length=1, max_length=20)]
    """The conditions, of which one must hold."""
    otherwise: Annotated[Fraction, Field(alias="else")] = 0.0
    """The share of the other sessions, from 0 to 1; the session id decides."""

    def fulfilled(self, totals: Mapping[str, Score]) -> list[Score]:
        """Returns the scores of the session that fulfil a condition."""
        return [totals[each.metric] for each in self.any if each.holds(totals.get(each.metric))]

    def settling(self, totals: Mapping[str, Score]) -> str | None:
        """Returns the name of a criterion of the conditions that is not measured yet; None if all are."""
        named = (each.metric for each in self.any)
        return next((name for name in named if name in totals and totals[name].cause == "settling"), None)

    def __str__(self) -> str:
        """Returns the conditions for a person."""
        named = " or ".join(map(str, self.any))
        return f"{named}, else on {self.otherwise:.0%} of the sessions"


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """Holds whether a session is measured by a criterion."""

    left_out: Unmeasured | None
    """Why the session has no value; None: it is measured."""
    probability: float | None
    """The probability with which a session like it is measured; None: 1."""
    is_by_cascade: bool = False
    """Whether the cascade leaves it out, which can change with the revision."""
    settling: Unmeasured | None = None
    """Why its subjects have no value yet, because a later revision can come; None: they are measured now."""


def choice_of(
    name: str, when: When | None, share: float, point: float, session_id: str, totals: Mapping[str, Score]
) -> SessionChoice:
    """Returns whether a session is measured by a criterion.

    Args:
        name: The criterion.
        when: Its conditions; None: there are none.
        share: The share of all sessions that the sampling of the config chooses.
        point: The session's number for the sampling.
        session_id: The session.
        totals: The session's scores of the criteria that were measured before.
    """
    fulfilled = [] if when is None else when.fulfilled(totals)
    # A condition on a criterion that is asked by chance holds by chance. All criteria draw the same number for a session.
    known = [1.0 if score.inclusion_probability is None else score.inclusion_probability for score in fulfilled]
    of_cascade = 1.0 if when is None else max([when.otherwise, *known])
    probability = share * of_cascade if share * of_cascade < 1 else None
    if point >= share:
        return SessionChoice(Unmeasured("sampled_out", f"{share:g} of all sessions are measured"), probability)
    if when is not None and (waits_for := when.settling(totals)):
        return settling_choice(f"{name} is measured after {waits_for}", SessionChoice(None, probability))
    if when is not None and not fulfilled and cascade_point(session_id) >= when.otherwise:
        return SessionChoice(
            Unmeasured("sampled_out", f"{name} is measured if {when}", cause="cascade"), probability, is_by_cascade=True
        )
    return SessionChoice(None, probability)


def settling_choice(why: str, choice: SessionChoice) -> SessionChoice:
    """Returns a choice whose subjects are not measured yet; `why` is a sentence for people."""
    return replace(choice, settling=Unmeasured("missing_input", why, cause="settling"))


def cascade_point(session_id: str) -> float:
    """Returns a number from 0 to 1 for a session; it is not the one of the sampling.

    >>> round(cascade_point("session-1"), 3)
    0.686
    """
    return (
        int.from_bytes(hashlib.sha256(f"cascade\x1f{session_id}".encode("utf-8", "surrogatepass")).digest()[:6]) / 2**48
    )


def rounds_of(conditions: Sequence[tuple[str, When | None]]) -> list[list[int]]:
    """Returns the indices of criteria in the rounds in which they are measured: each after those of its conditions.

    Args:
        conditions: The name of each criterion, and when it is measured; None: always.

    Raises:
        ValueError: criteria wait for each other.
    """
    waits = {name: {each.metric for each in when.any} if when else set() for name, when in conditions}
    rounds: list[list[int]] = []
    done: set[str] = set()
    left = [name for name, _ in conditions]
    index = {name: position for position, name in enumerate(left)}
    while left:
        ready = [name for name in left if waits[name] <= done]
        if not ready:
            raise ValueError(_problem_of_circle({name: waits[name] for name in left}))
        rounds.append([index[name] for name in ready])
        done.update(ready)
        left = [name for name in left if name not in done]
    return rounds


def _problem_of_circle(waits: Mapping[str, set[str]]) -> str:
    names = set(waits)
    # A criterion for which no other one waits only follows the circle.
    while last := {name for name in names if not any(name in waits[other] for other in names)}:
        names -= last
    if len(names) == 1:
        return f"{names.pop()} waits for itself; remove its condition, or name another criterion in it"
    return f"{', '.join(sorted(names))} wait for each other; remove one of their conditions"
