"""Defines what queries about missing values, dead letters and the budget of judges return; the JSON API publishes it."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel


class CountPoint(BaseModel):
    """How many records had one reason in one step of time."""

    begins_at: datetime
    """When the step begins, in UTC."""
    reason: str
    """Why results have no value, or why records could not be processed."""
    number: int
    """Number of records."""


class NotScoredCount(BaseModel):
    """How often a metric had no value for one reason and cause."""

    metric: str
    """Name of the metric."""
    reason: str
    """The reason."""
    cause: str | None
    """What a judge lacked, or why an input is missing; null if unknown."""
    results: int
    """Number of results without a value for this reason and cause."""
    session_id: str | None
    """The session of the latest example; null if its row is too old."""
    rationale: str | None
    """What the latest example says."""
    what_to_do: str
    """How to get a value."""


class DeadLetterSummary(BaseModel):
    """A dead letter, with the beginning of its record."""

    letter_id: str
    """Id of the dead letter, as `traceweir dlq` takes it."""
    written_at: datetime
    """When the dead letter was written, in UTC."""
    reason: str
    """Why the record could not be processed."""
    stage: str
    """The stage that refused the record."""
    detail: str
    """The reason in a sentence."""
    source_topic: str
    """The topic of the record."""
    source_partition: int
    """The partition of the record."""
    source_offset: int
    """The offset of the record."""
    record_bytes: int
    """Bytes of the record's value."""
    record_value: str | None
    """The beginning of the record's value; null if content is hidden."""
    replayed: bool
    """Whether the record was sent again."""


class DeadLetterCounts(BaseModel):
    """The dead letters of a span of time."""

    by_reason: dict[str, int]
    """Number of dead letters, by reason."""
    latest: list[DeadLetterSummary]
    """The latest ones, the newest first."""
    replay_command: str
    """The command that sends their records again, when the cause is removed."""


class JudgeSpending(BaseModel):
    """What judges were paid on a day in UTC, and the daily budget of the config."""

    since: datetime
    """Begin of the day, in UTC."""
    until: datetime
    """End of the day, in UTC; not part of the day."""
    tokens: int
    """Number of tokens that the results of the day paid, those included that were replaced since."""
    usd: float
    """Cost of these tokens in USD."""
    tokens_per_day: int | None
    """Maximum number of tokens in a day; null without a limit, or if the dashboard does not know the config."""
    usd_per_day: float | None
    """Maximum USD in a day; null as above."""
    tokens_left: int | None
    """Number of tokens that are left of the budget, 0 or more; null as above."""
    usd_left: float | None
    """USD that are left of the budget, 0 or more; null as above."""
