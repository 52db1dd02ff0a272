"""Defines AlertRule: which change of scores matters, and how often an alarm may be wrong."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from traceweir.schemas.base import ConfigModel, NonEmpty
from traceweir.schemas.dimensions import ShortText
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Cause

Watched = Literal["pass_rate", "mean", "not_evaluated"]
Direction = Literal["drop", "rise"]


class AlertRule(ConfigModel):
    """A rule of alerts, in a file. Each metric, level and slice that it fits is a stream of its own.

    The mean number of days to the first false alarm of any stream is at least `days_between_false_alarms`, however many
    streams come.
    """

    id: ShortText
    """Name of the rule."""
    what: Watched = "pass_rate"
    """What is watched: the share of scores that pass, among those with a verdict; the mean of the values, from 0 to 1; or
    the share of scores that are NOT_EVALUATED, among all that were to be evaluated."""
    cause: Cause | None = None
    """With `not_evaluated`: only scores with this cause count as such."""
    metric: NonEmpty | None = None
    """Name of the metric; null: each metric."""
    level: Level | None = None
    """Level of the scores; null: each level."""
    by: tuple[ShortText, ...] = ()
    """The dimensions of a slice: `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `judge`, or
    `labels.NAME`, each once. Without any, all apps are one stream."""
    direction: Direction | None = None
    """Which change is bad; null: a rise of `not_evaluated`, and a drop of all else."""
    tolerated_change: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """A change by less than this is no alarm."""
    days_between_false_alarms: Annotated[float, Field(ge=1, le=3_650)] = 60.0
    """Mean number of days to the first false alarm of any stream of the rule, at least."""
    baseline_days: Annotated[float, Field(ge=1, le=365)] = 7.0
    """From its first how many days a stream learns what is usual. Until then it is not watched."""

    @property
    def bad_direction(self) -> Direction:
        """Which change is bad."""
        return self.direction or ("rise" if self.what == "not_evaluated" else "drop")

    @model_validator(mode="after")
    def _check_cause_belongs_to_not_evaluated(self) -> AlertRule:
        if self.cause is not None and self.what != "not_evaluated":
            raise ValueError(f"cause {self.cause} with what {self.what}; only a rule of not_evaluated has a cause")
        return self

    @model_validator(mode="after")
    def _check_dimensions_are_named_once(self) -> AlertRule:
        twice = next((each for each in self.by if self.by.count(each) > 1), None)
        if twice is not None:
            raise ValueError(f"by names {twice!r} twice; name each dimension once")
        return self


DEFAULT_ALERT_RULE = AlertRule(id="any-pass-rate-drops")
"""Any pass rate drops by 0.02 or more, with one false alarm in 60 days over all streams."""
