"""Defines Alert: a change of scores that a rule has found, on the topic `alerts`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from traceweir.schemas.alert_rule import Watched
from traceweir.schemas.base import Fraction, Identifier, NonEmpty, Timestamp, WireModel
from traceweir.schemas.dimensions import ShortText
from traceweir.schemas.invocation import Level
from traceweir.schemas.score import Count, uuid5

AlertState = Literal["raised", "resolved"]
AlertVerdict = Literal["agent", "judge", "config", "unknown"]
AlertResolution = Literal["recovered", "accepted", "rule_ended", "state_lost"]
MOST_SESSIONS = 10
MOST_SUSPECTS = 5


class AlertStream(WireModel):
    """The scores that an alert is about."""

    metric: NonEmpty
    """The metric of the scores."""
    level: Level
    """The level of the scores."""
    slice: dict[ShortText, Annotated[str, Field(min_length=1)] | None] = {}
    """The value of each dimension of the rule's `by`; null for scores without the dimension. Empty: all scores."""


class AlertOnset(WireModel):
    """Since when the scores are worse, and an interval that contains the change with 95 % confidence."""

    at: Timestamp
    """The minute that the scores speak for most."""
    earliest: Annotated[Timestamp, Field(alias="from")]
    """Beginning of the interval."""
    latest: Annotated[Timestamp, Field(alias="to")]
    """End of the interval."""


class AlertEffect(WireModel):
    """The rate, share or mean since the onset, less that of the baseline at these hours of the day; from -1 to 1."""

    estimate: float
    """The difference."""
    low: float
    """Lower end of its 95 % interval, which supposes that the alert is right."""
    high: float
    """Upper end of the interval."""


class AlertSuspect(WireModel):
    """A value of a field of scores that came at the onset, as a new one or after a day. That it came then is no proof."""

    field: NonEmpty
    """The field: `agent_version`, `model`, `judge`, `scorer_version`, `metric_digest`, `config_digest`, `cause` or
    `labels.NAME`."""
    value: str
    """The value; text of agents."""
    first_seen: Timestamp
    """The minute of the stream's first score with it, or of the first one after a day of scores without it."""


class Alert(WireModel):
    """A change of scores that a rule has found.

    The record's key is `alert_id`, and the topic is compacted: the last record of an id counts. A raised alert
    comes again if its `verdict` becomes another one. A resolved one repeats what was said last, but for `state`,
    `resolution` and `occurred_at`.
    """

    alert_id: Identifier
    """Id of the alert; `alert_id` makes it of the rule, the stream and the onset."""
    rule: ShortText
    """The `id` of the rule."""
    what: Watched
    """What the rule watches: `pass_rate`, `mean`, `not_evaluated`, `above_limit`, `below_limit`,
    `category` or `freshness`."""
    limit: float | None = None
    """Of `above_limit` and `below_limit`: the value that the sessions are compared with, in the unit of the metric."""
    category: NonEmpty | None = None
    """Of `category`: the category; text of configs."""
    interval_minutes: Annotated[int, Field(ge=1)] | None = None
    """Of `freshness`: the length of the intervals, in nearly all of which a session usually comes."""
    stream: AlertStream
    """The scores that have changed."""
    state: AlertState
    """`raised`, or `resolved`."""
    resolution: AlertResolution | None = None
    """Why it was resolved: `recovered`, the scores have shown that the rate is back; `accepted`, somebody has accepted the
    level; `rule_ended`, the rule was withdrawn or changed; `state_lost`, nobody knows any more what was usual. null while it
    is raised."""
    since: Timestamp
    """When the alert was raised: the minute of the score that made the evidence enough."""
    onset: AlertOnset
    """When the scores began to be worse; it does not change any more after the alert was raised."""
    baseline: Fraction
    """The rate, share or mean that was usual."""
    effect: AlertEffect
    """How much the scores have changed."""
    sessions_since: Count
    """How many sessions there were from the onset to `since`; of `freshness`, how many intervals."""
    verdict: AlertVerdict = "unknown"
    """Whose fault it is, as far as the scores show it."""
    sessions: Annotated[tuple[Identifier, ...], Field(max_length=MOST_SESSIONS)] = ()
    """The sessions with the worst scores since the onset, and of equal ones the newest first; at most ten."""
    suspects: Annotated[tuple[AlertSuspect, ...], Field(max_length=MOST_SUSPECTS)] = ()
    """What came into the stream within the interval of the onset, the nearest first; at most five."""
    occurred_at: Timestamp
    """When the state was reached: `since`; or the minute of the score that showed that the rate is back, or of the last one
    before somebody accepted the level or ended the rule; or when it was seen that the state is lost."""

    def wire(self) -> bytes:
        """Returns the record's value."""
        return self.model_dump_json(by_alias=True).encode()

    @model_validator(mode="after")
    def _check_raised_since_it_occurred(self) -> Alert:
        if self.state == "raised" and self.since != self.occurred_at:
            raise ValueError(
                f"raised with since {self.since} and occurred_at {self.occurred_at}; both must be when it was raised"
            )
        return self


def alert_id(rule: str, stream: AlertStream, onset_minute: int) -> str:
    """Returns the id of an alert, which is equal for an equal rule, stream and onset.

    Args:
        rule: The `id` of the rule.
        stream: The stream.
        onset_minute: The onset in minutes since 1970.

    >>> shop, all_apps = (AlertStream(metric="m", level="session", slice=each) for each in ({"app_name": "shop"}, {}))
    >>> alert_id("r", shop, 5) == alert_id("r", shop, 5), alert_id("r", shop, 5) == alert_id("r", all_apps, 5)
    (True, False)
    """
    parts = [part or "" for pair in stream.slice.items() for part in pair]
    return uuid5("alert", rule, stream.metric, stream.level, *parts, str(onset_minute))
