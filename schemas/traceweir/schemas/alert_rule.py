"""Defines AlertRule: which change of scores matters, and how often an alarm may be wrong."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from traceweir.schemas.base import ConfigModel, NonEmpty
from traceweir.schemas.dimensions import ShortText
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Cause

Watched = Literal["pass_rate", "mean", "not_evaluated", "above_limit", "below_limit", "category", "freshness"]
Direction = Literal["drop", "rise"]


class AlertRule(ConfigModel):
    """A rule of alerts, in a file. Each metric, level and slice that it fits is a stream of its own.

    The mean number of days to the first false alarm of any stream is at least `days_between_false_alarms`, however many
    streams come.
    """

    id: ShortText
    """Name of the rule."""
    what: Watched = "pass_rate"
    """What is watched: the share of scores that pass, among those with a verdict; the mean of the values, from 0 to 1; the
    share of scores that are NOT_EVALUATED, among all that were to be evaluated; the share of sessions whose value is above or
    below `limit`; the share of scores with `category`, among those with a category; or the share of time intervals in which
    a session comes, whose length each stream learns."""
    cause: Cause | None = None
    """With `not_evaluated`: only scores with this cause count as such."""
    limit: float | None = None
    """With `above_limit` and `below_limit`: a value of the metric, in its unit. Null: each stream learns the value beyond
    which about a tenth of its sessions are."""
    category: NonEmpty | None = None
    """With `category`: which one."""
    metric: NonEmpty | None = None
    """Name of the metric; null: each metric."""
    level: Level | None = None
    """Level of the scores; null: each level."""
    by: tuple[ShortText, ...] = ()
    """The dimensions of a slice: `app_name`, `agent_name`, `agent_version`, `environment`, `model`, `user_id`, `judge`, or
    `labels.NAME`, each once. Without any, all apps are one stream."""
    direction: Direction | None = None
    """Which change of what is watched is bad; null: a drop of the pass rate, of the mean and of freshness, and a rise of the
    other shares. A rule of a category must state it, and of freshness there is no other one."""
    tolerated_change: Annotated[float, Field(ge=0, lt=1)] = 0.02
    """A change by less than this is no alarm."""
    days_between_false_alarms: Annotated[float, Field(ge=1, le=3_650)] = 60.0
    """Mean number of days to the first false alarm of any stream of the rule, at least."""
    baseline_days: Annotated[float, Field(ge=1, le=365)] = 7.0
    """From its first how many days a stream learns what is usual. Until then it is not watched."""

    @property
    def bad_direction(self) -> Direction:
        """Which change is bad."""
        return self.direction or ("drop" if self.what in ("pass_rate", "mean", "freshness") else "rise")

    @property
    def learns_limit(self) -> bool:
        """Whether each stream learns a limit of its own."""
        return self.has_limit and self.limit is None

    @property
    def has_limit(self) -> bool:
        """Whether values are compared with a limit."""
        return self.what in ("above_limit", "below_limit")

    @model_validator(mode="after")
    def _check_cause_belongs_to_not_evaluated(self) -> AlertRule:
        if self.cause is not None and self.what != "not_evaluated":
            raise ValueError(f"cause {self.cause} with what {self.what}; only a rule of not_evaluated has a cause")
        return self

    @model_validator(mode="after")
    def _check_limit_belongs_to_a_share_beyond_it(self) -> AlertRule:
        if self.limit is not None and not self.has_limit:
            raise ValueError(
                f"limit {self.limit:g} with what {self.what}; only a rule of above_limit or below_limit has a limit"
            )
        return self

    @model_validator(mode="after")
    def _check_category_has_its_name_and_direction(self) -> AlertRule:
        if self.what != "category":
            if self.category is not None:
                raise ValueError(f"category with what {self.what}; only a rule with the what category has one")
            return self
        if self.category is None:
            raise ValueError("what category without category; name the category whose share is watched")
        if self.direction is None:
            raise ValueError('what category without direction; state whether a "drop" or a "rise" of its share is bad')
        return self

    @model_validator(mode="after")
    def _check_freshness_drops(self) -> AlertRule:
        if self.what == "freshness" and self.direction == "rise":
            raise ValueError(
                "direction rise with what freshness; sessions that come again are no alert, so leave it out"
            )
        return self

    @model_validator(mode="after")
    def _check_dimensions_are_named_once(self) -> AlertRule:
        twice = next((each for each in self.by if self.by.count(each) > 1), None)
        if twice is not None:
            raise ValueError(f"by names {twice!r} twice; name each dimension once")
        return self


DEFAULT_ALERT_RULE = AlertRule(id="any-pass-rate-drops")
"""Any pass rate drops by 0.02 or more, with one false alarm in 60 days over all streams."""
